package runner_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// Scripts that watch a server ask what each session does, with its text.
func TestRequestsHaveTheirTexts(t *testing.T) {
	t.Parallel()
	play := open(t, parleytest.Database(t).Config().ConnConfig)
	expect(t, "of the session itself", play(`SELECT r.session_id - @@SPID AS own, r.status, r.command, r.wait_time, r.blocking_session_id, r.reads, LEFT(t.text, 6) AS text, t.dbid
FROM sys.dm_exec_requests AS r CROSS APPLY sys.dm_exec_sql_text(r.sql_handle) AS t WHERE r.session_id = @@SPID`),
		"own status command wait_time blocking_session_id reads text dbid\n0 running SELECT 0 0 0 select NULL\n(1 rows affected)")
	expect(t, "of its connection", play(`SELECT COUNT(t.text) AS n FROM sys.dm_exec_connections AS c
OUTER APPLY sys.dm_exec_sql_text(c.most_recent_sql_handle) AS t WHERE c.session_id = @@SPID`), "n\n1\n(1 rows affected)")
	expect(t, "of a handle that is none", play("SELECT COUNT(*) AS n FROM sys.dm_exec_sql_text(0x00)"), "n\n0\n(1 rows affected)")
}

// sys.events has the events of notifications and of triggers.
func TestEventsAreThoseOfNotificationsAndTriggers(t *testing.T) {
	t.Parallel()
	play := open(t, parleytest.Database(t).Config().ConnConfig)
	expect(t, "definitions", play(`CREATE QUEUE work CREATE QUEUE heard
CREATE SERVICE Hears ON QUEUE heard ([http://schemas.microsoft.com/SQL/Notifications/PostEventNotification])
CREATE TABLE t (n int)
GO
CREATE TRIGGER tr ON t AFTER INSERT, DELETE AS PRINT 'x'
GO
CREATE EVENT NOTIFICATION n ON QUEUE work FOR QUEUE_ACTIVATION TO SERVICE 'Hears', 'current database'`), "")
	expect(t, "all", play("SELECT type, type_desc, is_trigger_event FROM sys.events ORDER BY type"),
		"type type_desc is_trigger_event\n1 INSERT 1\n3 DELETE 1\n173 QUEUE_ACTIVATION 0\n(3 rows affected)")
	expect(t, "of a notification", play("SELECT n.name, e.type_desc FROM sys.event_notifications AS n JOIN sys.events AS e ON e.object_id = n.object_id"),
		"name type_desc\nn QUEUE_ACTIVATION\n(1 rows affected)")
}

// The procedure of a queue has the letters that its definition has, as in sys.procedures.
func TestActivationProceduresHaveTheLettersOfTheirDefinition(t *testing.T) {
	t.Parallel()
	play := open(t, parleytest.Database(t).Config().ConnConfig)
	expect(t, "definitions", play(`CREATE PROCEDURE dbo.AnswerOrders AS RETURN
GO
CREATE QUEUE orders WITH ACTIVATION (PROCEDURE_NAME = dbo.answerorders, MAX_QUEUE_READERS = 1, EXECUTE AS OWNER)`), "")
	expect(t, "the procedure", play("SELECT q.activation_procedure, p.name FROM sys.service_queues AS q JOIN sys.procedures AS p ON p.object_id = OBJECT_ID(q.activation_procedure)"),
		"activation_procedure name\n[dbo].[AnswerOrders] AnswerOrders\n(1 rows affected)")
}
