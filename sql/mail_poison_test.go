package sql_test

import (
	"fmt"
	"testing"
)

// died has a backend end in the midst of a transaction, as a crash would end it: nothing of the transaction is left, and nobody says why.
func (b *broker) died(statement string, arguments ...any) {
	b.Helper()
	dying := b.begin()
	pid := value[int](dying, "select pg_backend_pid()")
	dying.exec(statement, arguments...)
	equal(b.session, true, "select pg_terminate_backend($1)", pid)
	b.waitUntil("select not exists (select from pg_stat_activity where pid = $1)", pid)
	_, _ = dying.db.Exec(b.Context(), "rollback")
}

// begun takes messages from the submission queue, as a daemon does; 0 when there are none.
func (b *broker) begun() int64 {
	b.Helper()
	return value[int64](b.session, "select coalesce(parley_mail._p_begin_categorizing(100), 0)")
}

func TestMessageOfWhichTwoCategorizersDieIsPoison(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	var ids [3]int64
	for i := range ids {
		ids[i] = b.arriving("x@example.com", fmt.Sprintf("y%d@example.net", i))
	}
	const categorize = "select parley_mail._p_categorize_begun($1)"
	b.died(categorize, b.begun())
	equal(b.session, "ACTIVE", "select string_agg(distinct status, ',') from parley_mail.messages")
	// The record is not lost with the transaction, and is not somebody else's while it is new, or held.
	if run := b.begun(); run != 0 {
		t.Fatalf("run %d was taken over at once", run)
	}
	old := func() {
		b.exec("update parley_mail._p_categorizing set begun_at = begun_at - interval '1 minute'")
	}
	old()
	holder := b.begin()
	holder.exec("select from parley_mail._p_categorizing for update")
	if run := b.begun(); run != 0 {
		t.Fatalf("run %d was taken over while somebody works on it", run)
	}
	holder.rollback()
	// From then on each is categorized alone, one at a time.
	tx := b.begin()
	first := value[int64](tx, "select coalesce(parley_mail._p_begin_categorizing(100), 0)")
	// An advisory lock anybody could hold, and nobody would be a suspect any more.
	equal(tx, 0, `select count(*)::int from pg_locks
		where locktype = 'advisory' and pid = pg_backend_pid()`)
	if run := b.begun(); run != 0 {
		t.Fatalf("run %d was begun while somebody has the turn", run)
	}
	tx.commit()
	if first == 0 || b.begun() != 0 {
		t.Fatal("two suspects were begun at once")
	}
	poison := value[int64](b.session, "select message_ids[1] from parley_mail._p_categorizing where run_id = $1 and cardinality(message_ids) = 1", first)
	b.died(categorize, first)
	old()
	for range 2 {
		b.exec(categorize, b.begun())
	}
	equal(b.session, fmt.Sprint(poison, " SUSPENDED Who categorized it has died twice."), `
		select message_id || ' ' || status || ' ' || last_error from parley_mail.messages where queue = 'POISON/-/-'`)
	equal(b.session, 2, "select count(*)::int from parley_mail._p_recipient")
	equal(b.session, 0, "select count(*)::int from parley_mail._p_categorizing")
	equal(b.session, 1, "select count(*)::int from parley_mail.tracking where event_id = 'POISONMESSAGE'")
	// An operator has it categorized anew, or removes it with a report.
	equal(b.session, 1, `select parley_mail.resume_messages('{"queue": "POISON"}')`)
	b.categorize("1 0 0")
	equal(b.session, 3, "select count(*)::int from parley_mail._p_recipient")
	_ = ids
}

// That a batch is rolled back again and again when it is taken, as where servers are killed, is of one message at most: each comes alone.
func TestBatchThatWasThereWhenServersDiedIsCategorizedOneByOne(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.exec("select parley_mail.send_batch('ann', array['a@example.com', 'b@example.com'], 'a', 'b')")
	for range 2 {
		dying := b.begin()
		dying.exec("select parley_mail._p_categorize()")
		dying.rollback()
	}
	b.categorize("0 0 0")
	b.exec("select parley_mail._p_maintain()")
	const categorize = "select parley_mail._p_categorize_begun($1)"
	first := b.begun()
	poison := value[int64](b.session, "select message_ids[1] from parley_mail._p_categorizing where run_id = $1 and cardinality(message_ids) = 1", first)
	b.died(categorize, first)
	b.exec("update parley_mail._p_categorizing set begun_at = begun_at - interval '1 minute'")
	for range 2 {
		b.exec(categorize, b.begun())
	}
	equal(b.session, poison, "select message_id from parley_mail.messages where queue = 'POISON/-/-'")
	equal(b.session, 1, "select count(*)::int from parley_mail._p_recipient")
}

