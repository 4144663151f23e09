package reliability_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Keeps S12: a session that fires a timer waits for no other, and so keeps no other from ending the conversation that it belongs to.
func TestReceiveWaitsForNobodyWhoHoldsATimersConversation(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	handle := b.admin.dialog()
	b.admin.exec("select parley.begin_conversation_timer($1::uuid, 0)", handle)
	sender, reader := b.session(t), b.session(t)
	sender.begin()
	sender.send(handle, "the first, which makes the other side")
	reader.begin()
	if got := reader.receive(from{queue: "initiator_queue"}); len(got) != 0 {
		t.Errorf("received %v from a conversation that somebody holds", got)
	}
	sender.end(handle)
	sender.commit()
	reader.commit()
}

// Keeps S12: sessions that each work on one conversation at a time never deadlock, whatever timers and lifetimes they
// fire on the way.
func TestReadersThatFireTimersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	const dialogsEach, readersEach = 200, 3
	var sending, reading sync.WaitGroup
	var fired firings
	over := make(chan struct{})
	// No service answers these.
	b.admin.exec("select parley.begin_dialog('initiator', 'target', lifetime => 1) from generate_series(1, 20)")
	for range 2 {
		s := b.session(t)
		sending.Go(func() {
			for n := range dialogsEach {
				lifetime := []int{2147483647, 1, 2}[n%3]
				if err := s.try(`
					with begun as materialized (select parley.begin_dialog('initiator', 'target', lifetime => $1) as handle)
					select parley.send(b.handle, 'DEFAULT', '1'::text), parley.begin_conversation_timer(b.handle, 0) from begun as b`, lifetime); err != nil {
					t.Errorf("begin: %v", err)
				}
			}
		})
	}
	for i := range 2 * readersEach {
		s, random := b.session(t), rand.New(rand.NewPCG(1, uint64(i)))
		queue := []string{"initiator_queue", "target_queue"}[i%2]
		reading.Go(func() {
			for isOver := false; !isOver; {
				select {
				case <-over:
					isOver = true
				default:
				}
				if err := s.answerWithTimers(queue, random, &fired); err != nil && code(err) != broker(8410) && (!harmless[code(err)] || code(err) == "40P01") {
					t.Errorf("%s: %v", queue, err)
				}
			}
		})
	}
	sending.Wait()
	for fired.errors.Load() == 0 && !t.Failed() {
		pause(20 * time.Millisecond) // until lifetimes end
	}
	close(over)
	reading.Wait()
	if fired.timers.Load() == 0 {
		t.Error("no timer fired")
	}
}

// firings counts what was received that had fired.
type firings struct{ timers, errors atomic.Int64 }

// answerWithTimers receives what there is of one conversation, and ends it, sets its timer, or does both.
func (s *session) answerWithTimers(queue string, random *rand.Rand, fired *firings) error {
	if err := s.try("begin"); err != nil {
		return err
	}
	const receive = `
		select coalesce(min(conversation_handle::text), ''), count(*) filter (where message_type_id = 5), count(*) filter (where message_type_id = 1),
			count(*) filter (where message_type_id = 2)
		from parley.receive($1)`
	var handle string
	var timers, failed, ended int64
	err := s.conn.QueryRow(context.Background(), receive, queue).Scan(&handle, &timers, &failed, &ended)
	fired.timers.Add(timers)
	fired.errors.Add(failed)
	choice := random.IntN(6)
	if err == nil && handle != "" && failed+ended == 0 && choice > 0 {
		err = s.try("select parley.begin_conversation_timer($1::uuid, 0)", handle)
	}
	if err == nil && handle != "" && (failed+ended > 0 || choice < 2) {
		err = s.tryEnd(handle)
	}
	if err != nil {
		_ = s.try("rollback")
		return err
	}
	return s.try("commit")
}

// Timers of conversations that others hold stand in front of a free one, more of them than a reader tries to claim.
func TestReaderFiresATimerBehindManyThatAreHeld(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	const held = 100
	holder, reader := b.session(t), b.session(t)
	holder.begin()
	for range held {
		handle := b.admin.dialog()
		b.admin.exec("select parley.begin_conversation_timer($1::uuid, 0)", handle)
		holder.exec("select from parley._p_conversation_group as g where g.conversation_group_id = $1::uuid for update", b.admin.group(handle))
	}
	free := b.admin.dialog()
	b.admin.exec("select parley.begin_conversation_timer($1::uuid, 0)", free)
	if got := reader.receive(from{queue: "initiator_queue"}); len(got) != 1 {
		t.Errorf("received %v, want the timer of the free conversation", got)
	}
	holder.rollback()
}
