package sql_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// newJobs gives a test a simple queue.
func newJobs(t *testing.T) *broker {
	t.Helper()
	b := newWorld(t)
	b.exec("select parley.create_queue('jobs', kind => 'simple', poison_rollbacks => 3)")
	return b
}

func (s session) put(bodies ...string) {
	s.Helper()
	for _, body := range bodies {
		s.exec("select parley.put('jobs', $1::text)", body)
	}
}

// putKeyed puts "key:number" for each key.
func (s session) putKeyed(messages ...string) {
	s.Helper()
	for _, message := range messages {
		s.exec("select parley.put('jobs', $1::text, key => $2)", message, strings.Split(message, ":")[0])
	}
}

func (s session) take(count int) []string {
	s.Helper()
	return values[string](s, "select coalesce(parley.body_text(body), '') from parley.take('jobs', $1)", count)
}

func (s session) requireTaken(count int, want ...string) {
	s.Helper()
	if got := s.take(count); !slices.Equal(got, want) {
		s.Errorf("take of %d gives %q, want %q", count, got, want)
	}
}

func TestTakeGivesWhatWasPutInOrder(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.requireTaken(1)
	b.put("a", "b")
	b.exec("select parley.put_batch('jobs', array['c', '', 'e'])")
	b.exec(`select parley.put_batch_binary('jobs', array['\x66'::bytea])`)
	b.exec(`select parley.put('jobs', $1::bytea)`, []byte(strings.Repeat("g", 100000)))
	b.requireTaken(1, "a")
	b.requireTaken(3, "b", "c", "")
	b.requireTaken(2, "e", "f")
	b.requireTaken(100, strings.Repeat("g", 100000))
	b.requireTaken(100)
	equal(b.session, 0, "select count(*) from parley._p_message")
}

func TestTakeByPriorityAndOneOfThemAtATime(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.put("usual")
	b.exec("select parley.put('jobs', 'low'::text, priority => 1), parley.put('jobs', 'high'::text, priority => 10)")
	b.requireTaken(10, "high")
	b.requireTaken(10, "usual")
	b.requireTaken(10, "low")
}

// Readers side by side claim rows; of a key only one has messages at a time, and in their order.
func TestReadersOfASimpleQueueClaimRows(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.put("a", "b")
	b.putKeyed("x:1", "y:1", "x:2")
	first, second := b.begin(), b.begin()
	first.requireTaken(1, "a")
	second.requireTaken(2, "b", "x:1")
	b.requireTaken(10, "y:1")
	b.requireTaken(10)
	second.rollback()
	first.commit()
	// What came back comes alone.
	b.requireTaken(10, "b")
	b.requireTaken(10, "x:1")
	b.requireTaken(10, "x:2")
	b.putKeyed("x:3", "y:3", "x:4", "x:5")
	b.requireTaken(3, "x:3", "y:3", "x:4")
	b.requireTaken(3, "x:5")
}

func TestBadMessageOfASimpleQueueIsSetAsideAlone(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 20} {
		t.Run(fmt.Sprint("count ", count), func(t *testing.T) {
			t.Parallel()
			b := newJobs(t)
			for n := range 10 {
				b.put(fmt.Sprint(n))
			}
			good, rollbacks := map[string]bool{}, 0
			tx := b.connection()
			for range 200 {
				tx.exec("begin")
				got := tx.take(count)
				if slices.Contains(got, "4") {
					rollbacks++
					tx.rollback()
					continue
				}
				tx.commit()
				for _, body := range got {
					good[body] = true
				}
				if len(good) == 9 && len(got) == 0 {
					break
				}
			}
			if len(good) != 9 || rollbacks != 3 {
				t.Errorf("%d good messages, %d rollbacks", len(good), rollbacks)
			}
			equal(b.session, "jobs 4 5 3", `
				select concat_ws(' ', queue_name, parley.body_text(body), priority, rollbacks) from parley.set_aside_messages`)
			equal(b.session, "0 1", "select concat_ws(' ', waiting_messages, set_aside_messages) from parley.simple_queues")
			id := value[int64](b.session, "select message_id from parley.set_aside_messages")
			b.exec("select parley.retry_message('jobs', $1)", id)
			b.refuses(8426, "select parley.retry_message('jobs', $1)", id)
			for range 3 {
				tx.exec("begin")
				tx.requireTaken(count, "4")
				tx.rollback()
			}
			b.requireTaken(count)
			equal(b.session, "4", "select parley.body_text((parley.discard_message('jobs', s.message_id)).body) from parley.set_aside_messages as s")
			equal(b.session, 0, "select count(*) from parley._p_message")
		})
	}
}

func TestSimpleQueueIsDisabledByABadMessage(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.exec("select parley.alter_queue('jobs', poison_action => 'DISABLE_QUEUE')")
	b.put("a", "b")
	for range 3 {
		tx := b.begin()
		tx.take(1)
		tx.rollback()
	}
	b.refuses(9617, "select parley.take('jobs')")
	b.exec("select parley.alter_queue('jobs', status => true)")
	b.requireTaken(1, "a")
}

