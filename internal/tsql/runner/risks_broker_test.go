package runner_test

import "strings"

// own makes a dialog @h from a service to itself, over a queue of the same name.
func own(name string) string {
	return strings.ReplaceAll(`
CREATE QUEUE NAME
CREATE SERVICE NAME ON QUEUE NAME ([DEFAULT])
GO
SET NOCOUNT ON
DECLARE @h uniqueidentifier, @i int
BEGIN DIALOG @h FROM SERVICE NAME TO SERVICE 'NAME' WITH ENCRYPTION = OFF;
`, "NAME", name)
}

// The cases of conversations and messages.
var risksOfTheBroker = []risk{
	{6, "a doomed transaction refuses the broker's statements; after ROLLBACK the message is there again", own("r6") + `
SEND ON CONVERSATION @h (N'one')
BEGIN TRAN
RECEIVE TOP (1) @h = conversation_handle FROM r6
BEGIN TRY
  SET @i = 'x'
END TRY
BEGIN CATCH
  BEGIN TRY END CONVERSATION @h WITH ERROR = 1 DESCRIPTION = 'x' END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH
  BEGIN TRY SEND ON CONVERSATION @h (N'x') END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH
  BEGIN TRY RECEIVE * FROM r6 END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH
  ROLLBACK
  SELECT COUNT(*) AS n FROM r6
  END CONVERSATION @h WITH ERROR = 1 DESCRIPTION = 'x'
END CATCH
PRINT @@TRANCOUNT`, "3930\n3930\n3930\nn\n1\n0"},
	{9, "a wait takes its whole time, and leaves variables alone", own("r9") + `
DECLARE @from datetime2 = SYSDATETIME()
SET @i = 7
WAITFOR (RECEIVE @i = message_type_id FROM r9), TIMEOUT 300
PRINT CONCAT(@@ROWCOUNT, ' ', @i)
IF DATEDIFF(ms, @from, SYSDATETIME()) >= 299 PRINT 'all of it'`, "0 7\nall of it"},
	{13, "a body keeps its bytes, and is read as any type", own("r13") + `
DECLARE @n nvarchar(10) = N'aé', @v varchar(10) = 'aé', @x xml = '<a/>';
SEND ON CONVERSATION @h (@n);
SEND ON CONVERSATION @h (@v);
SEND ON CONVERSATION @h (@x);
SEND ON CONVERSATION @h (0x410042)
SELECT CONVERT(varchar(40), message_body, 1) AS b, DATALENGTH(message_body) AS l,
  LEN(CAST(message_body AS nvarchar(10))) AS n FROM r13 ORDER BY queuing_order`, `
b l n
0x6100E900 4 2
0x61E9 2 1
0xFFFE3C0061002F003E00 10 5
0x410042 3 2`},
	{15, "names of services are compared by bytes, text without case and blanks at the end", own("r15") + `
IF 'abc' = 'ABC  ' AND N'x' IN ('X ') PRINT 'equal'
IF 'abc' LIKE 'ABC ' PRINT 'not reached'
IF 'abc' LIKE 'ABC' PRINT 'like'
BEGIN DIALOG @h FROM SERVICE r15 TO SERVICE 'R15' WITH ENCRYPTION = OFF;
SEND ON CONVERSATION @h (N'x')
SELECT COUNT(*) AS arrived FROM R15
BEGIN DIALOG @h FROM SERVICE R15 TO SERVICE 'r15'`, `
equal
like
arrived
0
Msg 8423, Level 16, State 1, Line 11
The service "R15" is not found.`},
	{23, "text is a handle where it is one", own("r23") + `
DECLARE @text nvarchar(50) = @h, @none uniqueidentifier
;SEND ON CONVERSATION @text (N'x')
SELECT COUNT(*) AS n FROM r23
BEGIN TRY SEND ON CONVERSATION @none (N'x') END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH
BEGIN TRY SEND ON CONVERSATION @h (NULL) END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH
END CONVERSATION 'no handle'
PRINT 'not reached'`, `
n
1
8418
8433
Msg 8169, Level 16, State 2, Line 10
Conversion failed when converting from a character string to uniqueidentifier.`},
	{24, "ROLLBACK to a savepoint brings a received message back", own("r24") + `
SEND ON CONVERSATION @h (N'one')
BEGIN TRAN
SAVE TRAN s
RECEIVE TOP (1) @i = message_type_id FROM r24
PRINT @@ROWCOUNT
ROLLBACK TRAN s
RECEIVE TOP (1) @i = message_type_id FROM r24
PRINT @@ROWCOUNT
COMMIT
SELECT COUNT(*) AS n FROM r24`, "1\n1\nn\n0"},
}
