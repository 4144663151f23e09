package sql_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestReceivedMessageHasAllItsColumns(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	before := value[time.Time](b.session, "select clock_timestamp()")
	initiator := b.dialog()
	b.send(initiator, request, "body")
	seen := b.messages("select * from parley.queue_contents('Answering')")
	got := b.receive("Answering")
	if len(got) != 1 || len(seen) != 1 {
		t.Fatalf("saw %v, received %v", seen, got)
	}
	m := got[0]
	if seen[0].Status != 1 || m.Status != 0 {
		t.Errorf("the status is %d in the queue and %d when received, want 1 and 0", seen[0].Status, m.Status)
	}
	seen[0].Status = 0
	seen[0].MessageID = nil
	if got, want := fmt.Sprintf("%+v", m), fmt.Sprintf("%+v", seen[0]); got != want {
		t.Errorf("received %s, seen %s", got, want)
	}
	if m.MessageEnqueueTime.Before(before) {
		t.Errorf("it arrived at %v, before it was sent at %v", m.MessageEnqueueTime, before)
	}
	equal(b.session, true, `
		select (conversation_handle::text, conversation_group_id::text, service_name, service_id, service_contract_name, service_contract_id)
			= ($1, $2, $3, $4, $5, $6)
		from parley.conversation_endpoints where is_initiator = 0`,
		m.ConversationHandle, m.ConversationGroupID, m.ServiceName, m.ServiceID, m.ServiceContractName, m.ServiceContractID)
	equal(b.session, true, "select (message_type_id, validation) = ($1, $2) from parley.service_message_types where name = $3",
		m.MessageTypeID, m.Validation, m.MessageTypeName)
}

func TestReceiveRemovesWhatItReturns(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator := b.dialog()
	b.send(initiator, request, "x")
	b.receive("Answering")
	if got := b.receive("Answering"); len(got) > 0 {
		t.Errorf("received again: %v", got)
	}
	equal(b.session, 0, "select count(*) from parley.queue_contents('Answering')")
}

// The id is the message's for as long as it waits, also when the frame it came in is cut.
func TestMessageIDsInTheQueueAreUniqueAndStable(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for range 2 {
		b.exec("select parley.send_batch($1::uuid, '//test/Note', array(select i::text from generate_series(1, 100) as i))", b.dialog())
	}
	ids := func() []string {
		return values[string](b.session, "select message_id::text from parley.queue_contents('Answering') order by queuing_order")
	}
	before := ids()
	b.exec("begin; select parley.receive('Answering', 7); rollback")
	if after := ids(); !slices.Equal(after, before) {
		t.Errorf("ids were %v and are %v", before, after)
	}
	b.messages("select * from parley.receive('Answering', 7)")
	if after := ids(); !slices.Equal(after, before[7:]) {
		t.Errorf("ids were %v and are %v", before[7:], after)
	}
	slices.Sort(before)
	if len(slices.Compact(before)) != 200 {
		t.Errorf("ids repeat: %v", before)
	}
}

func TestReceiveReturnsOneGroupInArrivalOrder(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first, second := b.dialog(), b.dialog()
	b.send(second, request, "second 1")
	b.send(first, request, "first 1")
	b.send(second, request, "second 2")
	for _, want := range [][]string{{"second 1", "second 2"}, {"first 1"}, {}} {
		if got := b.bodies("Answering"); !slices.Equal(got, want) {
			t.Errorf("received %q, want %q", got, want)
		}
	}
}

func TestTopLimitsWhatIsReceived(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first, second := b.dialog(), b.dialog()
	for _, body := range []string{"1", "2", "3"} {
		b.send(first, request, body)
		b.send(second, request, "other")
	}
	for _, step := range []struct {
		top  int
		want []string
	}{
		{0, []string{}},
		{2, []string{"1", "2"}},
		// The group whose message came first is next; what is left of the other stands where it stood.
		{1, []string{"other"}},
		{1, []string{"other"}},
		{100, []string{"3"}},
		{1, []string{"other"}},
		{1, []string{}},
	} {
		got := bodiesOf(b.messages("select * from parley.receive('Answering', $1)", step.top))
		if !slices.Equal(got, step.want) {
			t.Errorf("top %d receives %q, want %q", step.top, got, step.want)
		}
	}
}

