package reliability_test

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// Keeps S12: whoever fires a timer waits for nobody, and so keeps nobody from ending the conversation that it belongs to.
func TestReceiveWaitsForNobodyWhoHoldsATimersConversation(t *testing.T) {
	t.Parallel()
	b := newBed(t)
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
	b := newBed(t)
	const dialogsEach, readersEach = 200, 3
	var sending, reading sync.WaitGroup
	over := make(chan struct{})
	for range 2 {
		s := b.session(t)
		sending.Go(func() {
			for n := range dialogsEach {
				lifetime := []*int{nil, new(1), new(2)}[n%3]
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
				if err := s.answerWithTimers(queue, random); err != nil && code(err) != broker(8410) && (!harmless[code(err)] || code(err) == "40P01") {
					t.Errorf("%s: %v", queue, err)
				}
			}
		})
	}
	sending.Wait()
	close(over)
	reading.Wait()
}

// answerWithTimers receives what there is of one conversation, and ends it or sets its timer.
func (s *session) answerWithTimers(queue string, random *rand.Rand) error {
	if err := s.try("begin"); err != nil {
		return err
	}
	const receive = "select coalesce(min(conversation_handle::text), ''), count(*) filter (where message_type_id in (1, 2)) > 0 from parley.receive($1)"
	var handle string
	var hasEnded bool
	err := s.conn.QueryRow(s.t.Context(), receive, queue).Scan(&handle, &hasEnded)
	switch {
	case err != nil || handle == "":
	case hasEnded || random.IntN(3) == 0:
		err = s.tryEnd(handle)
	default:
		err = s.try("select parley.begin_conversation_timer($1::uuid, 0)", handle)
	}
	if err != nil {
		_ = s.try("rollback")
		return err
	}
	return s.try("commit")
}
