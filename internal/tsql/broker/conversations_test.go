package broker_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

const definitions = `
CREATE MESSAGE TYPE [//shop/Order] VALIDATION = WELL_FORMED_XML
CREATE MESSAGE TYPE [//shop/Done] VALIDATION = NONE
CREATE CONTRACT [//shop/Contract] ([//shop/Order] SENT BY INITIATOR, [//shop/Done] SENT BY TARGET)
CREATE QUEUE ShopQueue
CREATE QUEUE dbo.[OrderQueue] WITH STATUS = ON, RETENTION = OFF
CREATE SERVICE [//shop/Shop] ON QUEUE shopqueue
CREATE SERVICE [//shop/Orders] AUTHORIZATION dbo ON QUEUE OrderQueue ([//shop/Contract], [DEFAULT])
`

// A dialog goes from its begin to its end; each rule stands on what the one before left.
func TestADialogRunsAsInSQLServer(t *testing.T) {
	t.Parallel()
	r := newRunner(t, parleytest.Database(t))
	r.expect("definitions print nothing", definitions, "")
	r.expect("a name is taken in any case of letters", "CREATE QUEUE SHOPQUEUE\nGO\nCREATE QUEUE ShopQueue\nGO\nCREATE MESSAGE TYPE [//shop/Order]",
		"Msg 2714, Level 16, State 6, Line 1\nThere is already an object named 'SHOPQUEUE' in the database.\n"+
			"Msg 2714, Level 16, State 6, Line 1\nThere is already an object named 'ShopQueue' in the database.\n"+
			"Msg 2714, Level 16, State 6, Line 1\nThere is already an object named '//shop/Order' in the database.")
	r.expect("a message arrives, and the variables have its columns", `
DECLARE @h uniqueidentifier, @type sysname, @body nvarchar(max), @order bigint, @n int
BEGIN TRANSACTION
BEGIN DIALOG CONVERSATION @h FROM SERVICE [//shop/Shop] TO SERVICE N'//shop/Orders', 'current database' ON CONTRACT [//shop/Contract] WITH ENCRYPTION = OFF, LIFETIME = 3600
;SEND ON CONVERSATION @h MESSAGE TYPE [//shop/Order] (N'<order>é</order>')
COMMIT
RECEIVE TOP (1) @h = Conversation_Handle, @type = message_type_name, @body = message_body FROM orderQUEUE
SET @n = @@ROWCOUNT
PRINT CONCAT(@n, ' ', @type, ' ', @body);
SEND ON CONVERSATION @h MESSAGE TYPE [//shop/Done] (0x0102)
END CONVERSATION @h
GO
RECEIVE message_type_name AS kind, CAST(message_body AS varbinary(10)) AS body, validation, message_sequence_number FROM ShopQueue
GO
DECLARE @h uniqueidentifier, @old int = 5
WAITFOR (RECEIVE @h = conversation_handle FROM ShopQueue), TIMEOUT 50
PRINT @@ROWCOUNT
RECEIVE @old = 1 FROM ShopQueue
PRINT @old`, `
1 //shop/Order <order>é</order>
kind body validation message_sequence_number
//shop/Done 0x0102 N 0
http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog NULL E 1
(2 rows affected)
0
5`)
	r.expect("a wait that ends gives an empty result", "WAITFOR (RECEIVE message_body FROM ShopQueue), TIMEOUT 20", "message_body\n(0 rows affected)")
	r.expect("errors keep their number, and end their statement alone", `
DECLARE @h uniqueidentifier
END CONVERSATION @h
END CONVERSATION '11111111-2222-3333-4444-555555555555'
BEGIN DIALOG @h FROM SERVICE [//shop/shop] TO SERVICE '//shop/Orders'
BEGIN DIALOG @h FROM SERVICE [//shop/Shop] TO SERVICE '//shop/Orders' ON CONTRACT none
BEGIN DIALOG @h FROM SERVICE [//shop/Shop] TO SERVICE '//shop/Orders' WITH ENCRYPTION = OFF;
DECLARE @nothing varbinary(max)
SEND ON CONVERSATION @h (@nothing)
SEND ON CONVERSATION @h MESSAGE TYPE [//shop/Done] ('x')
SEND ON CONVERSATION @h ('x')
END CONVERSATION @h
SEND ON CONVERSATION @h ('x')
DECLARE @n int
RECEIVE @h = conversation_handle FROM OrderQueue
END CONVERSATION @h
RECEIVE * FROM missing`, `
Msg 8418, Level 16, State 1, Line 3
The conversation handle is missing. Specify a conversation handle.
Msg 8426, Level 16, State 1, Line 4
The conversation handle "<guid>" is not found.
Msg 8423, Level 16, State 1, Line 5
The service "//shop/shop" is not found.
Msg 8425, Level 16, State 1, Line 6
The service contract 'none' is not found.
Msg 8433, Level 16, State 1, Line 9
The message body may not be NULL. A zero-length UNICODE or binary string is allowed.
Msg 8431, Level 16, State 1, Line 10
The message type '//shop/Done' is not part of the service contract.
Msg 8429, Level 16, State 1, Line 13
The conversation endpoint is not in a valid state for SEND. The current endpoint state is 'DO'.
Msg 208, Level 16, State 1, Line 17
Invalid object name 'missing'.`)
	r.expect("no body is NULL, an empty one too, and many handles get one message", `
DECLARE @a uniqueidentifier, @b uniqueidentifier, @n int, @l int
BEGIN DIALOG @a FROM SERVICE [//shop/Shop] TO SERVICE '//shop/Orders' WITH ENCRYPTION = OFF
BEGIN DIALOG @b FROM SERVICE [//shop/Shop] TO SERVICE '//shop/Orders' WITH ENCRYPTION = OFF, RELATED_CONVERSATION = @a;
SEND ON CONVERSATION (@a, @b)
SEND ON CONVERSATION (@a) (N'')
RECEIVE TOP (2) @l = ISNULL(DATALENGTH(message_body), -1), @n = message_type_id FROM OrderQueue
PRINT CONCAT(@n, ' ', @l)
RECEIVE @l = ISNULL(DATALENGTH(message_body), -1) FROM OrderQueue
PRINT @l
END CONVERSATION @a WITH ERROR = 7 DESCRIPTION = N'no ü'
DECLARE @h uniqueidentifier, @x xml, @mark varbinary(2)
RECEIVE @h = conversation_handle, @x = message_body, @mark = CAST(message_body AS varbinary(2)) FROM OrderQueue
PRINT CONVERT(varchar(10), @mark, 1)
PRINT @x.value('declare namespace e="http://schemas.microsoft.com/SQL/ServiceBroker/Error"; (/e:Error/e:Code)[1]', 'int')
PRINT @x.value('declare namespace e="http://schemas.microsoft.com/SQL/ServiceBroker/Error"; (/e:Error/e:Description)[1]', 'nvarchar(50)')
END CONVERSATION @h WITH CLEANUP`, "14 -1\n-1\n0xFFFE\n7\nno ü")
}

