package sql_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// fullQueue fills the queue of the target.
const fullQueue = `
	do $$ begin
		perform parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work'), '//test/Request', 'x');
		perform parley.set_queue_quota('Answering', messages => 1);
	end $$`

// sendUntilRefused sends on a conversation until its queue is full, and gives how often that worked.
func (s session) sendUntilRefused(handle string, most int) (sent int) {
	s.Helper()
	for sent < most {
		if _, err := s.db.Exec(s.Context(), "select parley.send($1::uuid, $2, $3::text)", handle, request, strings.Repeat("x", 100)); err != nil {
			if !strings.Contains(describe(err), sqlState(10928)) {
				s.Fatalf("send: %v", describe(err))
			}
			return sent
		}
		sent++
	}
	return sent
}

func (s session) quota(arguments string) {
	s.Helper()
	s.exec("select parley.set_queue_quota('Answering', " + arguments + ")")
}

func TestQuotaOfMessagesRefusesSenders(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.quota("messages => 50")
	handle := b.dialog()
	if sent := b.sendUntilRefused(handle, 200); sent != 50 {
		t.Errorf("sent %d, want 50", sent)
	}
	refusal := b.refuses(10928, "select parley.send($1::uuid, $2, 'x')", handle, request)
	if want := "Service Broker error 10928. Its quota is used up. parley.queue_quotas shows it to its readers."; refusal.Detail != want {
		t.Errorf("detail %q, want %q", refusal.Detail, want)
	}
	equal(b.session, "Answering 50 50 5000 t", "select concat_ws(' ', queue_name, quota_messages, quota_bytes, messages, bytes, is_full) from parley.queue_quotas")
	b.requireFinding(runtime, "queue-full")
	// Each way to send is refused.
	b.refuses(10928, "select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work'), $1, 'x')", request)
	b.refuses(10928, "select parley.send_and_end('//test/Asker', '//test/Answerer', $1, 'x', '//test/Work')", request)
	b.refuses(10928, "select parley.send_batch($1::uuid, $2, array['x', 'y'])", handle, request)
	b.refuses(10928, "select parley.send_to_all(array[$1::uuid], $2, 'x')", handle, request)
	b.refuses(10928, "select parley.send($1::uuid, $2, 'x')", handle, note)
	// What is received makes room, at once.
	b.messages("select * from parley.receive('Answering', top => 10)")
	b.requireFinding(runtime, "queue-nearly-full")
	if sent := b.sendUntilRefused(handle, 200); sent != 10 {
		t.Errorf("then sent %d, want 10", sent)
	}
	// The end of a conversation is never refused.
	b.end(handle)
	equal(b.session, 51, "select count(*)::integer from parley.receive('Answering')")
	b.requireNoFinding(runtime, "queue-full")
}

func TestQuotaOfBytesRefusesSenders(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.quota("bytes => 10000")
	handle := b.dialog()
	// One body may go beyond.
	if sent := b.sendUntilRefused(handle, 500); sent != 100 {
		t.Errorf("sent %d bodies of 100 bytes, want 100", sent)
	}
	b.quota("bytes => 20000, messages => 150")
	if sent := b.sendUntilRefused(handle, 500); sent != 50 {
		t.Errorf("with a larger quota sent %d, want 50 more", sent)
	}
	b.quota("messages => null")
	if sent := b.sendUntilRefused(handle, 100); sent != 100 {
		t.Errorf("without a quota sent %d", sent)
	}
	equal(b.session, 0, "select count(*)::integer from parley.queue_quotas")
	b.quota("messages => 1")
	if sent := b.sendUntilRefused(handle, 100); sent != 0 {
		t.Errorf("with a smaller quota sent %d", sent)
	}
}

func TestQuotaJudgesABatchAsAWhole(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.quota("messages => 1000")
	handle := b.dialog()
	batch := "select parley.send_batch($1::uuid, $2, array_fill('x'::text, array[$3::integer]))"
	b.exec(batch, handle, request, 900)
	b.refuses(10928, batch, handle, request, 101)
	b.exec(batch, handle, request, 100)
	b.refuses(10928, batch, handle, request, 1)
	equal(b.session, 1000, "select messages::integer from parley.queue_quotas")
}

