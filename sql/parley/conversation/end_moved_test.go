package conversation_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// ends are the ways to end a conversation. The second argument is another one that ends with it.
var ends = map[string]string{
	"end":             "select parley.end_conversation($1::uuid) from (select $2::uuid) as other",
	"end with error":  "select parley.end_conversation($1::uuid, 1, 'x') from (select $2::uuid) as other",
	"end of many":     "select parley.end_conversations(array[$1, $2]::uuid[])",
	"end of one":      "select parley.end_conversations(array[$1]::uuid[]) from (select $2::uuid) as other",
	"cleanup":         "select parley.end_conversation($1::uuid, cleanup => true) from (select $2::uuid) as other",
	"end, first sent": "select parley.end_conversation($1::uuid), parley.end_conversation($2::uuid)",
}

// waitForGroup lets END of a side, and of another conversation, wait for a session that has the group of the side.
func waitForGroup(b *sqltest.Broker, end, side string) (tx sqltest.Session, w *sqltest.Waiter) {
	b.Helper()
	other, _ := b.Conversation()
	tx = b.Begin()
	w = b.StartIn(tx, end, side, other)
	b.WaitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock')", w.Backend)
	return tx, w
}

// beginBeside begins a conversation in the group of another one, which stays when that has left it.
func beginBeside(b *sqltest.Broker, side string) {
	b.Helper()
	b.Exec("select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', related_conversation => $1)", side)
}

// MOVE takes the conversation out of the group for which END waits, and with it the group when it was the last one there.
func TestEndLocksTheGroupToWhichAConversationWasMoved(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for name, end := range ends {
		for _, isShared := range []bool{false, true} {
			side, _ := b.Conversation()
			if isShared {
				beginBeside(b, side)
			}
			group := b.GroupOf(b.Dialog())
			mover := b.Begin()
			mover.Exec("select parley.move_conversation($1::uuid, $2::uuid)", side, group)
			tx, w := waitForGroup(b, end, side)
			mover.Commit()
			w.RequireSuccess()
			if sqltest.Value[int](b.Session, `select count(*) from (
				select from parley._p_conversation_group as g where g.conversation_group_id = $1 for update skip locked) as free`, group) != 0 {
				t.Errorf("%s, others in the group: %v: the group of the conversation is not locked", name, isShared)
			}
			tx.Commit()
			sqltest.Equal(b.Session, 0,
				"select count(*) from parley.conversation_endpoints where conversation_handle = $1 and state not in ('DO', 'CD')", side)
		}
	}
}

// END waits for a group that it has to have, and holds no side of a conversation then: groups come before them. So the session that has the
// group ends the conversation, and none of the two is the victim of a deadlock.
func TestEndThatWaitsForTheGroupOfAMovedConversationHoldsNoSide(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for name, end := range ends {
		side, _ := b.Conversation()
		beginBeside(b, side)
		group := b.GroupOf(b.Dialog())
		// MOVE has both groups. Here it has the first alone: that is as if the holder had got the second in the moment between the end of
		// MOVE and the statement of END that waits for it.
		mover, holder := b.Begin(), b.Begin()
		mover.Exec(`select from parley._p_conversation_group as g where g.conversation_group_id = $1 for update`, b.GroupOf(side))
		mover.Exec(`update parley._p_endpoint as e set is_plain = false, group_id = g.group_id from parley._p_conversation_group as g
			where e.conversation_handle = $1 and g.conversation_group_id = $2`, side, group)
		holder.Exec("select from parley.receive('Asking', conversation_group_id => $1::uuid)", group)
		tx, w := waitForGroup(b, end, side)
		mover.Commit()
		holds := sqltest.Value[int](holder, "select pg_backend_pid()")
		b.WaitUntil("select $1::integer = any (pg_blocking_pids($2))", holds, w.Backend)
		holder.Exec("set local lock_timeout = '10s'; set local deadlock_timeout = '100ms'")
		if _, err := holder.DB.Exec(b.Context(), "select parley.end_conversation($1::uuid)", side); err != nil {
			t.Errorf("%s: the holder of the group cannot end the conversation: %v", name, err)
			holder.Rollback()
			w.RequireSuccess()
			tx.Rollback()
			continue
		}
		holder.Commit()
		if name == "cleanup" {
			// It takes away what has ended, too.
			w.RequireSuccess()
		} else {
			w.RequireRefusal(8427)
		}
		tx.Rollback()
	}
}

// Others that wait for the group of a conversation do the same (spec 3.6).
func TestWhoWaitsForTheGroupOfAMovedConversationLocksThatInWhichItIsNow(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for name, statement := range map[string]string{
		"receive": "select from parley.receive('Asking', conversation_handle => $1::uuid) as r right join (select $2::uuid) as other on true",
		"timer":   "select parley.begin_conversation_timer($1::uuid, 100) from (select $2::uuid) as other",
		"move":    "select parley.move_conversation($1::uuid, parley_group_of($2))",
	} {
		if name == "move" {
			b.Exec(`
				create function parley_group_of(handle uuid) returns uuid language sql as $$
					select e.conversation_group_id from parley.conversation_endpoints as e where e.conversation_handle = handle
				$$`)
		}
		for _, isShared := range []bool{false, true} {
			side, _ := b.Conversation()
			if isShared {
				beginBeside(b, side)
			}
			group := b.GroupOf(b.Dialog())
			mover := b.Begin()
			mover.Exec("select parley.move_conversation($1::uuid, $2::uuid)", side, group)
			tx, w := waitForGroup(b, statement, side)
			mover.Commit()
			w.RequireSuccess()
			if sqltest.Value[int](b.Session, `select count(*) from (
				select from parley._p_conversation_group as g where g.conversation_group_id = $1 for update skip locked) as free`, group) != 0 {
				t.Errorf("%s, others in the group: %v: the group of the conversation is not locked", name, isShared)
			}
			tx.Rollback()
		}
	}
}
