package sql_test

import (
	"fmt"
	"slices"
	"testing"
)

// A variable that is empty by mistake must not receive what is meant for others (spec 4.3).
func TestReceiveRefusesAHandleOrAGroupThatIsNull(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.send(b.dialog(), request, "x")
	for statement, number := range map[string]int{
		"select parley.receive('Answering', conversation_handle => null)":                                8418,
		"select parley.receive('Answering', conversation_handle => null, timeout => -1)":                 8418,
		"select parley.receive('Answering', conversation_group_id => null)":                              8420,
		"select parley.receive('Answering', conversation_group_id => null, timeout => -1)":               8420,
		"select parley.receive('Answering', conversation_handle => null, conversation_group_id => null)": 8418,
		"select parley.receive('Answering', 1, null, null, 0)":                                           8418,
	} {
		b.refuses(number, statement)
	}
	b.refuses(8418, "select parley.receive('Answering', conversation_handle => $1)", nil)
	b.refuses(8420, "select parley.receive('Answering', conversation_group_id => $1)", nil)
	equal(b.session, 1, "select count(*) from parley.queue_contents('Answering')")
	// What is not given is not null. Types of parameters follow from the call.
	tx := b.begin()
	if got := tx.messages("select * from parley.receive($1, $2, timeout => $3)", "Answering", nil, nil); len(got) != 1 {
		t.Errorf("without a handle received %v", got)
	}
}

func TestReceiveRefusesAHandleThatIsNotInTheGroup(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first, second := b.dialog(), b.dialog()
	b.send(first, request, "1")
	b.send(second, request, "2")
	target, group := b.farHandle(first), b.groupOf(b.farHandle(first))
	const both = "select * from parley.receive('Answering', conversation_handle => $1, conversation_group_id => $2, timeout => $3)"
	for _, timeout := range []int{0, -1} {
		b.refuses(8414, both, b.farHandle(second), group, timeout)
		b.refuses(8414, both, target, "4dbb4f2a-0000-4000-8000-000000000000", timeout)
	}
	if got := bodiesOf(b.messages(both, target, group, -1)); !slices.Equal(got, []string{"1"}) {
		t.Errorf("received %q", got)
	}
}

// A RECEIVE that waits for one conversation must not keep the others from ending it, and learns what became of it (spec 4.3).
func TestWaitingReceiveByNameHoldsNoLock(t *testing.T) {
	t.Parallel()
	const (
		byHandle = "select parley.receive('Answering', conversation_handle => $1::uuid, timeout => -1)"
		byGroup  = "select parley.receive('Answering', conversation_group_id => $1::uuid, timeout => -1)"
	)
	for name, c := range map[string]struct {
		happen            func(s session, initiator, target string)
		byHandle, byGroup int
	}{
		"End":             {func(s session, _, target string) { s.end(target) }, 8426, 0},
		"EndWithError":    {func(s session, _, target string) { s.endWithError(target, 1, "no") }, 8426, 0},
		"Cleanup":         {func(s session, _, target string) { s.exec("select parley.end_conversation($1::uuid, true)", target) }, 8426, 8436},
		"AlterService":    {func(s session, _, _ string) { s.exec("select parley.alter_service('//test/Answerer', 'Other')") }, 8468, 8468},
		"DropService":     {func(s session, _, _ string) { s.exec("select parley.drop_service('//test/Answerer')") }, 8470, 8470},
		"QueueOff":        {func(s session, _, _ string) { s.exec("select parley.alter_queue('Answering', status => false)") }, 9617, 9617},
		"EndOfTheFarSide": {func(s session, initiator, _ string) { s.end(initiator) }, 0, 0},
		"MoveAndSend": {func(s session, initiator, target string) {
			other := s.dialog()
			s.send(other, request, "other")
			s.exec("select parley.move_conversation($1, $2)", target, s.groupOf(s.farHandle(other)))
			s.send(initiator, request, "x")
		}, 0, 8436},
		"Timer": {func(s session, _, target string) {
			s.exec("select parley.begin_conversation_timer($1, 0)", target)
			s.exec("select parley.fire_timers()")
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.exec("select parley.create_queue('Other')")
			initiator, target := b.conversation()
			waiters := map[*waiter]int{b.waiting(byHandle, target): c.byHandle, b.waiting(byGroup, b.groupOf(target)): c.byGroup}
			other := b.connection()
			other.exec("set lock_timeout = '10s'")
			c.happen(other, initiator, target)
			if c.byGroup == 0 && c.byHandle == 0 {
				// One of the two gets the message, and the other one what comes after it.
				b.waitUntil("select (select count(*) from parley.queue_contents('Answering')) = 0")
				return
			}
			for w, number := range waiters {
				switch {
				case number != 0:
					w.requireRefusal(number)
				case name == "MoveAndSend":
					w.requireSuccess()
				}
			}
		})
	}
}

