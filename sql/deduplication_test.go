package sql_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

const (
	beginOnce = `
		select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', deduplication_key => $1)::text`
	beginAndSendOnce = `
		select parley.begin_and_send('//test/Asker', '//test/Answerer', '//test/Request', $2, '//test/Work', deduplication_key => $1)::text`
	sendAndEndOnce = `
		select parley.send_and_end('//test/Asker', '//test/Answerer', '//test/Request', $2, '//test/Work', deduplication_key => $1)::text`
	sendOnce = "select (parley.send_once($1::uuid, '//test/Request', $2, $3)).is_duplicate"
	putOnce  = "select (parley.put_once('jobs', $1::text, $2)).is_duplicate"
)

// makeKeysOld lets the time for which keys count go by.
func (s session) makeKeysOld() {
	s.Helper()
	s.exec("update parley._p_deduplication_key set expires_at = clock_timestamp() - interval '1 second'")
}

func TestBeginDialogWithAKeyIsAnsweredWithTheFirst(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first := value[string](b.session, beginOnce, "a")
	equal(b.session, first, beginOnce, "a")
	if first == value[string](b.session, beginOnce, "b") {
		t.Error("another key gives the same dialog")
	}
	equal(b.session, first, beginAndSendOnce, "a", "x")
	b.requireAnswered()
	second := value[string](b.session, beginAndSendOnce, "c", "x")
	equal(b.session, second, beginAndSendOnce, "c", "other")
	b.requireAnswered(request + " x")
	third := value[string](b.session, sendAndEndOnce, "d", "y")
	equal(b.session, third, sendAndEndOnce, "d", "y")
	b.requireAnswered(request+" y", endDialog+" ")
	b.makeKeysOld()
	if second == value[string](b.session, beginAndSendOnce, "c", "again") {
		t.Error("a key counts for ever")
	}
	b.requireAnswered(request + " again")
}

func TestSendOnce(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	equal(b.session, false, sendOnce, handle, "a", "k")
	b.exec("select parley.fire_timers()") // which forgets keys, but none that counts
	equal(b.session, true, sendOnce, handle, "other", "k")
	// Over all conversations of the service.
	equal(b.session, true, sendOnce, b.dialog(), "a", "k")
	equal(b.session, true, `
		select s.is_duplicate and s.conversation_handle = $1::uuid and s.message_id = (select max(position) from parley._p_message)
		from parley.send_once($1::uuid, '//test/Request', 'a', 'k') as s`, handle)
	b.requireAnswered(request + " a")
	equal(b.session, true, `
		select s.delayed_id = d.delayed_id
		from parley.send_once($1::uuid, '//test/Request', 'later', 'l', deliver_at => clock_timestamp() + interval '1 hour') as s
		cross join lateral (select s.delayed_id from parley.send_once($1::uuid, '//test/Request', 'later', 'l') as s) as d`, handle)
	equal(b.session, 1, "select count(*) from parley.delayed_sends")
	for _, key := range []any{"", nil, strings.Repeat("k", 257)} {
		b.refuses(8402, sendOnce, handle, "x", key)
	}
	// The time is the service's.
	b.exec("select parley.alter_service('//test/Asker', deduplication_seconds => 7)")
	b.makeKeysOld()
	equal(b.session, false, sendOnce, handle, "again", "k")
	equal(b.session, 7, "select extract(epoch from expires_at - used_at)::integer from parley._p_deduplication_key where key = 'k'")
	b.refuses(8402, "select parley.alter_service('//test/Asker', deduplication_seconds => 0)")
	// A key of a dialog is none of a message.
	b.exec(beginOnce, "of a dialog")
	equal(b.session, false, sendOnce, handle, "a", "of a dialog")
}