// What a transaction gives back by a savepoint others may have at once, and it counts once for each transaction.
func TestSavepointGivesMessagesOfASimpleQueueBack(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.put("a", "b")
	tx := b.begin()
	for range 5 {
		tx.exec("savepoint s")
		tx.requireTaken(1, "a")
		tx.exec("rollback to s")
	}
	tx.commit()
	b.requireTaken(1, "a")
	equal(b.session, 0, "select set_aside_messages from parley.simple_queues")
}

func TestDelayedMessagesComeWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.exec(`
		select parley.put('jobs', 'later'::text, deliver_at => now() + interval '1 hour'),
			parley.put('jobs', 'second'::text, deliver_at => now() + interval '1200 milliseconds', key => 'k'),
			parley.put('jobs', 'first'::text, deliver_at => now() + interval '800 milliseconds'),
			parley.put('jobs', 'now'::text, deliver_at => now() - interval '1 hour')`)
	equal(b.session, "1 3", "select concat_ws(' ', waiting_messages, delayed_messages) from parley.simple_queues")
	b.requireTaken(10, "now")
	b.requireTaken(10)
	equal(b.session, "first", "select parley.body_text(body) from parley.take('jobs', timeout => 30000)")
	equal(b.session, "second", "select parley.body_text(body) from parley.take('jobs', timeout => 30000)")
	equal(b.session, true, "select parley.withdraw_message('jobs', delayed_id) from parley.delayed_messages")
	equal(b.session, 0, "select count(*) from parley.delayed_messages")
	equal(b.session, false, "select parley.withdraw_message('jobs', 1)")
	// The daemon does it for queues without a reader.
	b.exec("select parley.put('jobs', 'due'::text, deliver_at => clock_timestamp() + interval '300 milliseconds')")
	b.waitUntil("select parley.fire_timers() >= 0 and (select waiting_messages = 1 from parley.simple_queues)")
	// A rollback takes the message back to where it waited.
	tx := b.begin()
	tx.requireTaken(1, "due")
	tx.rollback()
	b.requireTaken(1, "due")
}

func TestSimpleQueuesAndConversationsDoNotMix(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.put("a")
	b.refuses(8402, "select parley.receive('jobs')")
	b.refuses(8402, "select parley.get_conversation_group('jobs')")
	b.refuses(8402, "select parley.create_service('//test/Jobs', 'jobs')")
	b.refuses(8402, "select parley.alter_service('//test/Asker', 'jobs')")
	b.refuses(8402, "select parley.alter_queue('jobs', retention => true)")
	b.refuses(8402, "select parley.create_queue('more', kind => 'stack')")
	b.refuses(8402, "select parley.put('Answering', 'a'::text)")
	b.refuses(8402, "select parley.take('Answering')")
	b.refuses(208, "select parley.put('none', 'a'::text)")
	b.refuses(8402, "select parley.put('jobs', 'a'::text, priority => 11)")
	b.refuses(8402, "select parley.take('jobs', 0)")
	b.refuses(8402, "select parley.take('jobs', timeout => -5)")
	b.exec("select parley.alter_queue('jobs', status => false)")
	b.refuses(9617, "select parley.put('jobs', 'b'::text)")
	b.refuses(9617, "select parley.take('jobs')")
	if found := b.check("check_broker()"); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
	b.exec("select parley.put('more', 'a'::text, deliver_at => now() + interval '1 hour') from parley.create_queue('more', kind => 'SIMPLE')")
	b.exec("select parley.drop_queue('jobs', force => true), parley.drop_queue('more', force => true)")
	equal(b.session, 0, "select (select count(*) from parley._p_message) + (select count(*) from parley._p_delayed_message)")
}

func TestRightsOfASimpleQueue(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.put("a")
	putter, taker := b.role("putter"), b.role("taker")
	b.exec("select parley.grant('SEND', 'queue', 'jobs', $1), parley.grant('RECEIVE', 'queue', 'jobs', $2)", putter, taker)
	puts, takes := b.as(putter), b.as(taker)
	puts.put("b")
	puts.putKeyed("k:1")
	puts.refuses(229, "select parley.take('jobs')")
	puts.refuses(229, "select parley.peek_messages('jobs')")
	takes.refuses(229, "select parley.put('jobs', 'c'::text)")
	equal(takes, "a b k:1", "select string_agg(parley.body_text(body), ' ' order by message_id) from parley.peek_messages('jobs')")
	takes.requireTaken(10, "a", "b", "k:1")
	equal(puts, 0, "select count(*) from parley.simple_queues")
	equal(takes, 1, "select count(*) from parley.simple_queues")
	nobody := b.as(b.role("nobody"))
	for _, statement := range []string{
		"select parley.put('jobs', 'c'::text)", "select parley.put_batch('jobs', array['c'])", "select parley.take('jobs')",
		"select parley.retry_message('jobs', 1)", "select parley.discard_message('jobs', 1)", "select parley.withdraw_message('jobs', 1)",
	} {
		nobody.refuses(229, statement)
	}
	_, err := nobody.db.Exec(t.Context(), "insert into parley._p_outgoing_put (queue, body, caller) values ('jobs', '', $1)", putter)
	if refusal, ok := errors.AsType[*pgconn.PgError](err); !ok || refusal.Code != "42501" {
		t.Errorf("inserted as another: %v", err)
	}
}

