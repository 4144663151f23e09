package sql_test

import "testing"

// What is only appended to has an end: an administrator says after how long.
func TestWhatWasDoneIsForgottenAfterItsRetention(t *testing.T) {
	t.Parallel()
	b := newMail(t)
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
			return value[int](b.session, "select done from parley_mail._p_maintain() where task = $1", test.task)
		}
		old := "366 days"
		if test.setting == "pressure_retention" {
			old = "91 days"
		}
		b.exec("select parley_mail.alter_object('organization', 'organization', jsonb_build_object($1::text, null))", test.setting)
		b.exec(test.row, old)
		b.exec(test.row, "89 days")
		if got := forget(); got != 1 {
			t.Errorf("%s: %d rows are forgotten by default, want 1", test.task, got)
		}
		b.exec("select parley_mail.alter_object('organization', 'organization', jsonb_build_object($1::text, 604800))", test.setting)
		b.exec(test.row, "6 days")
		if got := forget(); got != 1 {
			t.Errorf("%s: %d rows are forgotten after a week, want 1", test.task, got)
		}
		equal(b.session, 0, "select count(*) from "+test.table+" where "+test.at+" < now() - interval '1 week'")
		equal(b.session, 1, "select count(*) from "+test.table+" where "+test.at+" < now() - interval '1 day'")
	}
}

func TestCountsOfDroppedQueuesAreAddedUp(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec(`do $$ begin
		for n in 1..105 loop
			perform parley.create_queue('q', kind => 'SIMPLE');
			perform parley.put('q', 'x'::text);
			perform parley.drop_queue('q', force => true);
		end loop;
	end $$`)
	equal(b.session, 105, "select sum(enqueued) from parley._p_dropped_queue")
	equal(b.session, true, "select count(*) < 10 from parley._p_dropped_queue")
}
