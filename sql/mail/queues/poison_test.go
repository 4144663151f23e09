package queues_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// died has a backend end in the midst of a transaction, as a crash would end it: nothing of the transaction is left, and nobody says why.
func died(b *sqltest.Broker, statement string, arguments ...any) {
	b.Helper()
	dying := b.Begin()
	pid := sqltest.Value[int](dying, "select pg_backend_pid()")
	dying.Exec(statement, arguments...)
	sqltest.Equal(b.Session, true, "select pg_terminate_backend($1)", pid)
	b.WaitUntil("select not exists (select from pg_stat_activity where pid = $1)", pid)
	_, _ = dying.DB.Exec(b.Context(), "rollback")
}

// begun takes messages from the submission queue, as a daemon does; 0 when there are none.
func begun(b *sqltest.Broker) int64 {
	b.Helper()
	return sqltest.Value[int64](b.Session, "select coalesce(parley_mail._p_begin_categorizing(100), 0)")
}

func TestMessageOfWhichTwoCategorizersDieIsPoison(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	var ids [3]int64
	for i := range ids {
		ids[i] = b.Arriving("x@example.com", fmt.Sprintf("y%d@example.net", i))
	}
	const categorize = "select parley_mail._p_categorize_begun($1)"
	died(b, categorize, begun(b))
	sqltest.Equal(b.Session, "ACTIVE", "select string_agg(distinct status, ',') from parley_mail.messages")
	// The record is not lost with the transaction, and is not somebody else's while it is new, or held.
	if run := begun(b); run != 0 {
		t.Fatalf("run %d was taken over at once", run)
	}
	old := func() {
		b.Exec("update parley_mail._p_categorizing set begun_at = begun_at - interval '1 minute'")
	}
	old()
	holder := b.Begin()
	holder.Exec("select from parley_mail._p_categorizing for update")
	if run := begun(b); run != 0 {
		t.Fatalf("run %d was taken over while somebody works on it", run)
	}
	holder.Rollback()
	// From then on each is categorized alone, one at a time.
	tx := b.Begin()
	first := sqltest.Value[int64](tx, "select coalesce(parley_mail._p_begin_categorizing(100), 0)")
	// An advisory lock anybody could hold, and nobody would be a suspect any more.
	sqltest.Equal(tx, 0, `select count(*)::int from pg_locks
		where locktype = 'advisory' and pid = pg_backend_pid()`)
	if run := begun(b); run != 0 {
		t.Fatalf("run %d was begun while somebody has the turn", run)
	}
	tx.Commit()
	if first == 0 || begun(b) != 0 {
		t.Fatal("two suspects were begun at once")
	}
	poison := sqltest.Value[int64](b.Session, "select message_ids[1] from parley_mail._p_categorizing where run_id = $1 and cardinality(message_ids) = 1", first)
	died(b, categorize, first)
	old()
	for range 2 {
		b.Exec(categorize, begun(b))
	}
	sqltest.Equal(b.Session, fmt.Sprint(poison, " SUSPENDED The daemon that categorized it has died twice."), `
		select message_id || ' ' || status || ' ' || last_error from parley_mail.messages where queue = 'POISON/-/-'`)
	sqltest.Equal(b.Session, 2, "select count(*)::int from parley_mail._p_recipient")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_categorizing")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley_mail.tracking where event_id = 'POISONMESSAGE'")
	// An operator has it categorized anew, or removes it with a report.
	sqltest.Equal(b.Session, 1, `select parley_mail.resume_messages('{"queue": "POISON"}')`)
	b.Categorize("1 0 0")
	sqltest.Equal(b.Session, 3, "select count(*)::int from parley_mail._p_recipient")
	_ = ids
}

// That a batch is rolled back again and again when it is taken, as where servers are killed, is of one message at most: each comes alone.
func TestBatchThatWasThereWhenServersDiedIsCategorizedOneByOne(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec("select parley_mail.send_batch('ann', array['a@example.com', 'b@example.com'], 'a', 'b')")
	for range 2 {
		dying := b.Begin()
		dying.Exec("select parley_mail._p_categorize()")
		dying.Rollback()
	}
	b.Categorize("0 0 0")
	b.Exec("select parley_mail._p_maintain()")
	const categorize = "select parley_mail._p_categorize_begun($1)"
	first := begun(b)
	poison := sqltest.Value[int64](b.Session, "select message_ids[1] from parley_mail._p_categorizing where run_id = $1 and cardinality(message_ids) = 1", first)
	died(b, categorize, first)
	b.Exec("update parley_mail._p_categorizing set begun_at = begun_at - interval '1 minute'")
	for range 2 {
		b.Exec(categorize, begun(b))
	}
	sqltest.Equal(b.Session, poison, "select message_id from parley_mail.messages where queue = 'POISON/-/-'")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley_mail._p_recipient")
}

