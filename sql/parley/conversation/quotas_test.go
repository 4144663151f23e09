package conversation_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// sendUntilRefused sends on a conversation until its queue is full, and gives how often that worked.
func sendUntilRefused(s sqltest.Session, handle string, most int) (sent int) {
	s.Helper()
	for sent < most {
		if _, err := s.DB.Exec(s.Context(), "select parley.send($1::uuid, $2, $3::text)", handle, sqltest.Request, strings.Repeat("x", 100)); err != nil {
			if !strings.Contains(sqltest.Describe(err), sqltest.SQLState(10928)) {
				s.Fatalf("send: %v", sqltest.Describe(err))
			}
			return sent
		}
		sent++
	}
	return sent
}

func TestQuotaOfMessagesRefusesSenders(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.QuotaOf("messages => 50")
	handle := b.Dialog()
	if sent := sendUntilRefused(b.Session, handle, 200); sent != 50 {
		t.Errorf("sent %d, want 50", sent)
	}
	refusal := b.Refuses(10928, "select parley.send($1::uuid, $2, 'x')", handle, sqltest.Request)
	if want := "Service Broker error 10928. Its quota is used up. parley.queue_quotas shows it to its readers."; refusal.Detail != want {
		t.Errorf("detail %q, want %q", refusal.Detail, want)
	}
	sqltest.Equal(b.Session, "Answering 50 50 5000 t", "select concat_ws(' ', queue_name, quota_messages, quota_bytes, messages, bytes, is_full) from parley.queue_quotas")
	b.RequireFinding(sqltest.Runtime, "queue-full")
	// Each way to send is refused.
	b.Refuses(10928, "select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work'), $1, 'x')", sqltest.Request)
	b.Refuses(10928, "select parley.send_and_end('//test/Asker', '//test/Answerer', $1, 'x', '//test/Work')", sqltest.Request)
	b.Refuses(10928, "select parley.send_batch($1::uuid, $2, array['x', 'y'])", handle, sqltest.Request)
	b.Refuses(10928, "select parley.send_to_all(array[$1::uuid], $2, 'x')", handle, sqltest.Request)
	b.Refuses(10928, "select parley.send($1::uuid, $2, 'x')", handle, sqltest.Note)
	// Received messages make room, at once.
	b.Messages("select * from parley.receive('Answering', top => 10)")
	b.RequireFinding(sqltest.Runtime, "queue-nearly-full")
	if sent := sendUntilRefused(b.Session, handle, 200); sent != 10 {
		t.Errorf("then sent %d, want 10", sent)
	}
	// The end of a conversation is never refused.
	b.End(handle)
	sqltest.Equal(b.Session, 51, "select count(*)::integer from parley.receive('Answering')")
	b.RequireNoFinding(sqltest.Runtime, "queue-full")
}

func TestQuotaOfBytesRefusesSenders(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.QuotaOf("bytes => 10000")
	handle := b.Dialog()
	// One body may go beyond.
	if sent := sendUntilRefused(b.Session, handle, 500); sent != 100 {
		t.Errorf("sent %d bodies of 100 bytes, want 100", sent)
	}
	b.QuotaOf("bytes => 20000, messages => 150")
	if sent := sendUntilRefused(b.Session, handle, 500); sent != 50 {
		t.Errorf("with a larger quota sent %d, want 50 more", sent)
	}
	b.QuotaOf("messages => null")
	if sent := sendUntilRefused(b.Session, handle, 100); sent != 100 {
		t.Errorf("without a quota sent %d", sent)
	}
	sqltest.Equal(b.Session, 0, "select count(*)::integer from parley.queue_quotas")
	b.QuotaOf("messages => 1")
	if sent := sendUntilRefused(b.Session, handle, 100); sent != 0 {
		t.Errorf("with a smaller quota sent %d", sent)
	}
}

func TestQuotaJudgesABatchAsAWhole(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.QuotaOf("messages => 1000")
	handle := b.Dialog()
	batch := "select parley.send_batch($1::uuid, $2, array_fill('x'::text, array[$3::integer]))"
	b.Exec(batch, handle, sqltest.Request, 900)
	b.Refuses(10928, batch, handle, sqltest.Request, 101)
	b.Exec(batch, handle, sqltest.Request, 100)
	b.Refuses(10928, batch, handle, sqltest.Request, 1)
	sqltest.Equal(b.Session, 1000, "select messages::integer from parley.queue_quotas")
}

// The room given to others uncounted is never more than the quota.
func TestQuotaHoldsForSeveralSendersAtOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.QuotaOf("messages => 400")
	var sent atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		handle := b.Dialog()
		all.Go(func() {
			sent.Add(int64(sendUntilRefused(b.Session, handle, 400)))
		})
	}
	all.Wait()
	if sent.Load() < 400 || sent.Load() > 404 {
		t.Errorf("sent %d, want 400, and what each of four had under way", sent.Load())
	}
}

