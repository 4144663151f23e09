package activation_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A reader that looks for a group holds none of those that it passes by as claimed: the holder of the claim waits for nobody to record.
func TestReaderHoldsNoClaimedGroupThatItPassesBy(t *testing.T) {
	t.Parallel()
	const free = `
		select exists (
			select from parley._p_conversation_group as g
			where g.group_id in (select c.group_id from parley._p_delivery_claim as c)
			for update skip locked
		)`
	for name, isHinted := range map[string]bool{"scanned": false, "named by a hint": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(hook)
			claimed, other := b.Dialog(), b.Dialog()
			b.Exec("select parley.send($1::uuid, $2, 'claimed') from generate_series(1, 400)", claimed, sqltest.Request)
			b.Send(other, sqltest.Request, "other")
			b.Exec("select from parley.next_delivery('Answering', claim => $1)", ours)
			if isHinted {
				b.FindUntilHinted()
			}
			tx := b.Begin()
			tx.Exec("select parley.get_conversation_group('Answering')")
			sqltest.Equal(b.Session, true, free)
		})
	}
}

func TestWhoNamesAGroupDoesNotWaitForAClaimThatHasRunOut(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"RECEIVE":                 "select parley.receive('Answering', conversation_handle => $1::uuid)",
		"RECEIVE with a time-out": "select parley.receive('Answering', timeout => 100000, conversation_handle => $1::uuid)",
		"MOVE":                    "select parley.move_conversation($1::uuid, (select q.conversation_group_id from parley_queue.\"Answering\" as q where q.conversation_handle <> $1::uuid))",
		"FAIL":                    "select 1 from parley.fail_conversation($1::uuid) as has_failed where has_failed",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(hook)
			b.Send(b.Dialog(), sqltest.Request, "x")
			b.Send(b.Dialog(), sqltest.Request, "y")
			handle, _ := requireClaimed(b.Session, ours, "x")
			runOut(b)
			if tag, err := b.DB.Exec(t.Context(), statement, handle); err != nil || tag.RowsAffected() != 1 {
				t.Errorf("it ended with %v, %v", tag, err)
			}
		})
	}
}
