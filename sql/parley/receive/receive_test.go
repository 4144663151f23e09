package receive_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestReceivedMessageHasAllItsColumns(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	before := sqltest.Value[time.Time](b.Session, "select clock_timestamp()")
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "body")
	seen := b.Messages("select * from parley.queue_contents('Answering')")
	got := b.Receive("Answering")
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
	sqltest.Equal(b.Session, true, `
		select (conversation_handle::text, conversation_group_id::text, service_name, service_id, service_contract_name, service_contract_id)
			= ($1, $2, $3, $4, $5, $6)
		from parley.conversation_endpoints where is_initiator = 0`,
		m.ConversationHandle, m.ConversationGroupID, m.ServiceName, m.ServiceID, m.ServiceContractName, m.ServiceContractID)
	sqltest.Equal(b.Session, true, "select (message_type_id, validation) = ($1, $2) from parley.service_message_types where name = $3",
		m.MessageTypeID, m.Validation, m.MessageTypeName)
}

func TestReceiveRemovesWhatItReturns(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "x")
	b.Receive("Answering")
	if got := b.Receive("Answering"); len(got) > 0 {
		t.Errorf("received again: %v", got)
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering')")
}

// The id is the message's for as long as it waits, also when the frame it came in is cut.
func TestMessageIDsInTheQueueAreUniqueAndStable(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for range 2 {
		b.Exec("select parley.send_batch($1::uuid, '//test/Note', array(select i::text from generate_series(1, 100) as i))", b.Dialog())
	}
	ids := func() []string {
		return sqltest.Values[string](b.Session, "select message_id::text from parley.queue_contents('Answering') order by queuing_order")
	}
	before := ids()
	b.Exec("begin; select parley.receive('Answering', 7); rollback")
	if after := ids(); !slices.Equal(after, before) {
		t.Errorf("ids were %v and are %v", before, after)
	}
	b.Messages("select * from parley.receive('Answering', 7)")
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
	b := sqltest.NewWorld(t)
	first, second := b.Dialog(), b.Dialog()
	b.Send(second, sqltest.Request, "second 1")
	b.Send(first, sqltest.Request, "first 1")
	b.Send(second, sqltest.Request, "second 2")
	for _, want := range [][]string{{"second 1", "second 2"}, {"first 1"}, {}} {
		if got := b.Bodies("Answering"); !slices.Equal(got, want) {
			t.Errorf("received %q, want %q", got, want)
		}
	}
}

func TestTopLimitsWhatIsReceived(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first, second := b.Dialog(), b.Dialog()
	for _, body := range []string{"1", "2", "3"} {
		b.Send(first, sqltest.Request, body)
		b.Send(second, sqltest.Request, "other")
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
		got := sqltest.BodiesOf(b.Messages("select * from parley.receive('Answering', $1)", step.top))
		if !slices.Equal(got, step.want) {
			t.Errorf("top %d receives %q, want %q", step.top, got, step.want)
		}
	}
}

// TOP (0) is legal (spec 4.3), and takes no lock.
func TestTopZeroLocksNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Send(b.Dialog(), sqltest.Request, "x")
	tx := b.Begin()
	tx.Exec("select parley.receive('Answering', 0)")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestReceiveByHandleTakesOnlyThatConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	related := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', related_conversation => $1)", initiator)
	b.Send(related, sqltest.Request, "x")
	b.Send(target, sqltest.Reply, "one")
	b.Send(b.FarHandle(related), sqltest.Reply, "two")
	b.Send(target, sqltest.Reply, "three")
	byHandle := "select * from parley.receive('Asking', $1, conversation_handle => $2)"
	if got := sqltest.BodiesOf(b.Messages(byHandle, 1, related)); !slices.Equal(got, []string{"two"}) {
		t.Errorf("received %q", got)
	}
	if got := sqltest.BodiesOf(b.Messages(byHandle, nil, related)); len(got) > 0 {
		t.Errorf("received %q", got)
	}
	if got := sqltest.BodiesOf(b.Messages(byHandle, nil, initiator)); !slices.Equal(got, []string{"one", "three"}) {
		t.Errorf("received %q", got)
	}
}

