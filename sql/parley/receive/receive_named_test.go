package receive_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A variable that is empty by mistake must not receive what is meant for others (spec 4.3).
func TestReceiveRefusesAHandleOrAGroupThatIsNull(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Send(b.Dialog(), sqltest.Request, "x")
	for statement, number := range map[string]int{
		"select parley.receive('Answering', conversation_handle => null)":                                8418,
		"select parley.receive('Answering', conversation_handle => null, timeout => -1)":                 8418,
		"select parley.receive('Answering', conversation_group_id => null)":                              8420,
		"select parley.receive('Answering', conversation_group_id => null, timeout => -1)":               8420,
		"select parley.receive('Answering', conversation_handle => null, conversation_group_id => null)": 8418,
		"select parley.receive('Answering', 1, null, null, 0)":                                           8418,
	} {
		b.Refuses(number, statement)
	}
	b.Refuses(8418, "select parley.receive('Answering', conversation_handle => $1)", nil)
	b.Refuses(8420, "select parley.receive('Answering', conversation_group_id => $1)", nil)
	sqltest.Equal(b.Session, 1, "select count(*) from parley.queue_contents('Answering')")
	// A value that is not given is not null. Types of parameters follow from the call.
	tx := b.Begin()
	if got := tx.Messages("select * from parley.receive($1, $2, timeout => $3)", "Answering", nil, nil); len(got) != 1 {
		t.Errorf("without a handle received %v", got)
	}
}

func TestReceiveRefusesAHandleThatIsNotInTheGroup(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first, second := b.Dialog(), b.Dialog()
	b.Send(first, sqltest.Request, "1")
	b.Send(second, sqltest.Request, "2")
	target, group := b.FarHandle(first), b.GroupOf(b.FarHandle(first))
	const both = "select * from parley.receive('Answering', conversation_handle => $1, conversation_group_id => $2, timeout => $3)"
	for _, timeout := range []int{0, -1} {
		b.Refuses(8414, both, b.FarHandle(second), group, timeout)
		b.Refuses(8414, both, target, "4dbb4f2a-0000-4000-8000-000000000000", timeout)
	}
	if got := sqltest.BodiesOf(b.Messages(both, target, group, -1)); !slices.Equal(got, []string{"1"}) {
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
		happen            func(s sqltest.Session, initiator, target string)
		byHandle, byGroup int
	}{
		"End":          {func(s sqltest.Session, _, target string) { s.End(target) }, 8426, 0},
		"EndWithError": {func(s sqltest.Session, _, target string) { s.EndWithError(target, 1, "no") }, 8426, 0},
		"Cleanup": {func(s sqltest.Session, _, target string) {
			s.Exec("select parley.end_conversation($1::uuid, true)", target)
		}, 8426, 8436},
		"AlterService": {func(s sqltest.Session, _, _ string) {
			s.Exec("select parley.alter_service('//test/Answerer', 'Other')")
		}, 8468, 8468},
		"DropService": {func(s sqltest.Session, _, _ string) { s.Exec("select parley.drop_service('//test/Answerer')") }, 8470, 8470},
		"QueueOff": {func(s sqltest.Session, _, _ string) {
			s.Exec("select parley.alter_queue('Answering', status => false)")
		}, 9617, 9617},
		"EndOfTheFarSide": {func(s sqltest.Session, initiator, _ string) { s.End(initiator) }, 0, 0},
		"MoveAndSend": {func(s sqltest.Session, initiator, target string) {
			other := s.Dialog()
			s.Send(other, sqltest.Request, "other")
			s.Exec("select parley.move_conversation($1, $2)", target, s.GroupOf(s.FarHandle(other)))
			s.Send(initiator, sqltest.Request, "x")
		}, 0, 8436},
		"Timer": {func(s sqltest.Session, _, target string) {
			s.Exec("select parley.begin_conversation_timer($1, 0)", target)
			s.Exec("select parley.fire_timers()")
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec("select parley.create_queue('Other')")
			initiator, target := b.Conversation()
			waiters := map[*sqltest.Waiter]int{b.Waiting(byHandle, target): c.byHandle, b.Waiting(byGroup, b.GroupOf(target)): c.byGroup}
			other := b.Connection()
			other.Exec("set lock_timeout = '10s'")
			c.happen(other, initiator, target)
			if c.byGroup == 0 && c.byHandle == 0 {
				// One of the two gets the message, and the other one what comes after it.
				b.WaitUntil("select (select count(*) from parley.queue_contents('Answering')) = 0")
				return
			}
			for w, number := range waiters {
				switch {
				case number != 0:
					w.RequireRefusal(number)
				case name == "MoveAndSend":
					w.RequireSuccess()
				}
			}
		})
	}
}

