package services_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// The work and the waits of the code of one binding are a matter of its own mail.
func TestBindingThatFailsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBoundMail(t)
	b.Exec(`create table public.box (subject text);
		create function public.obey() returns trigger language plpgsql as $$
		begin
			if new.subject <> 'good' then
				raise exception 'it says %', new.subject using errcode = new.subject;
			end if;
			return new;
		end $$;
		create trigger obey before insert on public.inbox for each row execute function public.obey()`)
	b.Apply(`{"service binding": {"box": {"pattern": "box@example.org", "table": "public.box"}}}`)
	send := func(to string, subjects ...string) {
		t.Helper()
		b.Exec(`select parley_mail.send('ann', array[$1 || '@example.org'], s, 'x') from unnest($2::text[]) with ordinality as u (s, n) order by n`, to, subjects)
	}
	send("inbox", "53100", "57P01", "58030", "P0004", "good")
	send("box", "good")
	b.Exec("select parley_mail._p_categorize()")
	b.Deliver(2)
	sqltest.Equal(b.Session, "53100 1 it says 53100,57P01 1 it says 57P01,58030 1 it says 58030,P0004 1 it says P0004", `
		select string_agg(concat_ws(' ', subject, attempts, last_text), ',' order by subject) from parley_mail.waiting_recipients`)
	b.Exec("select parley_mail.remove_messages('{}')")

	// A table that somebody keeps locked is waited for once, and its mail is tried again.
	holder := b.Begin()
	holder.Exec("lock table public.inbox in access exclusive mode")
	send("inbox", "good", "good")
	send("box", "good")
	b.Exec("select parley_mail._p_categorize()")
	b.Deliver(1)
	sqltest.Equal(b.Session, "0,1 t", `
		select string_agg(concat_ws(' ', attempts, last_text like '%lock timeout%'), ',' order by attempts) from parley_mail.waiting_recipients`)
	sqltest.Equal(b.Session, "The target of the delivery is locked.", "select last_error from parley_mail.queues where queue = 'SERVICE/inbox/-'")
	sqltest.Equal(b.Session, "0", "show lock_timeout")
	send("box", "good")
	b.Exec("select parley_mail._p_categorize()")
	b.Deliver(1)
	holder.Rollback()
	b.Exec("select parley_mail.retry_messages('{}'), parley_mail.retry_queue('SERVICE/inbox/-')")
	b.Deliver(2)
	sqltest.Equal(b.Session, "3 3", "select concat_ws(' ', (select count(*) from public.inbox), (select count(*) from public.box))")

	// A message that makes a whole transaction fail is recorded by the daemon, which has delivered it by itself.
	send("inbox", "40001", "good", "57014")
	b.Exec("select parley_mail._p_categorize()")
	leases := sqltest.Value[[]int64](b.Session, "select parley_mail._p_claim_local()")
	if _, err := b.DB.Exec(b.Context(), "select parley_mail._p_deliver_local($1)", leases); err == nil || !strings.Contains(err.Error(), "SQLSTATE 40001") {
		t.Fatalf("delivered, with %v", err)
	}
	item := func(subject string) int64 {
		t.Helper()
		return sqltest.Value[int64](b.Session, `
			select w.item_id from parley_store.work_items as w join parley_mail._p_message as m on m.message_id = w.subject
			where w.state = 'IN_FLIGHT' and m.subject = $1`, subject)
	}
	b.Exec("select parley_mail._p_defer_local($1, $2, '40001', 'rolled back')", leases, item("40001"))
	b.Exec("select parley_mail._p_defer_local($1, $2, '57014', 'too long')", leases, item("57014"))
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_store.work_items where state = 'IN_FLIGHT'")
	sqltest.Equal(b.Session, "40001 1 rolled back,57014 1 too long,good 0", `
		select string_agg(concat_ws(' ', subject, attempts, last_text), ',' order by subject) from parley_mail.waiting_recipients`)
	b.Exec("select parley_mail.retry_queue('SERVICE/inbox/-')")
	b.Deliver(1)
	// A message that waited as long as it may is given up.
	b.Exec("select parley_mail.retry_messages('{}')")
	leases = sqltest.Value[[]int64](b.Session, "select parley_mail._p_claim_local()")
	b.Exec("update parley_store._p_in_flight set expires_at = now() - interval '1 second'")
	b.Exec("select parley_mail._p_defer_local($1, $2, '40001', 'rolled back')", leases, item("40001"))
	sqltest.Equal(b.Session, "5.4.7 rolled back", "select string_agg(concat_ws(' ', status, reason), ',') from parley_mail._p_report where status like '5.4%'")
}

// A daemon that dies between two transactions of a delivery leaves the rest to others within seconds, and not to the end of a long lease.
func TestRestOfADeliveryIsTakenOverSoon(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBoundMail(t)
	b.Exec("select parley_mail.send('ann', array['inbox@example.org'], s, 'x') from unnest('{one,two}'::text[]) as u (s)")
	b.Exec("select parley_mail._p_categorize()")
	leases := sqltest.Value[[]int64](b.Session, "select parley_mail._p_claim_local()")
	b.Exec(`
		select parley_mail._p_deliver_local($1, array(select min(w.item_id) from parley_store.work_items as w where w.lease_id = any ($1)), array[null::bytea])`, leases)
	sqltest.Equal(b.Session, "1 1 t", `
		select concat_ws(' ', (select count(*) from public.inbox), count(*), max(e.until) < clock_timestamp() + interval '1 minute')
		from parley_store._p_lease as e
		join parley_store.work_items as w using (lease_id)
		where e.lease_id = any ($1)`, leases)
}
