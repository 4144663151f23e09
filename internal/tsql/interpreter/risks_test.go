package interpreter

import "testing"

func TestExamplesOfTheDocumentation(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"RAISERROR fills its places", "RAISERROR (N'This is message %s %d.', 10, 1, N'number', 5); RAISERROR (N'<<%*.*s>>', 10, 1, 7, 3, N'abcde'); RAISERROR (N'<<%7.3s>>', 10, 1, N'abcde');", "This is message number 5.\n<<    abc>>\n<<    abc>>"},
		{"NOWAIT shows it at once", "RAISERROR('now', 0, 1) WITH NOWAIT", "now"},
		{"a precedence of text and int", "DECLARE @notastring INT;\nSET @notastring = '1';\nSELECT @notastring + ' is not a string.' AS Result", "Result\nMsg 245, Level 16, State 1, Line 3\nConversion failed when converting the varchar value ' is not a string.' to data type int."},
		{"a text takes an int", "DECLARE @string VARCHAR(10); SET @string = 1; SELECT @string + ' is a string.' AS Result", "Result\n1 is a string.\n(1 rows affected)"},
		{"styles of binary", "SELECT CONVERT(CHAR(8), 0x4E616d65, 1) AS a, CONVERT(CHAR(8), 0x4E616d65, 2) AS b, CONVERT(BINARY(8), 'Name', 0) AS c, CONVERT(BINARY(4), '0x4E616D65', 1) AS d", "a        b        c                  d\n0x4E616D 4E616D65 0x4E616D6500000000 0x4E616D65\n(1 rows affected)"},
		{"dates of ISO 8601", "SELECT CAST('2006-04-25T15:50:59.997' AS datetime) AS d, CONVERT(nvarchar(30), CAST('2006-04-25T15:50:59.997' AS datetime), 126) AS t", "d                       t\n2006-04-25 15:50:59.997 2006-04-25T15:50:59.997\n(1 rows affected)"},
		{"white space of xml", "SELECT CONVERT(XML, '<root>  <child/> </root>', 1) AS x PRINT CONVERT(varchar(50), CONVERT(XML, '<root>  <child/> </root>'))", "x\n<root>  <child/> </root>\n(1 rows affected)\n<root><child/></root>"},
		{"the class of THROW", "BEGIN TRY THROW 51000, 'The record does not exist.', 1 END TRY BEGIN CATCH PRINT CONCAT(ERROR_NUMBER(), ' ', ERROR_SEVERITY(), ' ', ERROR_STATE()) END CATCH", "51000 16 1"},
	})
}

