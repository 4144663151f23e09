package conversation_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Tables that are only appended to have an end: an administrator says after how long.
func TestWhatWasDoneIsForgottenAfterItsRetention(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	for _, test := range []struct{ task, table, at, setting, row string }{
		{
			"audit", "parley_mail._p_audit", "at", "audit_retention",
			"insert into parley_mail._p_audit (at, role, operation, object) values (now() - $1::interval, 'a', 'b', 'c')",
		},
		{
			"operations forgotten", "parley_store._p_operation", "done_at", "audit_retention",
			"insert into parley_store._p_operation (done_at, system, operation, items, done_by) values (now() - $1::interval, 'mail', 'remove', 1, 'a')",
		},
		{
			"pressure forgotten", "parley_store._p_pressure_change", "changed_at", "pressure_retention",
			`insert into parley_store._p_pressure_change (changed_at, system, node, resource, event_id, from_level, to_level, measured, actions, message)
				values (now() - $1::interval, 'mail', 'n', 'r', 15004, 'NORMAL', 'HIGH', 1, '{}', 'm')`,
		},
	} {
		forget := func() int {
			return sqltest.Value[int](b.Session, "select done from parley_mail._p_maintain() where task = $1", test.task)
		}
		old := "366 days"
		if test.setting == "pressure_retention" {
			old = "91 days"
		}
		b.Exec("select parley_mail.alter_object('organization', 'organization', jsonb_build_object($1::text, null))", test.setting)
		b.Exec(test.row, old)
		b.Exec(test.row, "89 days")
		if got := forget(); got != 1 {
			t.Errorf("%s: %d rows are forgotten by default, want 1", test.task, got)
		}
		b.Exec("select parley_mail.alter_object('organization', 'organization', jsonb_build_object($1::text, 604800))", test.setting)
		b.Exec(test.row, "6 days")
		if got := forget(); got != 1 {
			t.Errorf("%s: %d rows are forgotten after a week, want 1", test.task, got)
		}
		sqltest.Equal(b.Session, 0, "select count(*) from "+test.table+" where "+test.at+" < now() - interval '1 week'")
		sqltest.Equal(b.Session, 1, "select count(*) from "+test.table+" where "+test.at+" < now() - interval '1 day'")
	}
}

func TestCountsOfDroppedQueuesAreAddedUp(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec(`do $$ begin
		for n in 1..105 loop
			perform parley.create_queue('q', kind => 'SIMPLE');
			perform parley.put('q', 'x'::text);
			perform parley.drop_queue('q', force => true);
		end loop;
	end $$`)
	sqltest.Equal(b.Session, 105, "select sum(enqueued) from parley._p_dropped_queue")
	sqltest.Equal(b.Session, true, "select count(*) < 10 from parley._p_dropped_queue")
}