// A death costs a large batch no hour of categorizing one by one: it is divided twice.
func TestLargeBatchOfWhichSomebodyDiedIsDividedTwice(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec("insert into parley_mail._p_categorizing (message_ids, begun_at) select array_agg(i), now() - interval '1 minute' from generate_series(1, 250) as i")
	sqltest.Equal(b.Session, 250, "select parley_mail._p_divide_lost_runs()")
	sqltest.Equal(b.Session, "3 250 1", "select concat_ws(' ', count(*), sum(cardinality(message_ids)), max(deaths)) from parley_mail._p_categorizing")
	b.Exec("update parley_mail._p_categorizing set begun_at = now() - interval '1 minute'")
	sqltest.Equal(b.Session, 250, "select parley_mail._p_divide_lost_runs()")
	sqltest.Equal(b.Session, "250 1 0", "select concat_ws(' ', count(*), max(deaths), (select count(*) from parley_store.work_items)) from parley_mail._p_categorizing")
}

func TestCategorizerThatFailsAndLivesCountsNoDeath(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Arriving("x@example.com", "y@example.net")
	for range 3 {
		run := begun(b)
		dying := b.Begin()
		dying.Exec("select parley_mail._p_categorize_begun($1)", run)
		dying.Rollback()
		b.Exec("select parley_mail._p_give_back_begun($1)", run)
	}
	b.Categorize("1 0 0")
	if got := b.StatusOf(id); got != "DNS READY" {
		t.Errorf("it is %s", got)
	}
}

func TestMessageOfWhichTwoDeliveriesDieIsPoison(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBoundMail(t)
	for _, subject := range []string{"one", "two"} {
		b.Exec("select parley_mail.send('ann', array['inbox@example.org'], $1, 'text')", subject)
	}
	b.Exec("select parley_mail._p_categorize()")
	claim := func() []int64 {
		b.Helper()
		return sqltest.Value[[]int64](b.Session, "select parley_mail._p_claim_local(100)")
	}
	const deliver = "select parley_mail._p_deliver_local($1)"
	lose := func() {
		b.Helper()
		b.Exec("update parley_store._p_lease set until = now() - interval '1 second'")
		b.Exec("select parley_mail._p_maintain()")
	}
	died(b, deliver, claim())
	lose()
	sqltest.Equal(b.Session, 0, "select count(*)::int from public.inbox")
	sqltest.Equal(b.Session, 2, "select count(*)::int from parley_mail.tracking where event_id = 'LOAD'")
	// Each alone, one at a time of all daemons: the one of which somebody dies again is poison, the other is delivered, once.
	suspect := claim()
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley_store.work_items where state = 'IN_FLIGHT'")
	poison := sqltest.Value[int64](b.Session, "select subject from parley_store.work_items where state = 'IN_FLIGHT'")
	undelayed(b, "mail_service")
	if second := claim(); len(second) > 0 {
		t.Fatal("two suspects are delivered at once")
	}
	died(b, deliver, suspect)
	lose()
	sqltest.Equal(b.Session, fmt.Sprint(poison, " SUSPENDED"), "select message_id || ' ' || status from parley_mail.messages where queue = 'POISON/-/-'")
	undelayed(b, "mail_service")
	for range 3 {
		b.Exec(deliver, claim())
	}
	sqltest.Equal(b.Session, 1, "select count(*)::int from public.inbox")
	sqltest.Equal(b.Session, 1, `select parley_mail.remove_messages('{"queue": "POISON"}')`)
	sqltest.Equal(b.Session, "inbox@example.org 5.7.0", "select string_agg(address || ' ' || status, ',') from parley_mail._p_report")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_recipient")
	// Messages that could not be delivered, without a death, are given back.
	b.Exec("select parley_mail.send('ann', array['inbox@example.org'], 'three', 'text')")
	b.Exec("select parley_mail._p_categorize()")
	for range 3 {
		b.Exec("select parley_mail._p_release_local($1)", claim())
	}
	b.Exec(deliver, claim())
	sqltest.Equal(b.Session, 2, "select count(*)::int from public.inbox")
}

// undelayed has items that wait for a time claimed at once.
func undelayed(b *sqltest.Broker, system string) {
	b.Helper()
	b.Exec(`select parley_store.retry_work_now($1, '{"state": "DELAYED"}')`, system)
}