func TestReceiveInATransactionThatRollsBack(t *testing.T) {
	t.Parallel()
	r := newRunner(t, parleytest.Database(t))
	r.run(definitions)
	r.expect("the message is there again", `
DECLARE @h uniqueidentifier, @g uniqueidentifier, @n int
BEGIN DIALOG @h FROM SERVICE [//shop/Shop] TO SERVICE '//shop/Orders' WITH ENCRYPTION = OFF;
SEND ON CONVERSATION @h (N'one')
BEGIN TRAN
RECEIVE @n = message_type_id FROM OrderQueue
PRINT @@ROWCOUNT
ROLLBACK
BEGIN TRAN
GET CONVERSATION GROUP @g FROM OrderQueue
IF @g IS NULL PRINT 'none' ELSE PRINT 'a group'
RECEIVE @n = message_type_id FROM OrderQueue WHERE conversation_group_id = @g
PRINT @@ROWCOUNT
COMMIT
WAITFOR (GET CONVERSATION GROUP @g FROM OrderQueue), TIMEOUT 10
IF @g IS NULL PRINT 'none' ELSE PRINT 'a group'`, "1\na group\n1\nnone")
	r.expect("an error in TRY leaves the transaction, a doomed one refuses to write", `
DECLARE @h uniqueidentifier
BEGIN TRAN
BEGIN TRY
  END CONVERSATION '11111111-2222-3333-4444-555555555555'
END TRY
BEGIN CATCH
  PRINT CONCAT(ERROR_NUMBER(), ' ', XACT_STATE())
END CATCH
BEGIN TRY
  SET @h = N'no handle'
END TRY
BEGIN CATCH
  PRINT CONCAT(ERROR_NUMBER(), ' ', XACT_STATE());
  RECEIVE * FROM OrderQueue
END CATCH`, `
8426 1
8169 -1
Msg 3930, Level 16, State 1, Line 15
The current transaction cannot be committed and cannot support operations that write to the log file. Roll back the transaction.`)
}