// What is given to others uncounted is never more than the quota.
func TestQuotaHoldsForSeveralSendersAtOnce(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.quota("messages => 400")
	var sent atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		handle := b.dialog()
		all.Go(func() {
			sent.Add(int64(b.sendUntilRefused(handle, 400)))
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
	b := newWorld(t)
	b.quota("messages => 20")
	handle := b.dialog()
	b.send(handle, request, "first")
	for range 5 {
		tx := b.begin()
		if sent := tx.sendUntilRefused(handle, 15); sent != 15 {
			t.Errorf("sent %d", sent)
		}
		tx.rollback()
	}
	if sent := b.sendUntilRefused(handle, 100); sent != 19 {
		t.Errorf("sent %d, want 19", sent)
	}
	tx := b.begin()
	tx.exec("select parley.set_queue_quota('Answering')")
	tx.rollback()
	b.refuses(10928, "select parley.send($1::uuid, $2, 'x')", handle, request)
}

// Readers that come and go must not open the short way past the quota.
func TestQuotaIsAskedWhateverListenersDo(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.quota("messages => 2")
	handle := b.dialog()
	b.send(handle, request, "1")
	b.exec("select parley.listen_for_messages('Answering', -2147483647)")
	b.exec("select parley._p_cancel_wakeups(array(select object_id from parley.service_queues))")
	if sent := b.sendUntilRefused(handle, 10); sent != 1 {
		t.Errorf("sent %d, want 1", sent)
	}
	// A queue without one is not held up by it.
	b.send(b.farHandle(handle), reply, "answer")
}

func TestQuotaHoldsWhatComesFromElsewhere(t *testing.T) {
	t.Parallel()
	b := newTarget(t)
	b.exec(fullQueue)
	if got := b.accept(arriving{}); got != "held 10928" {
		t.Errorf("a first message is %s", got)
	}
	b.exec("select parley.receive('Answering')")
	if got := b.accept(arriving{}); got != "accepted" {
		t.Errorf("with room it is %s", got)
	}
}

func TestQuotaOfASimpleQueue(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_queue('Simple', kind => 'simple')")
	b.exec("select parley.set_queue_quota('Simple', messages => 3)")
	put := "select parley.put('Simple', 'x')"
	b.exec(put)
	b.exec(put)
	b.exec("select parley.put('Simple', 'x', key => 'k')")
	b.refuses(10928, put)
	b.refuses(10928, "select parley.put('Simple', 'x', key => 'k')")
	b.exec("select parley.take('Simple')")
	b.exec(put)
	b.refuses(10928, put)
	later := "select parley.put_batch('Simple', array_fill('x'::text, array[$1::integer]), deliver_at => now() + interval '1 day')"
	b.refuses(10928, later, 4)
	b.exec(later, 2)
	b.exec(later, 1)
	b.refuses(10928, later, 1)
	b.exec("select parley.set_queue_quota('Simple', bytes => 4)")
	b.exec(later, 1)
	b.refuses(10928, later, 1)
	// Nothing keeps them out when they are due, so nobody fills a queue with what comes in a moment, again and again.
	b.exec("update parley._p_delayed_message set due_at = now()")
	b.exec("select parley.fire_timers()")
	equal(b.session, 7, "select waiting_messages from parley.simple_queues")
	b.exec(later, 1)
	b.refuses(10928, later, 1)
	b.exec("select parley.set_queue_quota('Simple', messages => 3)")
	b.refuses(10928, later, 1)
	b.exec("select parley.take('Simple', 3)")
	b.exec(later, 1)
	b.refuses(10928, later, 1)
}

func TestQuotaSaysThatItIsNearlyUsedUp(t *testing.T) {
	t.Parallel()
	for _, quota := range []string{"messages => 100", "bytes => 1000000"} {
		t.Run(quota, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.quota(quota)
			s, notices := b.noticing("postgres")
			handle := s.dialog()
			body := strings.Repeat("x", 9800)
			for i := range 98 {
				s.send(handle, request, body)
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

func TestRightsOfQuotas(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	name := b.role("outsider")
	outsider := b.as(name)
	b.quota("messages => 5")
	outsider.refuses(229, "select parley.set_queue_quota('Answering')")
	equal(outsider, 0, "select count(*)::integer from parley.queue_quotas")
	b.exec("select parley.grant('RECEIVE', 'queue', 'Answering', $1)", name)
	outsider.refuses(229, "select parley.set_queue_quota('Answering', 1)")
	equal(outsider, 1, "select count(*)::integer from parley.queue_quotas")
	b.exec("select parley.grant('ALTER', 'queue', 'Answering', $1)", name)
	outsider.exec("select parley.set_queue_quota('Answering', 1)")
	b.refuses(8402, "select parley.set_queue_quota('Answering', 0)")
	b.refuses(8402, "select parley.set_queue_quota('Answering', bytes => 9223372036854775807)")
	b.refuses(8402, "select parley.set_queue_quota('Answering', bytes => -1)")
	b.refuses(208, "select parley.set_queue_quota('None', 1)")
	equal(b.session, "1", "select concat_ws(' ', quota_messages, quota_bytes) from parley.service_queues where name = 'Answering'")
	b.exec("select parley.drop_service('//test/Answerer')")
	b.exec("select parley.drop_queue('Answering')")
	equal(b.session, 0, "select count(*)::integer from pg_class where relname like E'\\\\_p\\\\_queue%quota'")
}

// The quota of one queue costs the senders to others nothing: they do not ask for any.
func TestQuotaIsAskedOfItsQueueAlone(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	const marked = "select pg_sequence_last_value(wakeup_sequence) % 2 from parley._p_queue where name = $1"
	b.quota("messages => 50")
	for range 3 {
		b.exec("select parley.listen_for_messages('Asking'), parley.listen_for_messages('Answering'), parley.listen_for_messages('Asking', 11), parley.listen_for_messages('Answering', 11)")
		equal(b.session, 0, marked, "Asking")
		equal(b.session, 1, marked, "Answering")
	}
	b.exec("select parley.listen_for_messages('Answering', 0)")
	equal(b.session, 1, marked, "Answering")
	b.quota("messages => null")
	b.exec("select parley.listen_for_messages('Answering', 0)")
	equal(b.session, 0, marked, "Answering")
}