// TOP (0) is legal (spec 4.3), and takes no lock.
func TestTopZeroLocksNothing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.send(b.dialog(), request, "x")
	tx := b.begin()
	tx.exec("select parley.receive('Answering', 0)")
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestReceiveByHandleTakesOnlyThatConversation(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	related := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', related_conversation => $1)", initiator)
	b.send(related, request, "x")
	b.send(target, reply, "one")
	b.send(b.farHandle(related), reply, "two")
	b.send(target, reply, "three")
	byHandle := "select * from parley.receive('Asking', $1, conversation_handle => $2)"
	if got := bodiesOf(b.messages(byHandle, 1, related)); !slices.Equal(got, []string{"two"}) {
		t.Errorf("received %q", got)
	}
	if got := bodiesOf(b.messages(byHandle, nil, related)); len(got) > 0 {
		t.Errorf("received %q", got)
	}
	if got := bodiesOf(b.messages(byHandle, nil, initiator)); !slices.Equal(got, []string{"one", "three"}) {
		t.Errorf("received %q", got)
	}
}

func TestReceiveByGroupTakesTheWholeGroup(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	other, otherTarget := b.conversation()
	b.exec("select parley.move_conversation($1, (select conversation_group_id from parley.conversation_endpoints where conversation_handle = $2))", other, initiator)
	elsewhere, elsewhereTarget := b.conversation()
	b.send(elsewhereTarget, reply, "elsewhere")
	b.send(otherTarget, reply, "b")
	b.send(target, reply, "a")
	b.send(otherTarget, reply, "c")
	group := value[string](b.session, "select conversation_group_id::text from parley.conversation_endpoints where conversation_handle = $1", initiator)
	got := b.messages("select * from parley.receive('Asking', conversation_group_id => $1)", group)
	if !slices.Equal(bodiesOf(got), []string{"b", "c", "a"}) {
		t.Errorf("received %q", bodiesOf(got))
	}
	for _, m := range got {
		if m.ConversationGroupID != group {
			t.Errorf("received from group %s", m.ConversationGroupID)
		}
	}
	b.end(elsewhere)
}

func TestReceiveLocksTheGroupToTheEndOfTheTransaction(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first, second := b.dialog(), b.dialog()
	b.send(first, request, "1")
	b.send(first, request, "2")
	b.send(second, request, "other")
	tx := b.begin()
	if got := bodiesOf(tx.messages("select * from parley.receive('Answering', 1)")); !slices.Equal(got, []string{"1"}) {
		t.Fatalf("received %q", got)
	}
	// Others skip the group, whatever arrives in it; its sender is not held up.
	b.send(first, request, "3")
	for _, want := range [][]string{{"other"}, {}} {
		if got := b.bodies("Answering"); !slices.Equal(got, want) {
			t.Errorf("received %q, want %q", got, want)
		}
	}
	// The holder does not skip it.
	if got := tx.bodies("Answering"); !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("the holder received %q", got)
	}
	tx.rollback()
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("received %q after the rollback", got)
	}
}

func TestNamedGroupIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator := b.dialog()
	b.send(initiator, request, "1")
	b.send(initiator, request, "2")
	target := b.farHandle(initiator)
	group := value[string](b.session, "select conversation_group_id::text from parley.conversation_endpoints where conversation_handle = $1", target)
	tx := b.begin()
	tx.exec("select parley.receive('Answering', 1)")
	byHandle := b.blocked("select parley.receive('Answering', 1, conversation_handle => $1::uuid)", target)
	byGroup := b.blocked("select parley.receive('Answering', 1, conversation_group_id => $1::uuid)", group)
	tx.rollback()
	byHandle.requireSuccess()
	byGroup.requireSuccess()
	equal(b.session, 0, "select count(*) from parley.queue_contents('Answering')")
}

func TestReceiveWaitsForAMessage(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	named := b.waiting("select parley.receive('Answering', conversation_handle => $1::uuid, timeout => -1)", target)
	unnamed := b.waiting("select parley.receive('Asking', timeout => 2147483647)")
	b.send(initiator, request, "x")
	b.send(target, reply, "y")
	named.requireSuccess()
	unnamed.requireSuccess()
	for _, queue := range []string{"Asking", "Answering"} {
		equal(b.session, 0, "select count(*) from parley.queue_contents($1)", queue)
	}
}

func TestWaitingReceiveTakesAGroupThatIsLetGo(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.send(b.dialog(), request, "x")
	tx := b.begin()
	tx.receive("Answering")
	w := b.waiting("select parley.receive('Answering', timeout => -1)")
	tx.rollback()
	w.requireSuccess()
	equal(b.session, 0, "select count(*) from parley.queue_contents('Answering')")
}

func TestReceiveThatWaitedInVainReturnsNothing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for _, timeout := range []any{nil, 0, 1, 30} {
		if got := b.messages("select * from parley.receive('Answering', timeout => $1)", timeout); len(got) > 0 {
			t.Errorf("timeout %v received %v", timeout, got)
		}
		equal(b.session, true, "select parley.get_conversation_group('Answering', $1) is null", timeout)
	}
}