// These are the cases in which the fast answer is wrong, as far as they need no table.
func TestTheFastAnswerIsNotGiven(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"RETURN, COMMIT and SET options give 0 rows", "DECLARE @i int SET @i = 1 BEGIN TRAN PRINT @@ROWCOUNT SET @i = 1 SET XACT_ABORT OFF PRINT @@ROWCOUNT COMMIT", "0\n0"},
		{"EXEC keeps the row count of the last statement", "CREATE PROCEDURE #p AS DECLARE @i int SET @i = 1\nGO\nEXEC #p PRINT @@ROWCOUNT", "1"},
		{
			"an odd body as nvarchar is garbage and no error", "DECLARE @b varbinary(max) = 0x410042 SELECT DATALENGTH(CAST(@b AS nvarchar(max))) AS n, LEN(CAST(CAST(N'ab' AS varbinary(max)) AS varchar(10))) AS m",
			"n                    m\n4           4\n(1 rows affected)",
		},
		{"the body of xml has its mark", "DECLARE @x xml = '<a/>' PRINT CONVERT(varchar(50), CAST(@x AS varbinary(max)), 1)", "0xFFFE3C0061002F003E00"},
		{"a handle is written in capitals with 36 characters", "DECLARE @h uniqueidentifier = '0e984725-c51c-4bf4-9960-e1c80e27aba0' PRINT @h PRINT LEN(@h)", "0E984725-C51C-4BF4-9960-E1C80E27ABA0\n36"},
		{"a bad handle ends the batch with 8169", "DECLARE @h uniqueidentifier = N'no handle' PRINT 'not reached'", "Msg 8169, Level 16, State 2, Line 1\nConversion failed when converting from a character string to uniqueidentifier."},
		{"blanks at the end do not count in =, but in LIKE", "IF 'a' = 'A ' PRINT 'equal' IF 'a' LIKE 'A ' PRINT 'like'", "equal"},
		{"an integer never becomes wider", "DECLARE @i int = 2147483647 SET @i = @i + 1 PRINT @i", "Msg 8115, Level 16, State 2, Line 1\nArithmetic overflow error converting expression to data type int.\n2147483647"},
		{"a value too wide for tinyint is 220", "DECLARE @i tinyint = 300 PRINT ISNULL(CAST(@i AS varchar(5)), 'null')", "Msg 220, Level 16, State 2, Line 1\nArithmetic overflow error for data type tinyint, value = 300.\nnull"},
		{"NULL + text is NULL, CONCAT is not", "DECLARE @s varchar(10) SET @s = 'a' + NULL PRINT ISNULL(@s, 'null') PRINT CONCAT('a', NULL)", "null\na"},
		{"ISNULL takes the length of its first argument", "DECLARE @s varchar(3) PRINT ISNULL(@s, 'abcdef') PRINT COALESCE(@s, 'abcdef')", "abc\nabcdef"},
		{"the empty text is 0 and 1900", "DECLARE @i int = '', @d datetime = '' PRINT @i PRINT @d", "0\nJan  1 1900 12:00AM"},
		{"DATEDIFF counts boundaries", "PRINT DATEDIFF(second, '2006-10-14T13:22:25.061', '2006-10-14T13:22:57.108')", "32"},
		{
			"marshalled values come back", "DECLARE @d datetime = '2006-10-14T13:22:25.061', @p varbinary(max) = 0x0A0B, @u nvarchar(256) = N'user'\n" +
				"DECLARE @n bigint = DATALENGTH(@p), @l int = DATALENGTH(@u)\n" +
				"DECLARE @m varbinary(max) = CAST(@d AS varbinary(max)) + CAST(@n AS varbinary(max)) + @p + CAST(@l AS varbinary(max)) + CAST(@u AS varbinary(max))\n" +
				"DECLARE @k bigint = CAST(SUBSTRING(@m, 9, 8) AS bigint)\n" +
				"SELECT CAST(SUBSTRING(@m, 1, 8) AS datetime) AS d, @k AS k, CAST(SUBSTRING(@m, @k + 17, 4) AS int) AS l, CAST(SUBSTRING(@m, @k + 21, 8) AS nvarchar(4)) AS u",
			"d                       k                    l           u\n2006-10-14 13:22:25.060                    2           8 user\n(1 rows affected)",
		},
		{"SET options outlive the batch, variables do not", "SET NOCOUNT ON\nGO\nSELECT 1 AS n", "n\n1"},
		{"a float is printed with 6 digits and shown with 15", "DECLARE @f float = 312.051426075017 PRINT @f SELECT @f AS f", "312.051\nf\n312.051426075017\n(1 rows affected)"},
		{"money is printed with 2 digits and shown with 4", "DECLARE @m money = 1234.5678 PRINT @m SELECT @m AS m", "1234.57\nm\n1234.5678\n(1 rows affected)"},
		{"two rows for a variable are the Translator's", "DECLARE @i int SET @i = (SELECT 1 UNION SELECT 2)", "Msg 40517, Level 16, State 1, Line 1\n'a subquery' is not supported by Parley."},
		{"a failed SELECT in TRY leaves an empty result", "BEGIN TRY SELECT 1/0 AS x END TRY BEGIN CATCH PRINT ERROR_MESSAGE() END CATCH", "x\n(0 rows affected)\nDivide by zero error encountered."},
		{
			"xml gives its parts", "DECLARE @x xml = N'<Order Id=\"7\"><Item>a</Item><Item>b</Item></Order>', @n int = 2\nSELECT @x.value('(/Order/@Id)[1]', 'int') AS id, @x.value('(/Order/Item[sql:variable(\"@n\")])[1]', 'nvarchar(5)') AS item, @x.exist('//Item[.=\"c\"]') AS c, @x.query('/Order/Item[1]') AS part",
			"id          item  c    part\n7 b     0    <Item>a</Item>\n(1 rows affected)",
		},
		{"xml refuses what may be several", "DECLARE @x xml = '<a/>'\nPRINT @x.value('/a/b', 'int')", "Msg 2389, Level 16, State 1, Line 2\nXQuery [value()]: 'value()' requires a singleton (or empty sequence), found operand of type 'xdt:untypedAtomic *'"},
		{"CREATE PROCEDURE takes the rest of the batch", "CREATE PROCEDURE #p AS PRINT 'a'\nPRINT 'b'\nGO\nEXEC #p", "a\nb"},
		{"and stands first", "PRINT 'a'\nCREATE PROCEDURE #p AS PRINT 'b'", "Msg 111, Level 15, State 1, Line 2\n'CREATE PROCEDURE' must be the first statement in a query batch."},
	})
}