func TestPutOnce(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	equal(b.session, false, putOnce, "a", "k")
	equal(b.session, true, putOnce, "b", "k")
	id := value[int64](b.session, "select (parley.put_once('jobs', 'a'::text, 'k')).message_id")
	equal(b.session, id, "select message_id from parley.take('jobs')")
	b.requireTaken(1)
	b.exec("select parley.put_once('jobs', 'later'::text, 'l', deliver_at => now() + interval '1 hour')")
	equal(b.session, true, `
		select s.is_duplicate and s.delayed_id = d.delayed_id
		from parley.put_once('jobs', 'later'::text, 'l') as s, parley.delayed_messages as d`)
	b.exec("select parley.alter_queue('jobs', deduplication_seconds => 60)")
	equal(b.session, 60, "select deduplication_seconds from parley.service_queues where name = 'jobs'")
	b.makeKeysOld()
	b.exec("select parley.fire_timers()")
	equal(b.session, 0, "select count(*) from parley._p_deduplication_key")
	equal(b.session, false, putOnce, "c", "k")
	b.requireTaken(1, "c")
}

// The second of two with a key waits for the first, and acts itself when the first did not.
func TestKeyIsUsedByTwoSessionsAtOnce(t *testing.T) {
	t.Parallel()
	for _, commits := range []bool{true, false} {
		b := newJobs(t)
		first := b.begin()
		equal(first, false, putOnce, "first", "k")
		second := b.connection()
		answer := make(chan bool, 1)
		go func() {
			answer <- value[bool](second, putOnce, "second", "k")
		}()
		b.waitUntil("select exists (select from pg_stat_activity where wait_event = 'transactionid' and datname = current_database())")
		want := "first"
		if commits {
			first.commit()
		} else {
			first.rollback()
			want = "second"
		}
		if duplicate := <-answer; duplicate != commits {
			t.Errorf("commits %v: the second is a duplicate: %v", commits, duplicate)
		}
		b.requireTaken(2, want)
	}
}

func TestKeyAtRepeatableReadIsNotUsedTwice(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	old := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	old.exec("select 1 from parley.simple_queues")
	equal(b.session, false, putOnce, "a", "k")
	if _, err := old.db.Exec(t.Context(), putOnce, "b", "k"); err == nil {
		t.Error("an old snapshot puts again")
	}
	old.rollback()
	b.requireTaken(2, "a")
}

func TestKeysAreOfThoseWhoMaySend(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	handle := b.dialog()
	b.exec(beginOnce, "k")
	b.exec(sendOnce, handle, "x", "k")
	b.exec(putOnce, "x", "k")
	outsider := b.as(b.role("outsider"))
	for _, key := range []string{"k", "unused"} {
		outsider.refuses(229, beginOnce, key)
		outsider.refuses(229, beginAndSendOnce, key, "x")
		outsider.refuses(229, sendAndEndOnce, key, "x")
		outsider.refuses(229, sendOnce, handle, "x", key)
		outsider.refuses(229, putOnce, "x", key)
	}
}

func TestDeduplicationKeysAreShownToWhoMayReceive(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.exec("select parley.put_once('jobs', 'a'::text, 'k')")
	b.exec("select parley.put_once('jobs', 'a'::text, 'k')")
	const shown = "select count(*) from parley.deduplication_keys where queue_name = 'jobs' and service_name is null and action = 'PUT' and key = 'k'"
	equal(b.session, 1, shown+" and message_id is not null and expires_at > used_at")
	outsider := b.as(b.role("outsider"))
	equal(outsider, 0, shown)
	b.makeKeysOld()
	equal(b.session, 0, shown)
}

// A key of put is one of the role that puts: nobody who may put into the queue suppresses another's message by using its key first.
func TestRightsToAKeyOfPutAreThoseOfItsRole(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("select parley.create_queue('jobs', kind => 'simple')")
	shop, guesser := b.role("shop"), b.role("guesser")
	for _, role := range []string{shop, guesser} {
		b.exec("select parley.grant('SEND', 'queue', 'jobs', $1)", role)
	}
	for _, put := range []string{putOnce, "select (parley.put_binary_once('jobs', convert_to($1, 'UTF8'), $2)).is_duplicate"} {
		key := put[:25]
		equal(b.as(guesser), false, put, "nothing", key)
		equal(b.as(shop), false, put, "the order", key)
		equal(b.as(shop), true, put, "the order", key)
		equal(b.as(guesser), true, put, "nothing", key)
	}
	equal(b.session, 4, "select count(*)::int from parley.peek_messages('jobs', null)")
}