func TestReceiveByGroupTakesTheWholeGroup(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	other, otherTarget := b.Conversation()
	b.Exec("select parley.move_conversation($1, (select conversation_group_id from parley.conversation_endpoints where conversation_handle = $2))", other, initiator)
	elsewhere, elsewhereTarget := b.Conversation()
	b.Send(elsewhereTarget, sqltest.Reply, "elsewhere")
	b.Send(otherTarget, sqltest.Reply, "b")
	b.Send(target, sqltest.Reply, "a")
	b.Send(otherTarget, sqltest.Reply, "c")
	group := sqltest.Value[string](b.Session, "select conversation_group_id::text from parley.conversation_endpoints where conversation_handle = $1", initiator)
	got := b.Messages("select * from parley.receive('Asking', conversation_group_id => $1)", group)
	if !slices.Equal(sqltest.BodiesOf(got), []string{"b", "c", "a"}) {
		t.Errorf("received %q", sqltest.BodiesOf(got))
	}
	for _, m := range got {
		if m.ConversationGroupID != group {
			t.Errorf("received from group %s", m.ConversationGroupID)
		}
	}
	b.End(elsewhere)
}

func TestReceiveLocksTheGroupToTheEndOfTheTransaction(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first, second := b.Dialog(), b.Dialog()
	b.Send(first, sqltest.Request, "1")
	b.Send(first, sqltest.Request, "2")
	b.Send(second, sqltest.Request, "other")
	tx := b.Begin()
	if got := sqltest.BodiesOf(tx.Messages("select * from parley.receive('Answering', 1)")); !slices.Equal(got, []string{"1"}) {
		t.Fatalf("received %q", got)
	}
	// Others skip the group, whatever arrives in it; its sender is not held up.
	b.Send(first, sqltest.Request, "3")
	for _, want := range [][]string{{"other"}, {}} {
		if got := b.Bodies("Answering"); !slices.Equal(got, want) {
			t.Errorf("received %q, want %q", got, want)
		}
	}
	// The holder does not skip it.
	if got := tx.Bodies("Answering"); !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("the holder received %q", got)
	}
	tx.Rollback()
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("received %q after the rollback", got)
	}
}

func TestNamedGroupIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "1")
	b.Send(initiator, sqltest.Request, "2")
	target := b.FarHandle(initiator)
	group := sqltest.Value[string](b.Session, "select conversation_group_id::text from parley.conversation_endpoints where conversation_handle = $1", target)
	tx := b.Begin()
	tx.Exec("select parley.receive('Answering', 1)")
	byHandle := b.Blocked("select parley.receive('Answering', 1, conversation_handle => $1::uuid)", target)
	byGroup := b.Blocked("select parley.receive('Answering', 1, conversation_group_id => $1::uuid)", group)
	tx.Rollback()
	byHandle.RequireSuccess()
	byGroup.RequireSuccess()
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering')")
}

func TestReceiveWaitsForAMessage(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	named := b.Waiting("select parley.receive('Answering', conversation_handle => $1::uuid, timeout => -1)", target)
	unnamed := b.Waiting("select parley.receive('Asking', timeout => 2147483647)")
	b.Send(initiator, sqltest.Request, "x")
	b.Send(target, sqltest.Reply, "y")
	named.RequireSuccess()
	unnamed.RequireSuccess()
	for _, queue := range []string{"Asking", "Answering"} {
		sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents($1)", queue)
	}
}

func TestWaitingReceiveTakesAGroupThatIsLetGo(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Send(b.Dialog(), sqltest.Request, "x")
	tx := b.Begin()
	tx.Receive("Answering")
	w := b.Waiting("select parley.receive('Answering', timeout => -1)")
	tx.Rollback()
	w.RequireSuccess()
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering')")
}

func TestReceiveThatWaitedInVainReturnsNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, timeout := range []any{nil, 0, 1, 30} {
		if got := b.Messages("select * from parley.receive('Answering', timeout => $1)", timeout); len(got) > 0 {
			t.Errorf("timeout %v received %v", timeout, got)
		}
		sqltest.Equal(b.Session, true, "select parley.get_conversation_group('Answering', $1) is null", timeout)
	}
}
