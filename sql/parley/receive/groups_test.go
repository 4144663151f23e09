package receive_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestGetConversationGroupGivesTheGroupThatReceiveWouldTake(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first, second := b.Dialog(), b.Dialog()
	b.Send(second, sqltest.Request, "x")
	b.Send(first, sqltest.Request, "y")
	tx := b.Begin()
	group := sqltest.Value[string](tx, "select parley.get_conversation_group('Answering')::text")
	if group != b.GroupOf(b.FarHandle(second)) {
		t.Errorf("got group %s", group)
	}
	// It is locked now, and nothing of it taken.
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"y"}) {
		t.Errorf("others received %q", got)
	}
	if got := sqltest.BodiesOf(tx.Messages("select * from parley.receive('Answering', conversation_group_id => $1)", group)); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestGetConversationGroupGivesNullWhenNothingWaits(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Conversation()
	sqltest.Equal(b.Session, true, "select parley.get_conversation_group('Answering') is null")
}

func TestGetConversationGroupByPriority(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	targets := family(b.Session)
	_, plain := b.Conversation()
	b.Send(plain, sqltest.Reply, "plain")
	b.Send(targets[1], sqltest.Reply, "eight")
	sqltest.Equal(b.Session, b.GroupOf(b.FarHandle(targets[1])), "select parley.get_conversation_group('Asking')::text")
}

func TestMoveConversationJoinsTheOtherGroup(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	one, oneTarget := b.Conversation()
	two, twoTarget := b.Conversation()
	b.Send(oneTarget, sqltest.Reply, "1")
	b.Send(twoTarget, sqltest.Reply, "2")
	b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", two, b.GroupOf(one))
	if b.GroupOf(one) != b.GroupOf(two) {
		t.Error("the groups differ")
	}
	// The group that was left has no conversation: it is gone.
	sqltest.Equal(b.Session, 1, "select count(*) from parley.conversation_groups where service_id = (select service_id from parley.services where name = '//test/Asker')")
	if got := b.Bodies("Asking"); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("received %q", got)
	}
	b.Send(twoTarget, sqltest.Reply, "3")
	b.Send(oneTarget, sqltest.Reply, "4")
	if got := b.Bodies("Asking"); !slices.Equal(got, []string{"3", "4"}) {
		t.Errorf("received %q", got)
	}
}

func TestMoveConversationIntoItsOwnGroupChangesNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	one, target := b.Conversation()
	b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", one, b.GroupOf(one))
	b.Send(target, sqltest.Reply, "x")
	if got := b.Bodies("Asking"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestMoveConversationLocksBothGroups(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	one, oneTarget := b.Conversation()
	two, twoTarget := b.Conversation()
	three, threeTarget := b.Conversation()
	b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", three, b.GroupOf(two))
	for _, target := range []string{oneTarget, twoTarget, threeTarget} {
		b.Send(target, sqltest.Reply, "x")
	}
	tx := b.Begin()
	tx.Exec("select parley.move_conversation($1::uuid, $2::uuid)", two, tx.GroupOf(one))
	if got := b.Receive("Asking"); len(got) > 0 {
		t.Errorf("received %v from a locked group", got)
	}
	tx.Rollback()
	if b.GroupOf(two) == b.GroupOf(one) {
		t.Error("the rollback did not move it back")
	}
}

func TestMoveBetweenServicesOfOneQueue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_service('//test/Second', 'Asking')")
	one := b.Dialog()
	two := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Second', '//test/Answerer', '//test/Work')")
	b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", two, b.GroupOf(one))
	if b.GroupOf(one) != b.GroupOf(two) {
		t.Error("the groups differ")
	}
}

// A group goes with its last conversation (spec 3.6), so its id serves as key of an application's state as long.
func TestGroupLivesAsLongAsAConversationInIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first := b.Dialog()
	second := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', related_conversation => $1)", first)
	group := b.GroupOf(first)
	exists := "select exists (select from parley.conversation_groups where conversation_group_id = $1)"
	b.End(first)
	sqltest.Equal(b.Session, true, exists, group)
	b.End(second)
	sqltest.Equal(b.Session, false, exists, group)
}

// A group may have conversations of two services, and one of them may get another queue: each message is received from the queue it is in.
func TestGroupOfTwoQueuesIsReceivedFromBoth(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_service('//test/Other', 'Answering', '{//test/Work}')")
	first, firstTarget := b.Conversation()
	other := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Other', '//test/Work')")
	b.Send(other, sqltest.Request, "begun")
	b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", b.FarHandle(other), b.GroupOf(firstTarget))
	b.Exec("select parley.create_queue('Moved')")
	b.Exec("select parley.alter_service('//test/Other', queue => 'Moved')")
	b.Send(first, sqltest.Request, "here")
	b.Send(other, sqltest.Request, "there")
	if got := b.Bodies("Answering"); len(got) != 1 || got[0] != "here" {
		t.Errorf("received %q from the old queue", got)
	}
	if got := b.Bodies("Moved"); len(got) != 2 || got[0] != "begun" || got[1] != "there" {
		t.Errorf("received %q from the new one", got)
	}
}