// A refusal, and what a rollback takes back, leaves room.
func TestQuotaAfterRollbacks(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.QuotaOf("messages => 20")
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "first")
	for range 5 {
		tx := b.Begin()
		if sent := sendUntilRefused(tx, handle, 15); sent != 15 {
			t.Errorf("sent %d", sent)
		}
		tx.Rollback()
	}
	if sent := sendUntilRefused(b.Session, handle, 100); sent != 19 {
		t.Errorf("sent %d, want 19", sent)
	}
	tx := b.Begin()
	tx.Exec("select parley.set_queue_quota('Answering')")
	tx.Rollback()
	b.Refuses(10928, "select parley.send($1::uuid, $2, 'x')", handle, sqltest.Request)
}

// Readers that come and go must not open the short way past the quota.
func TestQuotaIsAskedWhateverListenersDo(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.QuotaOf("messages => 2")
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "1")
	b.Exec("select parley.listen_for_messages('Answering', -2147483647)")
	b.Exec("select parley._p_cancel_wakeups(array(select object_id from parley.service_queues))")
	if sent := sendUntilRefused(b.Session, handle, 10); sent != 1 {
		t.Errorf("sent %d, want 1", sent)
	}
	// A queue without one is not held up by it.
	b.Send(b.FarHandle(handle), sqltest.Reply, "answer")
}

func TestQuotaHoldsWhatComesFromElsewhere(t *testing.T) {
	t.Parallel()
	b := sqltest.NewTarget(t)
	b.Exec(sqltest.FullQueue)
	if got := b.Accept(sqltest.Arriving{}); got != "held 10928" {
		t.Errorf("a first message is %s", got)
	}
	b.Exec("select parley.receive('Answering')")
	if got := b.Accept(sqltest.Arriving{}); got != "accepted" {
		t.Errorf("with room it is %s", got)
	}
}

func TestQuotaOfASimpleQueue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('Simple', kind => 'simple')")
	b.Exec("select parley.set_queue_quota('Simple', messages => 3)")
	put := "select parley.put('Simple', 'x')"
	b.Exec(put)
	b.Exec(put)
	b.Exec("select parley.put('Simple', 'x', key => 'k')")
	b.Refuses(10928, put)
	b.Refuses(10928, "select parley.put('Simple', 'x', key => 'k')")
	b.Exec("select parley.take('Simple')")
	b.Exec(put)
	b.Refuses(10928, put)
	later := "select parley.put_batch('Simple', array_fill('x'::text, array[$1::integer]), deliver_at => now() + interval '1 day')"
	b.Refuses(10928, later, 4)
	b.Exec(later, 2)
	b.Exec(later, 1)
	b.Refuses(10928, later, 1)
	b.Exec("select parley.set_queue_quota('Simple', bytes => 4)")
	b.Exec(later, 1)
	b.Refuses(10928, later, 1)
	// Nothing keeps them out when they are due, so nobody fills a queue with what comes in a moment, again and again.
	b.Exec("update parley._p_delayed_message set due_at = now()")
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 7, "select waiting_messages from parley.simple_queues")
	b.Exec(later, 1)
	b.Refuses(10928, later, 1)
	b.Exec("select parley.set_queue_quota('Simple', messages => 3)")
	b.Refuses(10928, later, 1)
	b.Exec("select parley.take('Simple', 3)")
	b.Exec(later, 1)
	b.Refuses(10928, later, 1)
}

func TestQuotaSaysThatItIsNearlyUsedUp(t *testing.T) {
	t.Parallel()
	for _, quota := range []string{"messages => 100", "bytes => 1000000"} {
		t.Run(quota, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.QuotaOf(quota)
			s, notices := b.Noticing("postgres")
			handle := s.Dialog()
			body := strings.Repeat("x", 9800)
			for i := range 98 {
				s.Send(handle, sqltest.Request, body)
				if i == 70 && len(*notices) > 0 {
					t.Errorf("a notice below four fifths: %v", (*notices)[0])
				}
			}
			if len(*notices) == 0 || len(*notices) > 21 || (*notices)[0].Message != `queue "Answering" is nearly full` {
				t.Errorf("notices %v", *notices)
			}
		})
	}
}

// The quota of one queue costs the senders to others nothing: they do not ask for any.
func TestQuotaIsAskedOfItsQueueAlone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	const marked = "select pg_sequence_last_value(wakeup_sequence) % 2 from parley._p_queue where name = $1"
	b.QuotaOf("messages => 50")
	for range 3 {
		b.Exec("select parley.listen_for_messages('Asking'), parley.listen_for_messages('Answering'), parley.listen_for_messages('Asking', 11), parley.listen_for_messages('Answering', 11)")
		sqltest.Equal(b.Session, 0, marked, "Asking")
		sqltest.Equal(b.Session, 1, marked, "Answering")
	}
	b.Exec("select parley.listen_for_messages('Answering', 0)")
	sqltest.Equal(b.Session, 1, marked, "Answering")
	b.QuotaOf("messages => null")
	b.Exec("select parley.listen_for_messages('Answering', 0)")
	sqltest.Equal(b.Session, 0, marked, "Answering")
}