func TestEachDefinitionHasItsStatement(t *testing.T) {
	t.Parallel()
	r := newRunner(t, parleytest.Database(t))
	r.run(definitions)
	r.expect("alter and drop print nothing", `
ALTER MESSAGE TYPE [//shop/Order] VALIDATION = EMPTY
ALTER QUEUE ShopQueue WITH STATUS = OFF, POISON_MESSAGE_HANDLING (STATUS = OFF)
ALTER QUEUE ShopQueue WITH STATUS = ON
CREATE QUEUE spare
ALTER SERVICE [//shop/Orders] ON QUEUE spare (DROP CONTRACT [DEFAULT])
ALTER SERVICE [//shop/Orders] (ADD CONTRACT [DEFAULT])
CREATE ROUTE r WITH SERVICE_NAME = N'//far/Service', BROKER_INSTANCE = N'D8D4D268-00A3-4C62-8F91-634B89C1E315', LIFETIME = 3600, ADDRESS = N'TCP://host:4022'
ALTER ROUTE r WITH ADDRESS = 'LOCAL'
CREATE BROKER PRIORITY p FOR CONVERSATION SET (CONTRACT_NAME = [//shop/Contract], LOCAL_SERVICE_NAME = ANY, REMOTE_SERVICE_NAME = N'//far/Service', PRIORITY_LEVEL = 7)
ALTER BROKER PRIORITY p FOR CONVERSATION SET (PRIORITY_LEVEL = DEFAULT)
CREATE SERVICE events ON QUEUE spare ([http://schemas.microsoft.com/SQL/Notifications/PostEventNotification])
CREATE EVENT NOTIFICATION n ON QUEUE ShopQueue FOR QUEUE_ACTIVATION TO SERVICE 'events', 'current database'
DROP EVENT NOTIFICATION n ON QUEUE ShopQueue
DROP BROKER PRIORITY p
DROP ROUTE r
DROP SERVICE [//shop/Orders]
DROP SERVICE [//shop/Shop]
DROP SERVICE events
DROP QUEUE IF EXISTS ShopQueue, none, spare
DROP CONTRACT [//shop/Contract]
DROP MESSAGE TYPE [//shop/Order]`, "")
	r.expect("what is not there is named", "DROP QUEUE none DROP SERVICE none", `
Msg 15151, Level 16, State 1, Line 1
Cannot drop the queue 'none', because it does not exist or you do not have permission.
Msg 15151, Level 16, State 1, Line 1
Cannot drop the service 'none', because it does not exist or you do not have permission.`)
	r.expect("what a definition, a right or a change needs is named as SQL Server names it", `CREATE CONTRACT c ([no type] SENT BY ANY)
CREATE SERVICE s ON QUEUE dbo.[no [queue]]]
CREATE EVENT NOTIFICATION n ON QUEUE none FOR QUEUE_ACTIVATION TO SERVICE 'events', 'current database'
ALTER SERVICE none ON QUEUE none
ALTER BROKER PRIORITY none FOR CONVERSATION SET (PRIORITY_LEVEL = 3)
CREATE BROKER PRIORITY p FOR CONVERSATION SET (CONTRACT_NAME = none)
CREATE SERVICE s ON QUEUE dbo.[no.queue]
CREATE SERVICE s ON QUEUE [d.b].none
CREATE SERVICE s ON QUEUE plain.[no]]queue]`, `
Msg 15151, Level 16, State 1, Line 1
Cannot find the message type 'no type', because it does not exist or you do not have permission.
Msg 15151, Level 16, State 1, Line 2
Cannot find the queue 'no [queue]', because it does not exist or you do not have permission.
Msg 15151, Level 16, State 1, Line 3
Cannot find the queue 'none', because it does not exist or you do not have permission.
Msg 15151, Level 16, State 1, Line 4
Cannot alter the service 'none', because it does not exist or you do not have permission.
Msg 15151, Level 16, State 1, Line 5
Cannot alter the broker priority 'none', because it does not exist or you do not have permission.
Msg 15151, Level 16, State 1, Line 6
Cannot find the contract 'none', because it does not exist or you do not have permission.
Msg 15151, Level 16, State 1, Line 7
Cannot find the queue 'no.queue', because it does not exist or you do not have permission.
Msg 15151, Level 16, State 1, Line 8
Cannot find the queue 'none', because it does not exist or you do not have permission.
Msg 15151, Level 16, State 1, Line 9
Cannot find the queue 'no]queue', because it does not exist or you do not have permission.`)
	r.expect("options of storage inform", "CREATE QUEUE q ON [PRIMARY] ALTER QUEUE q REBUILD", `
ON PRIMARY has no effect: PostgreSQL places the tables of the broker.
ALTER QUEUE REBUILD has no effect: the broker keeps its tables small by itself.`)
	r.expect("what has nothing here is refused by name", "CREATE MESSAGE TYPE m VALIDATION = VALID_XML WITH SCHEMA COLLECTION c",
		"Msg 40517, Level 16, State 1, Line 1\n'VALIDATION = VALID_XML WITH SCHEMA COLLECTION' is not supported by Parley.")
}
