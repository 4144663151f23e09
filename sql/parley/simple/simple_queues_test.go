package simple_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestTakeGivesWhatWasPutInOrder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.RequireTaken(1)
	b.Put("a", "b")
	b.Exec("select parley.put_batch('jobs', array['c', '', 'e'])")
	b.Exec(`select parley.put_batch_binary('jobs', array['\x66'::bytea])`)
	b.Exec(`select parley.put('jobs', $1::bytea)`, []byte(strings.Repeat("g", 100000)))
	b.RequireTaken(1, "a")
	b.RequireTaken(3, "b", "c", "")
	b.RequireTaken(2, "e", "f")
	b.RequireTaken(100, strings.Repeat("g", 100000))
	b.RequireTaken(100)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_message")
}

func TestTakeByPriorityAndOneOfThemAtATime(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("usual")
	b.Exec("select parley.put('jobs', 'low'::text, priority => 1), parley.put('jobs', 'high'::text, priority => 10)")
	b.RequireTaken(10, "high")
	b.RequireTaken(10, "usual")
	b.RequireTaken(10, "low")
}

// Readers side by side claim rows; of a key only one has messages at a time, and in their order.
func TestReadersOfASimpleQueueClaimRows(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("a", "b")
	b.PutKeyed("x:1", "y:1", "x:2")
	first, second := b.Begin(), b.Begin()
	first.RequireTaken(1, "a")
	second.RequireTaken(2, "b", "x:1")
	b.RequireTaken(10, "y:1")
	b.RequireTaken(10)
	second.Rollback()
	first.Commit()
	// A message that came back comes alone.
	b.RequireTaken(10, "b")
	b.RequireTaken(10, "x:1")
	b.RequireTaken(10, "x:2")
	b.PutKeyed("x:3", "y:3", "x:4", "x:5")
	b.RequireTaken(3, "x:3", "y:3", "x:4")
	b.RequireTaken(3, "x:5")
}

func TestBadMessageOfASimpleQueueIsSetAsideAlone(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 20} {
		t.Run(fmt.Sprint("count ", count), func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewJobs(t)
			for n := range 10 {
				b.Put(fmt.Sprint(n))
			}
			good, rollbacks := map[string]bool{}, 0
			tx := b.Connection()
			for range 200 {
				tx.Exec("begin")
				got := tx.Take(count)
				if slices.Contains(got, "4") {
					rollbacks++
					tx.Rollback()
					continue
				}
				tx.Commit()
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
			sqltest.Equal(b.Session, "jobs 4 5 3", `
				select concat_ws(' ', queue_name, parley.body_text(body), priority, rollbacks) from parley.set_aside_messages`)
			sqltest.Equal(b.Session, "0 1", "select concat_ws(' ', waiting_messages, set_aside_messages) from parley.simple_queues")
			id := sqltest.Value[int64](b.Session, "select message_id from parley.set_aside_messages")
			b.Exec("select parley.retry_message('jobs', $1)", id)
			b.Refuses(8426, "select parley.retry_message('jobs', $1)", id)
			for range 3 {
				tx.Exec("begin")
				tx.RequireTaken(count, "4")
				tx.Rollback()
			}
			b.RequireTaken(count)
			sqltest.Equal(b.Session, "4", "select parley.body_text((parley.discard_message('jobs', s.message_id)).body) from parley.set_aside_messages as s")
			sqltest.Equal(b.Session, 0, "select count(*) from parley._p_message")
		})
	}
}

func TestSimpleQueueIsDisabledByABadMessage(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.alter_queue('jobs', poison_action => 'DISABLE_QUEUE')")
	b.Put("a", "b")
	for range 3 {
		tx := b.Begin()
		tx.Take(1)
		tx.Rollback()
	}
	b.Refuses(9617, "select parley.take('jobs')")
	b.Exec("select parley.alter_queue('jobs', status => true)")
	b.RequireTaken(1, "a")
}

// Messages that a transaction gives back by a savepoint others may have at once, and they count once for each transaction.
func TestSavepointGivesMessagesOfASimpleQueueBack(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("a", "b")
	tx := b.Begin()
	for range 5 {
		tx.Exec("savepoint s")
		tx.RequireTaken(1, "a")
		tx.Exec("rollback to s")
	}
	tx.Commit()
	b.RequireTaken(1, "a")
	sqltest.Equal(b.Session, 0, "select set_aside_messages from parley.simple_queues")
}

func TestDelayedMessagesComeWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec(`
		select parley.put('jobs', 'later'::text, deliver_at => now() + interval '1 hour'),
			parley.put('jobs', 'second'::text, deliver_at => now() + interval '1 hour', key => 'k'),
			parley.put('jobs', 'first'::text, deliver_at => now() + interval '1 hour'),
			parley.put('jobs', 'now'::text, deliver_at => now() - interval '1 hour')`)
	sqltest.Equal(b.Session, "1 3", "select concat_ws(' ', waiting_messages, delayed_messages) from parley.simple_queues")
	b.RequireTaken(10, "now")
	b.RequireTaken(10)
	const becomesDue = `
		select parley.reschedule_message('jobs', delayed_id, now() + interval '300 milliseconds')
		from parley.delayed_messages where parley.body_text(body) = $1`
	b.Exec(becomesDue, "first")
	sqltest.Equal(b.Session, "first", "select parley.body_text(body) from parley.take('jobs', timeout => 30000)")
	b.Exec(becomesDue, "second")
	sqltest.Equal(b.Session, "second", "select parley.body_text(body) from parley.take('jobs', timeout => 30000)")
	sqltest.Equal(b.Session, true, "select parley.withdraw_message('jobs', delayed_id) from parley.delayed_messages")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.delayed_messages")
	sqltest.Equal(b.Session, false, "select parley.withdraw_message('jobs', 1)")
	// The daemon does it for queues without a reader.
	b.Exec("select parley.put('jobs', 'due'::text, deliver_at => clock_timestamp() + interval '300 milliseconds')")
	b.WaitUntil("select parley.fire_timers() >= 0 and (select waiting_messages = 1 from parley.simple_queues)")
	// A rollback takes the message back to where it waited.
	tx := b.Begin()
	tx.RequireTaken(1, "due")
	tx.Rollback()
	b.RequireTaken(1, "due")
}

func TestSimpleQueuesAndConversationsDoNotMix(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("a")
	b.Refuses(8402, "select parley.receive('jobs')")
	b.Refuses(8402, "select parley.get_conversation_group('jobs')")
	b.Refuses(8402, "select parley.create_service('//test/Jobs', 'jobs')")
	b.Refuses(8402, "select parley.alter_service('//test/Asker', 'jobs')")
	b.Refuses(8402, "select parley.alter_queue('jobs', retention => true)")
	b.Refuses(8402, "select parley.create_queue('more', kind => 'stack')")
	b.Refuses(8402, "select parley.put('Answering', 'a'::text)")
	b.Refuses(8402, "select parley.take('Answering')")
	b.Refuses(208, "select parley.put('none', 'a'::text)")
	b.Refuses(8402, "select parley.put('jobs', 'a'::text, priority => 11)")
	b.Refuses(8402, "select parley.take('jobs', 0)")
	b.Refuses(8402, "select parley.take('jobs', timeout => -5)")
	b.Exec("select parley.alter_queue('jobs', status => false)")
	b.Refuses(9617, "select parley.put('jobs', 'b'::text)")
	b.Refuses(9617, "select parley.take('jobs')")
	if found := b.Check("check_broker()"); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
	b.Exec("select parley.put('more', 'a'::text, deliver_at => now() + interval '1 hour') from parley.create_queue('more', kind => 'SIMPLE')")
	b.Exec("select parley.drop_queue('jobs', force => true), parley.drop_queue('more', force => true)")
	sqltest.Equal(b.Session, 0, "select (select count(*) from parley._p_message) + (select count(*) from parley._p_delayed_message)")
}

func TestOldSnapshotTakesNothingTwice(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("a", "b")
	old := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	sqltest.Equal(old, 2, "select count(*) from parley.peek_messages('jobs')")
	b.RequireTaken(1, "a")
	// Messages that it sees and others have taken it passes by.
	old.RequireTaken(2, "b")
	old.Commit()
	b.RequireTaken(2)
}

