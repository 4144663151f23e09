package sql_test

import (
	"slices"
	"testing"
)

func (s session) groupOf(handle string) string {
	s.Helper()
	return value[string](s, "select conversation_group_id::text from parley.conversation_endpoints where conversation_handle = $1", handle)
}

func TestGetConversationGroupGivesTheGroupThatReceiveWouldTake(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first, second := b.dialog(), b.dialog()
	b.send(second, request, "x")
	b.send(first, request, "y")
	tx := b.begin()
	group := value[string](tx, "select parley.get_conversation_group('Answering')::text")
	if group != b.groupOf(b.farHandle(second)) {
		t.Errorf("got group %s", group)
	}
	// It is locked now, and nothing of it taken.
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"y"}) {
		t.Errorf("others received %q", got)
	}
	if got := bodiesOf(tx.messages("select * from parley.receive('Answering', conversation_group_id => $1)", group)); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestGetConversationGroupGivesNullWhenNothingWaits(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.conversation()
	equal(b.session, true, "select parley.get_conversation_group('Answering') is null")
}

func TestGetConversationGroupByPriority(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	targets := b.family()
	_, plain := b.conversation()
	b.send(plain, reply, "plain")
	b.send(targets[1], reply, "eight")
	equal(b.session, b.groupOf(b.farHandle(targets[1])), "select parley.get_conversation_group('Asking')::text")
}

func TestMoveConversationJoinsTheOtherGroup(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	one, oneTarget := b.conversation()
	two, twoTarget := b.conversation()
	b.send(oneTarget, reply, "1")
	b.send(twoTarget, reply, "2")
	b.exec("select parley.move_conversation($1::uuid, $2::uuid)", two, b.groupOf(one))
	if b.groupOf(one) != b.groupOf(two) {
		t.Error("the groups differ")
	}
	// The group that was left has no conversation: it is gone.
	equal(b.session, 1, "select count(*) from parley.conversation_groups where service_id = (select service_id from parley.services where name = '//test/Asker')")
	if got := b.bodies("Asking"); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("received %q", got)
	}
	b.send(twoTarget, reply, "3")
	b.send(oneTarget, reply, "4")
	if got := b.bodies("Asking"); !slices.Equal(got, []string{"3", "4"}) {
		t.Errorf("received %q", got)
	}
}

func TestMoveConversationIntoItsOwnGroupChangesNothing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	one, target := b.conversation()
	b.exec("select parley.move_conversation($1::uuid, $2::uuid)", one, b.groupOf(one))
	b.send(target, reply, "x")
	if got := b.bodies("Asking"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestMoveConversationLocksBothGroups(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	one, oneTarget := b.conversation()
	two, twoTarget := b.conversation()
	three, threeTarget := b.conversation()
	b.exec("select parley.move_conversation($1::uuid, $2::uuid)", three, b.groupOf(two))
	for _, target := range []string{oneTarget, twoTarget, threeTarget} {
		b.send(target, reply, "x")
	}
	tx := b.begin()
	tx.exec("select parley.move_conversation($1::uuid, $2::uuid)", two, tx.groupOf(one))
	if got := b.receive("Asking"); len(got) > 0 {
		t.Errorf("received %v from a locked group", got)
	}
	tx.rollback()
	if b.groupOf(two) == b.groupOf(one) {
		t.Error("the rollback did not move it back")
	}
}

func TestMoveBetweenServicesOfOneQueue(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_service('//test/Second', 'Asking')")
	one := b.dialog()
	two := value[string](b.session, "select parley.begin_dialog('//test/Second', '//test/Answerer', '//test/Work')")
	b.exec("select parley.move_conversation($1::uuid, $2::uuid)", two, b.groupOf(one))
	if b.groupOf(one) != b.groupOf(two) {
		t.Error("the groups differ")
	}
}

// A group goes with its last conversation (spec 3.6), so its id serves as key of an application's state as long.
func TestGroupLivesAsLongAsAConversationInIt(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first := b.dialog()
	second := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', related_conversation => $1)", first)
	group := b.groupOf(first)
	exists := "select exists (select from parley.conversation_groups where conversation_group_id = $1)"
	b.end(first)
	equal(b.session, true, exists, group)
	b.end(second)
	equal(b.session, false, exists, group)
}

// A group may have conversations of two services, and one of them may get another queue: each message is received from the queue it is in.
func TestGroupOfTwoQueuesIsReceivedFromBoth(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_service('//test/Other', 'Answering', '{//test/Work}')")
	first, firstTarget := b.conversation()
	other := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Other', '//test/Work')")
	b.send(other, request, "begun")
	b.exec("select parley.move_conversation($1::uuid, $2::uuid)", b.farHandle(other), b.groupOf(firstTarget))
	b.exec("select parley.create_queue('Moved')")
	b.exec("select parley.alter_service('//test/Other', queue => 'Moved')")
	b.send(first, request, "here")
	b.send(other, request, "there")
	if got := b.bodies("Answering"); len(got) != 1 || got[0] != "here" {
		t.Errorf("received %q from the old queue", got)
	}
	if got := b.bodies("Moved"); len(got) != 2 || got[0] != "begun" || got[1] != "there" {
		t.Errorf("received %q from the new one", got)
	}
}
