package broker_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// Errors of the broker have SQL Server's texts wherever the broker says what stands in them.
func TestErrorsOfDefinitionsHaveTheTextsOfSQLServer(t *testing.T) {
	t.Parallel()
	r := newRunner(t, parleytest.Database(t))
	r.expect("there are objects", `CREATE MESSAGE TYPE m
CREATE MESSAGE TYPE n
CREATE CONTRACT c (m SENT BY ANY)
CREATE CONTRACT e (m SENT BY ANY)
CREATE QUEUE q
CREATE QUEUE [q]]q]
CREATE SERVICE s ON QUEUE q (c)
CREATE SERVICE s2 ON QUEUE [q]]q] ([http://schemas.microsoft.com/SQL/Notifications/PostEventNotification])
CREATE BROKER PRIORITY p FOR CONVERSATION SET (CONTRACT_NAME = e, PRIORITY_LEVEL = 3)
CREATE REMOTE SERVICE BINDING b TO SERVICE '//x' WITH USER = dbo
CREATE EVENT NOTIFICATION v ON QUEUE q FOR QUEUE_ACTIVATION TO SERVICE 's2', 'current database'
GO
CREATE PROCEDURE work AS PRINT 1`, "")
	for _, c := range []struct{ statement, want string }{
		{"DROP QUEUE Q", "3716, Level 16: The queue 'q' cannot be dropped because it is bound to one or more service."},
		{"DROP QUEUE [q]]q]", "3716, Level 16: The queue 'q]q' cannot be dropped because it is bound to one or more service."},
		{"DROP CONTRACT c", "3716, Level 16: The contract 'c' cannot be dropped because it is bound to one or more service."},
		{"DROP CONTRACT e", "3716, Level 16: The contract 'e' cannot be dropped because it is bound to one or more conversation priority."},
		{"DROP MESSAGE TYPE m", "3716, Level 16: The message type 'm' cannot be dropped because it is bound to one or more contract."},
		{"DROP MESSAGE TYPE [DEFAULT]", "9663, Level 16: The system object cannot be modified."},
		{"CREATE CONTRACT d (m SENT BY TARGET)", "8492, Level 16: The service contract 'd' must have at least one message SENT BY INITIATOR or ANY."},
		{"CREATE CONTRACT d (m SENT BY ANY, m SENT BY TARGET)", "8403, Level 16: The message type 'm' is specified more than once. Remove the duplicate message type."},
		{"CREATE SERVICE t ON QUEUE q (c, c)", "8404, Level 16: The service contract 'c' is specified more than once. Remove the duplicate service contract."},
		{"CREATE QUEUE nowhere.q", `Msg 2760, Level 16, State 1, Line 1
The specified schema name "nowhere" either does not exist or you do not have permission to use it.`},
		{
			"CREATE QUEUE w WITH ACTIVATION (PROCEDURE_NAME = missing, MAX_QUEUE_READERS = 1, EXECUTE AS SELF)",
			"9614, Level 16: The queue 'w' cannot be activated because the activation stored procedure is either not specified or is invalid.",
		},
		{
			"ALTER QUEUE q WITH ACTIVATION (STATUS = ON, PROCEDURE_NAME = work, MAX_QUEUE_READERS = 1, EXECUTE AS SELF)",
			"9717, Level 16: Cannot enable stored procedure activation on queue 'q'. Event notification for queue_activation is already configured on this queue.",
		},
		{"CREATE ROUTE r WITH SERVICE_NAME = 's', ADDRESS = 'LOCAL', LIFETIME = 0", "9746, Level 16: The LIFETIME of route 'r' must be in the range 1 to 2147483647."},
		{
			"CREATE ROUTE r WITH BROKER_INSTANCE = 'D8D4D268-00A3-4C62-8F91-634B89C1E315', ADDRESS = 'LOCAL'",
			`9662, Level 16: Cannot specify BROKER_INSTANCE without SERVICE_NAME in route "r".`,
		},
		{"CREATE ROUTE r WITH SERVICE_NAME = 's', ADDRESS = 'TRANSPORT'", "9745, Level 16: The ADDRESS of route 'r' cannot be 'TRANSPORT' when SERVICE_NAME is specified."},
		{"CREATE REMOTE SERVICE BINDING b2 TO SERVICE '//y' WITH USER = missing", "9611, Level 16: Cannot find the specified user 'missing'."},
		{
			"CREATE REMOTE SERVICE BINDING b2 TO SERVICE '//x' WITH USER = dbo",
			"9619, Level 16: Failed to create remote service binding 'b2'. A remote service binding for service '//x' already exists.",
		},
		{
			"CREATE EVENT NOTIFICATION w ON QUEUE q FOR BROKER_QUEUE_DISABLED TO SERVICE 's', 'current database'",
			"8408, Level 16: Target service 's' does not support contract 'http://schemas.microsoft.com/SQL/Notifications/PostEventNotification'.",
		},
		{"CREATE EVENT NOTIFICATION w ON QUEUE q FOR CREATE_TABLE TO SERVICE 's2', 'current database'", "1084, Level 15: 'CREATE_TABLE' is an invalid event type."},
	} {
		r.expect(c.statement, "BEGIN TRY "+c.statement+" END TRY BEGIN CATCH PRINT CONCAT(ERROR_NUMBER(), ', Level ', ERROR_SEVERITY(), ': ', ERROR_MESSAGE()) END CATCH", c.want)
	}
}

func TestErrorsOfConversationsHaveTheTextsOfSQLServer(t *testing.T) {
	t.Parallel()
	r := newRunner(t, parleytest.Database(t))
	r.expect("there are services", "CREATE QUEUE q\nCREATE SERVICE s ON QUEUE q ([DEFAULT])", "")
	for _, c := range []struct{ statement, want string }{
		{"BEGIN DIALOG @n FROM SERVICE s TO SERVICE 's', 'nonsense'", "8413, Level 16: The syntax of the broker instance 'nonsense' is invalid. The specified broker instance is too long, the maximum size is 256 bytes."},
		{"BEGIN DIALOG @n FROM SERVICE s TO SERVICE ''", "8412, Level 16: The syntax of the service name '' is invalid."},
		{"SEND ON CONVERSATION (@h, '33333333-3333-3333-3333-33333333333A') (N'x')", `8435, Level 16: The conversation handle "<guid>" at position 2 is not found.`},
		{"SEND ON CONVERSATION (@h, @n) (N'x')", "8441, Level 16: The conversation handle at position 2 is missing. Specify a conversation handle."},
		{"SEND ON CONVERSATION (@h, @h) (N'x')", "8451, Level 16: The conversation handle '<guid>' at position 1 appears more than once."},
		{"RECEIVE TOP (-1) message_body FROM q", "127, Level 15: A TOP N or FETCH rowcount value may not be negative."},
	} {
		r.expect(c.statement, "DECLARE @h uniqueidentifier, @n uniqueidentifier\nBEGIN DIALOG @h FROM SERVICE s TO SERVICE 's' WITH ENCRYPTION = OFF\nBEGIN TRY; "+c.statement+
			" END TRY BEGIN CATCH PRINT CONCAT(ERROR_NUMBER(), ', Level ', ERROR_SEVERITY(), ': ', ERROR_MESSAGE()) END CATCH", c.want)
	}
}
