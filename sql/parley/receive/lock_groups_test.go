package receive_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// lockGroups locks up to so many groups.
func lockGroups(s sqltest.Session, most int) []string {
	s.Helper()
	return sqltest.Values[string](s, "select g::text from parley.get_conversation_groups('Answering', $1) as g", most)
}

func requireGroups(s sqltest.Session, most int, handles ...string) {
	s.Helper()
	var want []string
	for _, handle := range handles {
		want = append(want, s.GroupOf(s.FarHandle(handle)))
	}
	if got := lockGroups(s, most); !slices.Equal(got, want) {
		s.Errorf("up to %d groups are %q, want %q", most, got, want)
	}
}

// The longest conversation first: what it has does not count as groups.
func TestGetConversationGroupsLocksTheFirstFreeGroupsInOrder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handles := b.Fill(5, 1)
	for range 30 {
		b.Send(handles[0], sqltest.Request, "more")
	}
	first := b.Begin()
	requireGroups(first, 3, handles[0], handles[1], handles[2])
	requireGroups(first, 1, handles[0])
	second := b.Begin()
	requireGroups(second, 1, handles[3])
	requireMany(b.Session, 100, 1, "4/0")
	if got := lockGroups(b.Session, 10); len(got) != 0 {
		t.Errorf("with nothing free got %q", got)
	}
	first.Commit()
	second.Commit()
	// Higher priorities come first; a group with conversations of two services comes once.
	b.Exec("select parley.create_broker_priority('high', '//test/Work', 'ANY', 'ANY', 10)")
	urgent := b.Dialog()
	b.Send(urgent, sqltest.Request, "urgent")
	b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", b.FarHandle(handles[1]), b.GroupOf(b.FarHandle(handles[2])))
	requireGroups(b.Session, 10, urgent, handles[0], handles[2], handles[3])
	requireGroups(b.Session, 2, urgent, handles[0])
	b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", b.FarHandle(urgent), b.GroupOf(b.FarHandle(handles[3])))
	requireGroups(b.Session, 10, handles[3], handles[0], handles[2])
}

// The locks were taken before the savepoint: one group goes back, and all stay locked. Only what went back is counted, once.
func TestRollbackToASavepointGivesBackOneGroupOfMany(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handles := b.Fill(4, 2)
	bad := b.FarHandle(handles[1])
	b.Exec("select parley.alter_queue('Answering', poison_rollbacks => 3)")
	for rollbacks := range 3 {
		// A group that has come back is locked with the others, and not only alone.
		tx := b.Begin()
		groups := lockGroups(tx, 3)
		if len(groups) != 3 || rollbacks == 0 && groups[1] != b.GroupOf(bad) {
			t.Fatalf("got %q", groups)
		}
		for _, group := range groups {
			tx.Exec("savepoint a")
			got := sqltest.BodiesOf(tx.Messages("select * from parley.receive('Answering', top => 2, conversation_group_id => $1)", group))
			if slices.Contains(got, "1/0") {
				tx.Exec("rollback to a")
				// Nor does END come between.
				sqltest.Equal(b.Session, 0, "select count(*) from (select from parley._p_conversation_group where conversation_group_id = $1 for update skip locked) as g", group)
			}
			tx.Exec("release a")
		}
		if got := b.Bodies("Answering"); rollbacks == 0 && !slices.Equal(got, []string{"3/0", "3/1"}) {
			t.Errorf("meanwhile others received %q", got)
		}
		tx.Commit()
		b.Exec("select parley.record_failure($1::uuid, null, 'bad')", bad)
		for _, i := range []int{0, 2, 3} {
			b.Send(handles[i], sqltest.Request, "good")
		}
	}
	sqltest.Equal(b.Session, 3, "select rollbacks from parley.poison_conversations where conversation_handle = $1", bad)
	sqltest.Equal(b.Session, 1, "select count(*) from parley._p_set_aside")
	// A group that is set aside is passed by.
	requireGroups(b.Session, 10, handles[0], handles[2], handles[3])
}

// A group that was locked may have nothing when its turn comes, or be gone: that is no reason to end the others.
func TestLockedGroupMayEndBeforeItIsReceived(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handles := b.Fill(3, 1)
	tx := b.Begin()
	groups := lockGroups(tx, 3)
	tx.Exec("select parley.end_conversation($1::uuid, cleanup => true)", b.FarHandle(handles[1]))
	for i, group := range groups {
		if i == 1 {
			tx.Exec("savepoint a")
			tx.Refuses(8436, "select parley.receive('Answering', conversation_group_id => $1)", group)
			tx.Exec("rollback to a")
			continue
		}
		if got := tx.Messages("select * from parley.receive('Answering', conversation_group_id => $1)", group); len(got) != 1 {
			t.Errorf("of group %d received %q", i, sqltest.BodiesOf(got))
		}
	}
	tx.Commit()
	if got := lockGroups(b.Session, 3); len(got) != 0 {
		t.Errorf("then got %q", got)
	}
}

// A reader that goes back to a savepoint keeps its groups from this too, and gets them itself.
func TestGetConversationGroupsGivesWhatItsOwnTransactionKeeps(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handles := b.Fill(3, 1)
	tx := b.Begin()
	tx.Exec("savepoint a")
	requireMany(tx, 2, 100, "0/0", "1/0")
	tx.Exec("rollback to a")
	other := b.Begin()
	requireGroups(other, 10, handles[2])
	requireGroups(tx, 10, handles[0], handles[1])
	waiting := b.Waiting("select parley.get_conversation_groups('Answering', 10, timeout => -1)")
	other.Rollback()
	b.Send(b.Dialog(), sqltest.Request, "wakes it")
	waiting.RequireSuccess()
}