// A death costs a large batch no hour of categorizing one by one: it is divided twice.
func TestLargeBatchOfWhichSomebodyDiedIsDividedTwice(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.exec("insert into parley_mail._p_categorizing (message_ids, begun_at) select array_agg(i), now() - interval '1 minute' from generate_series(1, 250) as i")
	equal(b.session, 250, "select parley_mail._p_divide_lost_runs()")
	equal(b.session, "3 250 1", "select concat_ws(' ', count(*), sum(cardinality(message_ids)), max(deaths)) from parley_mail._p_categorizing")
	b.exec("update parley_mail._p_categorizing set begun_at = now() - interval '1 minute'")
	equal(b.session, 250, "select parley_mail._p_divide_lost_runs()")
	equal(b.session, "250 1 0", "select concat_ws(' ', count(*), max(deaths), (select count(*) from parley_store.work_items)) from parley_mail._p_categorizing")
}

func TestCategorizerThatFailsAndLivesCountsNoDeath(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	id := b.arriving("x@example.com", "y@example.net")
	for range 3 {
		run := b.begun()
		dying := b.begin()
		dying.exec("select parley_mail._p_categorize_begun($1)", run)
		dying.rollback()
		b.exec("select parley_mail._p_give_back_begun($1)", run)
	}
	b.categorize("1 0 0")
	if got := b.statusOf(id); got != "DNS READY" {
		t.Errorf("it is %s", got)
	}
}

func TestMessageOfWhichTwoDeliveriesDieIsPoison(t *testing.T) {
	t.Parallel()
	b := newBoundMail(t)
	for _, subject := range []string{"one", "two"} {
		b.exec("select parley_mail.send('ann', array['inbox@example.org'], $1, 'text')", subject)
	}
	b.exec("select parley_mail._p_categorize()")
	claim := func() []int64 {
		b.Helper()
		return value[[]int64](b.session, "select parley_mail._p_claim_local(100)")
	}
	const deliver = "select parley_mail._p_deliver_local($1)"
	lose := func() {
		b.Helper()
		b.exec("update parley_store._p_lease set until = now() - interval '1 second'")
		b.exec("select parley_mail._p_maintain()")
	}
	b.died(deliver, claim())
	lose()
	equal(b.session, 0, "select count(*)::int from public.inbox")
	equal(b.session, 2, "select count(*)::int from parley_mail.tracking where event_id = 'LOAD'")
	// Each alone, one at a time of all daemons: the one of which somebody dies again is poison, the other is delivered, once.
	suspect := claim()
	equal(b.session, 1, "select count(*)::int from parley_store.work_items where state = 'IN_FLIGHT'")
	poison := value[int64](b.session, "select subject from parley_store.work_items where state = 'IN_FLIGHT'")
	b.undelayed("mail_service")
	if second := claim(); len(second) > 0 {
		t.Fatal("two suspects are delivered at once")
	}
	b.died(deliver, suspect)
	lose()
	equal(b.session, fmt.Sprint(poison, " SUSPENDED"), "select message_id || ' ' || status from parley_mail.messages where queue = 'POISON/-/-'")
	b.undelayed("mail_service")
	for range 3 {
		b.exec(deliver, claim())
	}
	equal(b.session, 1, "select count(*)::int from public.inbox")
	equal(b.session, 1, `select parley_mail.remove_messages('{"queue": "POISON"}')`)
	equal(b.session, "inbox@example.org 5.7.0", "select string_agg(address || ' ' || status, ',') from parley_mail._p_report")
	equal(b.session, 0, "select count(*)::int from parley_mail._p_recipient")
	// What could not be delivered, without a death, is given back.
	b.exec("select parley_mail.send('ann', array['inbox@example.org'], 'three', 'text')")
	b.exec("select parley_mail._p_categorize()")
	for range 3 {
		b.exec("select parley_mail._p_release_local($1)", claim())
	}
	b.exec(deliver, claim())
	equal(b.session, 2, "select count(*)::int from public.inbox")
}