// Each message once, and those of a key in order, whatever the readers roll back.
func TestReadersOfASimpleQueueSideBySide(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	const messages, keys, readers = 800, 10, 6
	b.Exec("select parley.alter_queue('jobs', poison_rollbacks => 15)")
	b.Exec("create table taken (number bigint generated always as identity, id bigint, key text, body text)")
	var all sync.WaitGroup
	all.Go(func() {
		s := b.Unhurried()
		for n := range messages {
			if n%2 == 0 {
				s.Exec("select parley.put('jobs', $1::text, key => $2)", fmt.Sprintf("%05d", n), fmt.Sprint(n%keys))
				continue
			}
			s.Put(fmt.Sprintf("%05d", n))
		}
	})
	for reader := range readers {
		all.Go(func() {
			s := b.Unhurried()
			random := rand.New(rand.NewPCG(uint64(reader), 1))
			for sqltest.Value[int](b.Session, "select count(*) from taken") < messages {
				s.Exec("begin")
				s.Exec("insert into taken (id, key, body) select message_id, key, parley.body_text(body) from parley.take('jobs', $1)", 1+random.IntN(30))
				if random.IntN(6) == 0 {
					s.Exec("rollback")
					continue
				}
				s.Exec("commit")
			}
		})
	}
	all.Wait()
	sqltest.Equal(b.Session, true, "select count(*) = $1 and count(distinct body) = $1 from taken", messages)
	sqltest.Equal(b.Session, 0, `
		select count(*)
		from (select body, max(body) over (partition by key order by number rows unbounded preceding) as last from taken where key is not null) as k
		where k.body < k.last`)
}

func TestPausedReadersTakeNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("a")
	b.Exec("select parley.pause_readers('jobs')")
	reader := b.Connection()
	reader.Exec("set parley.reader = on")
	reader.RequireTaken(1)
	b.RequireTaken(1, "a")
	b.Put("b")
	b.Exec("select parley.resume_readers('jobs')")
	reader.RequireTaken(1, "b")
}

// Readers do not walk over what was taken long ago.
func TestTakeBeginsWhereAHintLetsIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.put_batch('jobs', array(select 'x' from generate_series(1, 3000)))")
	s := b.Connection()
	for range 30 {
		s.Exec("select parley.take('jobs', 90)")
	}
	sqltest.Equal(b.Session, true, "select max(low_position) > 1000 * 1024 from parley._p_scan_hint")
	if got := len(s.Take(1000)); got != 300 {
		t.Errorf("%d messages were left", got)
	}
}

func TestDelayedMessageIsRescheduled(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.put('jobs', 'later'::text, deliver_at => now() + interval '1 hour')")
	id := sqltest.Value[int64](b.Session, "select delayed_id from parley.delayed_messages")
	sqltest.Equal(b.Session, true, "select parley.reschedule_message('jobs', $1, now() + interval '2 hours')", id)
	b.RequireTaken(1)
	sqltest.Equal(b.Session, true, "select due_at > now() + interval '90 minutes' from parley.delayed_messages")
	sqltest.Equal(b.Session, true, "select parley.reschedule_message('jobs', $1, null)", id)
	b.RequireTaken(1, "later")
	sqltest.Equal(b.Session, false, "select parley.reschedule_message('jobs', $1, null)", id)
}

func TestPutRefusesTimesThatNeverComeAndLongKeys(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Refuses(8402, "select parley.put('jobs', 'x'::text, deliver_at => 'infinity')")
	b.Refuses(8402, "select parley.put('jobs', 'x'::text, deliver_at => '-infinity')")
	b.Refuses(8402, "select parley.put('jobs', 'x'::text, key => repeat('k', 257))")
	b.Exec("select parley.put('jobs', 'x'::text, key => repeat('ü', 256))")
	b.RequireTaken(1, "x")
}

// Readers that find nothing in another queue do not put off what is due in this one.
func TestReadersOfOneQueueDoNotPutOffWhatIsDueInAnother(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.create_queue('others', kind => 'SIMPLE')")
	b.Exec("select parley.put('jobs', 'due'::text, deliver_at => now() + interval '1 hour')")
	b.Exec("update parley._p_delayed_message set due_at = now() - interval '1 hour'")
	b.Exec("select setval('parley._p_next_due', 1)")
	b.Exec("select * from parley.take('others')")
	sqltest.Equal(b.Session, 1, "select pg_sequence_last_value('parley._p_next_due')")
	b.RequireTaken(1, "due")
}