func TestOldSnapshotTakesNothingTwice(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.put("a", "b")
	old := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	equal(old, 2, "select count(*) from parley.peek_messages('jobs')")
	b.requireTaken(1, "a")
	// What it sees and others have taken it passes by.
	old.requireTaken(2, "b")
	old.commit()
	b.requireTaken(2)
}

// Each message once, and those of a key in order, whatever the readers roll back.
func TestReadersOfASimpleQueueSideBySide(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	const messages, keys, readers = 800, 10, 6
	b.exec("select parley.alter_queue('jobs', poison_rollbacks => 15)")
	b.exec("create table taken (number bigint generated always as identity, id bigint, key text, body text)")
	var all sync.WaitGroup
	all.Go(func() {
		s := b.unhurried()
		for n := range messages {
			if n%2 == 0 {
				s.exec("select parley.put('jobs', $1::text, key => $2)", fmt.Sprintf("%05d", n), fmt.Sprint(n%keys))
				continue
			}
			s.put(fmt.Sprintf("%05d", n))
		}
	})
	for reader := range readers {
		all.Go(func() {
			s := b.unhurried()
			random := rand.New(rand.NewPCG(uint64(reader), 1))
			for value[int](b.session, "select count(*) from taken") < messages {
				s.exec("begin")
				s.exec("insert into taken (id, key, body) select message_id, key, parley.body_text(body) from parley.take('jobs', $1)", 1+random.IntN(30))
				if random.IntN(6) == 0 {
					s.exec("rollback")
					continue
				}
				s.exec("commit")
			}
		})
	}
	all.Wait()
	equal(b.session, true, "select count(*) = $1 and count(distinct body) = $1 from taken", messages)
	equal(b.session, 0, `
		select count(*)
		from (select body, max(body) over (partition by key order by number rows unbounded preceding) as last from taken where key is not null) as k
		where k.body < k.last`)
}

func TestPausedReadersTakeNothing(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.put("a")
	b.exec("select parley.pause_readers('jobs')")
	reader := b.connection()
	reader.exec("set parley.reader = on")
	reader.requireTaken(1)
	b.requireTaken(1, "a")
	b.put("b")
	b.exec("select parley.resume_readers('jobs')")
	reader.requireTaken(1, "b")
}

// Readers do not walk over what was taken long ago.
func TestTakeBeginsWhereAHintLetsIt(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.exec("select parley.put_batch('jobs', array(select 'x' from generate_series(1, 3000)))")
	s := b.connection()
	for range 30 {
		s.exec("select parley.take('jobs', 90)")
	}
	equal(b.session, true, "select max(low_position) > 1000 * 1024 from parley._p_scan_hint")
	if got := len(s.take(1000)); got != 300 {
		t.Errorf("%d messages were left", got)
	}
}

func TestDelayedMessageIsRescheduled(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.exec("select parley.put('jobs', 'later'::text, deliver_at => now() + interval '1 hour')")
	id := value[int64](b.session, "select delayed_id from parley.delayed_messages")
	equal(b.session, true, "select parley.reschedule_message('jobs', $1, now() + interval '2 hours')", id)
	b.requireTaken(1)
	equal(b.session, true, "select due_at > now() + interval '90 minutes' from parley.delayed_messages")
	equal(b.session, true, "select parley.reschedule_message('jobs', $1, null)", id)
	b.requireTaken(1, "later")
	equal(b.session, false, "select parley.reschedule_message('jobs', $1, null)", id)
}

func TestPutRefusesTimesThatNeverComeAndLongKeys(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.refuses(8402, "select parley.put('jobs', 'x'::text, deliver_at => 'infinity')")
	b.refuses(8402, "select parley.put('jobs', 'x'::text, deliver_at => '-infinity')")
	b.refuses(8402, "select parley.put('jobs', 'x'::text, key => repeat('k', 257))")
	b.exec("select parley.put('jobs', 'x'::text, key => repeat('ü', 256))")
	b.requireTaken(1, "x")
}

// Readers that find nothing in another queue do not put off what is due in this one.
func TestReadersOfOneQueueDoNotPutOffWhatIsDueInAnother(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.exec("select parley.create_queue('others', kind => 'SIMPLE')")
	b.exec("select parley.put('jobs', 'due'::text, deliver_at => now() + interval '1 hour')")
	b.exec("update parley._p_delayed_message set due_at = now() - interval '1 hour'")
	b.exec("select setval('parley._p_next_due', 1)")
	b.exec("select * from parley.take('others')")
	equal(b.session, 1, "select pg_sequence_last_value('parley._p_next_due')")
	b.requireTaken(1, "due")
}
