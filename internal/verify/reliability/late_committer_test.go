package reliability_test

import (
	"context"
	"fmt"
	"testing"
)

// A sender that draws its place early and commits late must not be passed over, however far the readers have got meanwhile.
// Keeps S2, S19.
func TestLateCommitterIsNotSkipped(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.passBy(t, 300)
	handle, _ := b.admin.conversation("early")
	b.admin.receive(from{})
	sender, other := b.session(t), b.session(t)
	sender.begin()
	sender.send(handle, "late")
	b.passBy(t, 700)
	other.begin()
	other.send(handle, "later")
	b.passBy(t, 700)
	sender.commit()
	wantBodies(t, b.admin.receive(from{}), "late")
	b.passBy(t, 700)
	other.commit()
	wantBodies(t, b.admin.receive(from{}), "later")
}

func TestLateCommitterWithSavepointsIsNotSkipped(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	handle, _ := b.admin.conversation("early")
	b.admin.receive(from{})
	sender := b.session(t)
	sender.begin()
	sender.savepoint("a")
	sender.send(handle, "never")
	sender.rollbackTo("a")
	sender.send(handle, "late")
	sender.exec("release savepoint a")
	b.passBy(t, 1500)
	sender.commit()
	wantBodies(t, b.admin.receive(from{}), "late")
}

// A reader whose snapshot is old must not hint others what to skip.
func TestReaderAtRepeatableReadDoesNotHideMessages(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	handle, _ := b.admin.conversation("early")
	b.admin.receive(from{})
	reader := b.session(t)
	reader.beginRepeatableRead()
	ask[int](reader, "select 1")
	b.admin.send(handle, "unseen")
	holder := b.lockGroups(t, 1)[0]
	b.passBy(t, 700)
	for range 5 {
		reader.receive(from{})
	}
	reader.commit()
	holder.rollback()
	wantBodies(t, b.admin.receive(from{}), "unseen")
}

// Keeps S3: what was taken since its snapshot began is an error for a reader at REPEATABLE READ, never a second delivery.
func TestReaderAtRepeatableReadDoesNotReceiveTwice(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.admin.conversation("1")
	reader := b.session(t)
	reader.beginRepeatableRead()
	ask[int](reader, "select 1")
	wantBodies(t, b.admin.receive(from{}), "1")
	got, err := reader.tryReceive(context.Background(), from{})
	if code(err) != "40001" {
		t.Errorf("received %q, error %v; want a serialization failure", bodies(got), err)
	}
}

// The reader has scanned before the sender commits, and writes its hint after others have found that all senders are done.
func TestHintOfASlowReaderDoesNotHideALateCommitter(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.passBy(t, 300)
	late, lateTarget := b.admin.conversation("opening late")
	slow, _ := b.admin.conversation("opening slow")
	b.admin.receive(from{})
	b.admin.receive(from{})
	sender := b.session(t)
	sender.begin()
	sender.send(late, "late")
	b.passBy(t, 600)
	b.admin.send(slow, "slow")
	reader := b.stallReader(t)
	sender.commit()
	// No reader takes the late message for now, so that only a hint can hide it.
	holder := b.session(t)
	holder.begin()
	holder.exec("select parley.begin_conversation_timer($1::uuid, 3600)", lateTarget)
	b.passBy(t, 900)
	wantBodies(t, reader.resume(), "slow")
	holder.rollback()
	wantBodies(t, b.admin.receive(from{}), "late")
}

// The first message of a transaction has its place before what the reader saw, the second one after; keeps S4.
func TestMessagesOfOneTransactionAreNotSplitByAReader(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]string{
		"Plain":   "select $1::uuid is not null",
		"Related": "select parley.begin_dialog('target', 'initiator', related_conversation => $1::uuid)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			handle, target := b.admin.conversation("opening")
			b.admin.receive(from{})
			b.admin.exec(prepare, target)
			sender := b.session(t)
			sender.begin()
			sender.send(handle, "1")
			b.admin.send(handle, "2")
			reader := b.stallReader(t)
			sender.send(handle, "3")
			sender.commit()
			wantBodies(t, reader.resume(), "1", "2", "3")
		})
	}
}

// Errors and timer messages stand outside the sequence, also when they arrive between a reader's scan and its taking.
func TestErrorThatArrivesDuringAScanStandsOutsideTheSequence(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	handle, _ := b.admin.conversation("1", "2")
	reader := b.stallReader(t)
	b.admin.exec("select parley.end_conversation($1::uuid, 7, 'seven')", handle)
	got := append(reader.resume(), b.admin.receive(from{})...)
	if len(got) != 3 {
		t.Fatalf("received %d messages, want 3", len(got))
	}
	next := int64(0)
	for _, m := range got {
		want := next
		if m.Type == typeError {
			want = -1
		} else {
			next++
		}
		if m.Sequence != want {
			t.Errorf("message %q of type %s has number %d, want %d", m.Body, m.Type, m.Sequence, want)
		}
	}
}

func TestTimerThatFiresDuringAScanStandsOutsideTheSequence(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	handle, target := b.admin.conversation("1")
	b.admin.exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
	reader := b.stallReader(t)
	b.admin.exec("select parley.fire_timers()")
	b.admin.send(handle, "2")
	got := append(reader.resume(), b.admin.receive(from{})...)
	seen := ""
	for _, m := range got {
		seen += fmt.Sprintf("%s%d ", m.Body, m.Sequence)
	}
	if len(got) != 3 || (seen != "-1 10 21 " && seen != "10 -1 21 ") {
		t.Errorf("bodies and numbers are %q, want 1 and 2 with numbers 0 and 1, and the timer with -1", seen)
	}
}

// stalled is a reader that has scanned the head of the queue, holds its group, and has not taken anything yet.
type stalled struct {
	*running[[]message]
	holder *session
}

// stallReader lets the message at the head of the target's queue come back once and then stops a reader where it counts that. The count is
// guarded by a row, which the test locks.
func (b *fixture) stallReader(t testing.TB) stalled {
	t.Helper()
	failing, holder, reader := b.session(t), b.session(t), b.session(t)
	failing.begin()
	if got := failing.receive(from{}); len(got) == 0 {
		t.Fatal("there is nothing to receive")
	}
	failing.rollback()
	holder.begin()
	holder.exec("select from parley._p_rollback_counter for update")
	r := start(b, reader, func() ([]message, error) { return reader.tryReceive(context.Background(), from{}) })
	r.awaitBlocked()
	return stalled{r, holder}
}

// resume lets the reader go on, and gives what it received.
func (r stalled) resume() []message {
	r.s.t.Helper()
	r.holder.rollback()
	return r.must()
}