// With a snapshot of its own RECEIVE does not wait, and takes what it sees or fails.
func TestNamedReceiveWithAnOldSnapshotDoesNotWait(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	tx := b.Begin()
	tx.Exec("set transaction isolation level repeatable read")
	sqltest.Equal(tx, 0, "select count(*) from parley.queue_contents('Answering')")
	b.Send(initiator, sqltest.Request, "x")
	for _, timeout := range []int{0, -1} {
		got := tx.Messages("select * from parley.receive('Answering', conversation_handle => $1, timeout => $2)", target, timeout)
		if len(got) != 0 {
			t.Errorf("received %v", got)
		}
	}
}

func TestWaitingReceiveByNameGetsAGroupThatIsLetGo(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "x")
	target := b.FarHandle(initiator)
	tx := b.Begin()
	tx.Receive("Answering")
	w := b.Waiting("select parley.receive('Answering', conversation_handle => $1::uuid, timeout => -1)", target)
	// The time is that of the wait, for the lock too.
	if got := b.Messages("select * from parley.receive('Answering', conversation_handle => $1::uuid, timeout => 20)", target); len(got) != 0 {
		t.Errorf("received %v", got)
	}
	tx.Rollback()
	w.RequireSuccess()
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering')")
}

// The other work of a waiting RECEIVE is seen by nobody before it commits, so it does not wait on.
func TestWaitingReceiveThatSetsAsideReturnsAtOnce(t *testing.T) {
	t.Parallel()
	for name, retention := range map[string]bool{"Plain": false, "Retention": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec("select parley.alter_queue('Answering', poison_rollbacks => 2, retention => $1)", retention)
			initiator := b.Dialog()
			b.Send(initiator, sqltest.Request, "poison")
			for range 2 {
				tx := b.Begin()
				tx.Receive("Answering")
				tx.Rollback()
			}
			b.Start("select parley.receive('Answering', timeout => -1)").RequireSuccess()
			sqltest.Equal(b.Session, 1, "select count(*) from parley.poison_conversations")

			// A message that comes for it is put out of the way under the lock of its group, which a waiting reader must not keep either.
			b.Send(initiator, sqltest.Request, "more")
			b.Start("select parley.receive('Answering', timeout => -1)").RequireSuccess()
			b.Send(initiator, sqltest.Request, "still more")
			b.Start("select parley.get_conversation_group('Answering', timeout => -1)").RequireSuccess()
			b.Exec("select parley.discard_poison(conversation_handle) from parley.poison_conversations")
		})
	}
}

func TestReceiveThatReturnedBeforeItsTimeWaitsTheNextTime(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Answering', poison_rollbacks => 1)")
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "poison")
	tx := b.Begin()
	tx.Receive("Answering")
	tx.Rollback()
	w := b.Waiting(`do $$
		begin
			perform parley.receive('Answering', timeout => -1);
			perform parley.receive('Answering', timeout => -1);
		end
	$$`)
	b.Send(b.Dialog(), sqltest.Request, "good")
	w.RequireSuccess()
	sqltest.Equal(b.Session, "poison", "select string_agg(parley.body_text(message_body), ' ') from parley.queue_contents('Answering')")
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
			b := sqltest.NewWorld(t)
			_, waited := b.Conversation()
			_, target := b.Conversation()
			w := b.Waiting(fmt.Sprintf(statement, waited))
			b.Exec("select parley.begin_conversation_timer($1, 0)", target)
			w.RequireSuccess()
			sqltest.Equal(b.Session, "t "+sqltest.DialogTimer, "select concat_ws(' ', conversation_handle = $1, message_type_name) from parley.queue_contents('Answering')", target)
		})
	}
}
