package sql_test

import (
	"slices"
	"testing"
)

// groups locks up to so many groups.
func (s session) groups(most int) []string {
	s.Helper()
	return values[string](s, "select g::text from parley.get_conversation_groups('Answering', $1) as g", most)
}

func (s session) requireGroups(most int, handles ...string) {
	s.Helper()
	var want []string
	for _, handle := range handles {
		want = append(want, s.groupOf(s.farHandle(handle)))
	}
	if got := s.groups(most); !slices.Equal(got, want) {
		s.Errorf("up to %d groups are %q, want %q", most, got, want)
	}
}

// The longest conversation first: what it has does not count as groups.
func TestGetConversationGroupsLocksTheFirstFreeGroupsInOrder(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handles := b.fill(5, 1)
	for range 30 {
		b.send(handles[0], request, "more")
	}
	first := b.begin()
	first.requireGroups(3, handles[0], handles[1], handles[2])
	first.requireGroups(1, handles[0])
	second := b.begin()
	second.requireGroups(1, handles[3])
	b.requireMany(100, 1, "4/0")
	if got := b.groups(10); len(got) != 0 {
		t.Errorf("with nothing free got %q", got)
	}
	first.commit()
	second.commit()
	// Higher priorities come first; a group with conversations of two services comes once.
	b.exec("select parley.create_broker_priority('high', '//test/Work', 'ANY', 'ANY', 10)")
	urgent := b.dialog()
	b.send(urgent, request, "urgent")
	b.exec("select parley.move_conversation($1::uuid, $2::uuid)", b.farHandle(handles[1]), b.groupOf(b.farHandle(handles[2])))
	b.requireGroups(10, urgent, handles[0], handles[2], handles[3])
	b.requireGroups(2, urgent, handles[0])
	b.exec("select parley.move_conversation($1::uuid, $2::uuid)", b.farHandle(urgent), b.groupOf(b.farHandle(handles[3])))
	b.requireGroups(10, handles[3], handles[0], handles[2])
}

// The locks were taken before the savepoint: one group goes back, and all stay locked. Only what went back is counted, once.
func TestRollbackToASavepointGivesBackOneGroupOfMany(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handles := b.fill(4, 2)
	bad := b.farHandle(handles[1])
	b.exec("select parley.alter_queue('Answering', poison_rollbacks => 3)")
	for rollbacks := range 3 {
		// What has come back is locked with the others, and not only alone.
		tx := b.begin()
		groups := tx.groups(3)
		if len(groups) != 3 || rollbacks == 0 && groups[1] != b.groupOf(bad) {
			t.Fatalf("got %q", groups)
		}
		for _, group := range groups {
			tx.exec("savepoint a")
			got := bodiesOf(tx.messages("select * from parley.receive('Answering', top => 2, conversation_group_id => $1)", group))
			if slices.Contains(got, "1/0") {
				tx.exec("rollback to a")
				// Nor does END come between.
				equal(b.session, 0, "select count(*) from (select from parley._p_conversation_group where conversation_group_id = $1 for update skip locked) as g", group)
			}
			tx.exec("release a")
		}
		if got := b.bodies("Answering"); rollbacks == 0 && !slices.Equal(got, []string{"3/0", "3/1"}) {
			t.Errorf("meanwhile others received %q", got)
		}
		tx.commit()
		b.exec("select parley.record_failure($1::uuid, null, 'bad')", bad)
		for _, i := range []int{0, 2, 3} {
			b.send(handles[i], request, "good")
		}
	}
	equal(b.session, 3, "select rollbacks from parley.poison_conversations where conversation_handle = $1", bad)
	equal(b.session, 1, "select count(*) from parley._p_set_aside")
	// What is set aside is passed by.
	b.requireGroups(10, handles[0], handles[2], handles[3])
}

// A group that was locked may have nothing when its turn comes, or be gone: that is no reason to end the others.
func TestLockedGroupMayEndBeforeItIsReceived(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handles := b.fill(3, 1)
	tx := b.begin()
	groups := tx.groups(3)
	tx.exec("select parley.end_conversation($1::uuid, cleanup => true)", b.farHandle(handles[1]))
	for i, group := range groups {
		if i == 1 {
			tx.exec("savepoint a")
			tx.refuses(8436, "select parley.receive('Answering', conversation_group_id => $1)", group)
			tx.exec("rollback to a")
			continue
		}
		if got := tx.messages("select * from parley.receive('Answering', conversation_group_id => $1)", group); len(got) != 1 {
			t.Errorf("of group %d received %q", i, bodiesOf(got))
		}
	}
	tx.commit()
	if got := b.groups(3); len(got) != 0 {
		t.Errorf("then got %q", got)
	}
}

// A reader that goes back to a savepoint keeps its groups from this too, and gets them itself.
func TestGetConversationGroupsGivesWhatItsOwnTransactionKeeps(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handles := b.fill(3, 1)
	tx := b.begin()
	tx.exec("savepoint a")
	tx.requireMany(2, 100, "0/0", "1/0")
	tx.exec("rollback to a")
	other := b.begin()
	other.requireGroups(10, handles[2])
	tx.requireGroups(10, handles[0], handles[1])
	waiting := b.waiting("select parley.get_conversation_groups('Answering', 10, timeout => -1)")
	other.rollback()
	b.send(b.dialog(), request, "wakes it")
	waiting.requireSuccess()
}