// A daemon is killed for many reasons: of what it had in its hands only the message of which it dies again, alone, is poison.
func TestMessageOfWhichTwoSendersDieIsPoison(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	const lane, other = "DNS/internet/b.example", "DNS/internet/c.example"
	b.Exec("select parley_mail._p_set_hops(array[$1, $2])", lane, other)
	send := func(lane string, count int) {
		for range count {
			b.Delivery(lane, "", "x@b.example")
		}
	}
	lose := func(leases string) {
		b.Helper()
		b.Exec("update parley_store._p_lease set until = now() - interval '1 second' where " + leases)
		b.Exec("select parley_mail._p_maintain()")
		undelayed(b, "mail")
	}
	deaths := func(want string) {
		b.Helper()
		sqltest.Equal(b.Session, want, "select string_agg(deaths || ' ' || lane, ',' order by message_id) from parley_mail._p_recipient")
	}
	claimOne := func() sqltest.Claimed {
		b.Helper()
		batch := b.ClaimMail(10, 20)
		if len(batch) != 1 {
			t.Fatalf("%d messages come together", len(batch))
		}
		undelayed(b, "mail")
		return batch[0]
	}
	none := func() {
		b.Helper()
		if batch := b.ClaimMail(10, 20); len(batch) > 0 {
			t.Fatalf("%d messages are in the hands of a daemon besides a suspect", len(batch))
		}
		undelayed(b, "mail")
	}

	send(lane, 2)
	send(other, 1)
	if batch := b.ClaimMail(10, 20); len(batch) < 2 {
		t.Fatalf("claimed %v", batch)
	}
	b.ClaimMail(10, 20)
	lose("true")
	deaths("1 " + lane + ",1 " + lane + ",1 " + other)
	suspect := claimOne()
	none()
	// Messages of which nobody died are sent meanwhile.
	send(other, 1)
	fresh := claimOne()
	b.Outcomes(fresh, "DELIVERED")
	lose("true")
	sqltest.Equal(b.Session, fmt.Sprintf("%d SUSPENDED The daemon that delivered it to %s has died twice.", suspect.Message, suspect.Lane), `
		select message_id || ' ' || status || ' ' || last_error from parley_mail.messages where queue = 'POISON/-/-'`)
	sqltest.Equal(b.Session, "0", "select string_agg(distinct deaths::text, ' ') from parley_mail._p_recipient")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley_mail.tracking where event_id = 'POISONMESSAGE'")
	b.Exec("delete from parley_mail._p_recipient where lane = 'POISON/-/-'")

	// The others are no suspects, and come together.
	left := sqltest.Value[int](b.Session, "select count(*)::int from parley_mail._p_recipient")
	for n := 0; n < left; {
		batch := b.ClaimMail(10, 20)
		if len(batch) == 0 {
			t.Fatalf("%d of %d messages come", n, left)
		}
		n += len(batch)
	}
	lose("true")
	// One that hangs holds up the others for three seconds. With two in its hands nobody knows of which the daemon died.
	first := claimOne()
	none()
	b.Exec("update parley_store._p_lease set claimed_at = claimed_at - interval '4 seconds'")
	claimOne()
	lose(fmt.Sprint("lease_id = ", first.Lease))
	sqltest.Equal(b.Session, 2, "select count(*)::int from parley_store.work_items where state = 'IN_FLIGHT'")
	lose("true")
	sqltest.Equal(b.Session, "2 2", "select string_agg(deaths::text, ' ') from parley_mail._p_recipient")
	// From then on each is alone, however long that takes, until an attempt comes to an end.
	first = claimOne()
	b.Exec("update parley_store._p_lease set claimed_at = claimed_at - interval '4 seconds'")
	none()
	b.Outcomes(first, "DEFERRED")
	sqltest.Equal(b.Session, "0 2", "select string_agg(deaths::text, ' ' order by deaths) from parley_mail._p_recipient")
	b.Exec("update parley_store._p_item set attempts = 0")
	second := claimOne()
	lose("true")
	sqltest.Equal(b.Session, second.Message, "select message_id from parley_mail._p_recipient where lane = 'POISON/-/-'")
}

// A message is as suspect as the worst of its recipients in a queue: one of whom two daemons died is not begun beside another suspect.
func TestSuspectIsAsBadAsTheWorstOfItsRecipients(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	for _, c := range []struct{ worst, claimed int }{{2, 0}, {1, 1}} {
		first := b.Delivery("DNS/internet/b.example", "", "x@b.example")
		b.Exec("update parley_mail._p_recipient set deaths = 1")
		if batch := b.ClaimMail(1, 1); len(batch) != 1 || batch[0].Message != first {
			t.Fatalf("claimed %v", batch)
		}
		b.Exec("update parley_store._p_lease set claimed_at = claimed_at - interval '4 seconds'")
		second := b.Delivery("DNS/internet/c.example", "", "one@c.example", "two@c.example")
		b.Exec("update parley_mail._p_recipient set deaths = case ordinal when 1 then $2 else 0 end where message_id = $1", second, c.worst)
		if batch := b.ClaimMail(1, 1); len(batch) != c.claimed {
			t.Errorf("beside one with a death, of one with %d are claimed %v", c.worst, batch)
		}
		b.Exec("delete from parley_mail._p_recipient")
		b.Exec("update parley_store._p_lease set until = now() - interval '1 second'")
		b.Exec("select parley_store.expire_leases(), parley_store.remove_work('mail', '{}')")
	}
}