// With a snapshot of its own RECEIVE does not wait, and takes what it sees or fails.
func TestNamedReceiveWithAnOldSnapshotDoesNotWait(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	tx := b.begin()
	tx.exec("set transaction isolation level repeatable read")
	equal(tx, 0, "select count(*) from parley.queue_contents('Answering')")
	b.send(initiator, request, "x")
	for _, timeout := range []int{0, -1} {
		got := tx.messages("select * from parley.receive('Answering', conversation_handle => $1, timeout => $2)", target, timeout)
		if len(got) != 0 {
			t.Errorf("received %v", got)
		}
	}
}

func TestWaitingReceiveByNameGetsAGroupThatIsLetGo(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator := b.dialog()
	b.send(initiator, request, "x")
	target := b.farHandle(initiator)
	tx := b.begin()
	tx.receive("Answering")
	w := b.waiting("select parley.receive('Answering', conversation_handle => $1::uuid, timeout => -1)", target)
	// The time is that of the wait, for the lock too.
	if got := b.messages("select * from parley.receive('Answering', conversation_handle => $1::uuid, timeout => 20)", target); len(got) != 0 {
		t.Errorf("received %v", got)
	}
	tx.rollback()
	w.requireSuccess()
	equal(b.session, 0, "select count(*) from parley.queue_contents('Answering')")
}

// What a waiting RECEIVE does besides is seen by nobody before it commits, so it does not wait on.
func TestWaitingReceiveThatSetsAsideReturnsAtOnce(t *testing.T) {
	t.Parallel()
	for name, retention := range map[string]bool{"Plain": false, "Retention": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.exec("select parley.alter_queue('Answering', poison_rollbacks => 2, retention => $1)", retention)
			initiator := b.dialog()
			b.send(initiator, request, "poison")
			for range 2 {
				tx := b.begin()
				tx.receive("Answering")
				tx.rollback()
			}
			b.start("select parley.receive('Answering', timeout => -1)").requireSuccess()
			equal(b.session, 1, "select count(*) from parley.poison_conversations")

			// What comes for it is put out of the way under the lock of its group, which a waiting reader must not keep either.
			b.send(initiator, request, "more")
			b.start("select parley.receive('Answering', timeout => -1)").requireSuccess()
			b.send(initiator, request, "still more")
			b.start("select parley.get_conversation_group('Answering', timeout => -1)").requireSuccess()
			b.exec("select parley.discard_poison(conversation_handle) from parley.poison_conversations")
		})
	}
}

func TestReceiveThatReturnedBeforeItsTimeWaitsTheNextTime(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.alter_queue('Answering', poison_rollbacks => 1)")
	initiator := b.dialog()
	b.send(initiator, request, "poison")
	tx := b.begin()
	tx.receive("Answering")
	tx.rollback()
	w := b.waiting(`do $$
		begin
			perform parley.receive('Answering', timeout => -1);
			perform parley.receive('Answering', timeout => -1);
		end
	$$`)
	b.send(b.dialog(), request, "good")
	w.requireSuccess()
	equal(b.session, "poison", "select string_agg(parley.body_text(message_body), ' ') from parley.queue_contents('Answering')")
}

// It may hang on a conversation that has nothing, while the timers of others come due.
func TestWaitingReceiveFiresTimersOfItsQueue(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"Receive":      "select parley.receive('Answering', conversation_handle => '%s', timeout => -1)",
		"ReceiveGroup": "select parley.receive('Answering', conversation_group_id => (select conversation_group_id from parley.conversation_endpoints where conversation_handle = '%s'), timeout => -1)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			_, waited := b.conversation()
			_, target := b.conversation()
			w := b.waiting(fmt.Sprintf(statement, waited))
			b.exec("select parley.begin_conversation_timer($1, 0)", target)
			w.requireSuccess()
			equal(b.session, "t "+dialogTimer, "select concat_ws(' ', conversation_handle = $1, message_type_name) from parley.queue_contents('Answering')", target)
		})
	}
}
