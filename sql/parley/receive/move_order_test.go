package receive_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A session that waits for the first of two groups holds none: so no two that move between them, or end sides of both, meet in a circle.
func TestMoveLocksTheGroupsInTheirOrder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	const lock = `
		select from parley._p_conversation_group as g
		join parley._p_endpoint as e using (group_id)
		where e.conversation_handle = $1::uuid
		for update of g skip locked`
	for _, isToFirst := range []bool{false, true} {
		_, first := b.Conversation()
		_, second := b.Conversation()
		moved, to := first, second
		if isToFirst {
			moved, to = second, first
		}
		holder := b.Begin()
		holder.Exec(lock, first)
		w := b.Blocked("select parley.move_conversation($1::uuid, $2::uuid)", moved, b.GroupOf(to))
		sqltest.Equal(b.Session, 1, "with free as ("+lock+") select count(*) from free", second)
		holder.Rollback()
		w.RequireSuccess()
	}
}