// undelayed has what waits for a time claimed at once.
func (b *broker) undelayed(system string) {
	b.Helper()
	b.exec(`select parley_store.retry_work_now($1, '{"state": "DELAYED"}')`, system)
}

// A daemon is killed for many reasons: of what it had in its hands only the message of which it dies again, alone, is poison.
func TestMessageOfWhichTwoSendersDieIsPoison(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	const lane, other = "DNS/internet/b.example", "DNS/internet/c.example"
	b.exec("select parley_mail._p_set_hops(array[$1, $2])", lane, other)
	send := func(lane string, count int) {
		for range count {
			b.delivery(lane, "", "x@b.example")
		}
	}
	lose := func(leases string) {
		b.Helper()
		b.exec("update parley_store._p_lease set until = now() - interval '1 second' where " + leases)
		b.exec("select parley_mail._p_maintain()")
		b.undelayed("mail")
	}
	deaths := func(want string) {
		b.Helper()
		equal(b.session, want, "select string_agg(deaths || ' ' || lane, ',' order by message_id) from parley_mail._p_recipient")
	}
	claimOne := func() claimed {
		b.Helper()
		batch := b.claimMail(10, 20)
		if len(batch) != 1 {
			t.Fatalf("%d messages come together", len(batch))
		}
		b.undelayed("mail")
		return batch[0]
	}
	none := func() {
		b.Helper()
		if batch := b.claimMail(10, 20); len(batch) > 0 {
			t.Fatalf("%d messages are in the hands of a daemon besides a suspect", len(batch))
		}
		b.undelayed("mail")
	}

	send(lane, 2)
	send(other, 1)
	if batch := b.claimMail(10, 20); len(batch) < 2 {
		t.Fatalf("claimed %v", batch)
	}
	b.claimMail(10, 20)
	lose("true")
	deaths("1 " + lane + ",1 " + lane + ",1 " + other)
	suspect := claimOne()
	none()
	// What nobody died of is sent meanwhile.
	send(other, 1)
	fresh := claimOne()
	b.outcomes(fresh, "DELIVERED")
	lose("true")
	equal(b.session, fmt.Sprintf("%d SUSPENDED Who delivered it to %s has died twice.", suspect.Message, suspect.Lane), `
		select message_id || ' ' || status || ' ' || last_error from parley_mail.messages where queue = 'POISON/-/-'`)
	equal(b.session, "0", "select string_agg(distinct deaths::text, ' ') from parley_mail._p_recipient")
	equal(b.session, 1, "select count(*)::int from parley_mail.tracking where event_id = 'POISONMESSAGE'")
	b.exec("delete from parley_mail._p_recipient where lane = 'POISON/-/-'")

	// The others are no suspects, and come together.
	left := value[int](b.session, "select count(*)::int from parley_mail._p_recipient")
	for n := 0; n < left; {
		batch := b.claimMail(10, 20)
		if len(batch) == 0 {
			t.Fatalf("%d of %d messages come", n, left)
		}
		n += len(batch)
	}
	lose("true")
	// One that hangs holds up the others for three seconds. With two in its hands nobody knows of which the daemon died.
	first := claimOne()
	none()
	b.exec("update parley_store._p_lease set claimed_at = claimed_at - interval '4 seconds'")
	claimOne()
	lose(fmt.Sprint("lease_id = ", first.Lease))
	equal(b.session, 2, "select count(*)::int from parley_store.work_items where state = 'IN_FLIGHT'")
	lose("true")
	equal(b.session, "2 2", "select string_agg(deaths::text, ' ') from parley_mail._p_recipient")
	// From then on each is alone, however long that takes, until an attempt comes to an end.
	first = claimOne()
	b.exec("update parley_store._p_lease set claimed_at = claimed_at - interval '4 seconds'")
	none()
	b.outcomes(first, "DEFERRED")
	equal(b.session, "0 2", "select string_agg(deaths::text, ' ' order by deaths) from parley_mail._p_recipient")
	b.exec("update parley_store._p_item set attempts = 0")
	second := claimOne()
	lose("true")
	equal(b.session, second.Message, "select message_id from parley_mail._p_recipient where lane = 'POISON/-/-'")
}
