package conversation_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// whatIsLeft counts the rows of conversations in all tables that have any, but for tombstones.
const whatIsLeft = `
	select (select count(*) from parley._p_endpoint) + (select count(*) from parley._p_message) + (select count(*) from parley._p_retained)
		+ (select count(*) from parley._p_copy_progress) + (select count(*) from parley._p_alarm) + (select count(*) from parley._p_expedited)
		+ (select count(*) from parley._p_receive_progress) + (select count(*) from parley._p_transmission)
		+ (select count(*) from parley._p_set_aside) + (select count(*) from parley._p_failure)
		+ (select count(*) from parley._p_conversation_group where service_id >= 65536)`

func TestBothEndsLeaveATombstoneAndNothingElse(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, retention := range []bool{false, true} {
		b.Exec("select parley.alter_queue('Asking', retention => $1), parley.alter_queue('Answering', retention => $1)", retention)
		for _, initiatorFirst := range []bool{true, false} {
			initiator := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 1000)")
			b.Send(initiator, sqltest.Request, "first")
			target := b.FarHandle(initiator)
			b.Receive("Answering")
			b.Send(target, sqltest.Reply, "unread")
			b.Send(initiator, sqltest.Request, "unread")
			b.Exec("select parley.begin_conversation_timer(h, 500) from unnest($1::uuid[]) as h", []string{initiator, target})
			first, second := target, initiator
			if initiatorFirst {
				first, second = initiator, target
			}
			b.End(first)
			b.RequireState(first, "DO")
			b.RequireState(second, "DI")
			b.End(second)
			sqltest.Equal(b.Session, 0, whatIsLeft)
			sqltest.Equal(b.Session, target, "select string_agg(conversation_handle::text, ' ') from parley._p_tombstone")
			b.Refuses(8426, "select parley.end_conversation($1::uuid)", initiator)
			b.Refuses(8427, "select parley.end_conversation($1::uuid)", target)
			b.Exec("delete from parley._p_tombstone")
		}
	}
}

func TestTwoSessionsMayEndBothSidesAtOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for range 2 {
		for _, initiatorFirst := range []bool{true, false} {
			initiator, target := b.Conversation()
			first, second := target, initiator
			if initiatorFirst {
				first, second = initiator, target
			}
			tx := b.Begin()
			tx.End(first)
			other := b.Blocked("select parley.end_conversation($1::uuid)", second)
			tx.Commit()
			other.RequireSuccess()
			sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_endpoints where state <> 'CD'")
			b.Exec("select parley.fire_timers()")
			sqltest.Equal(b.Session, 0, whatIsLeft)
		}
	}
}

func TestRollbackToASavepointTakesBothEndsBack(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	tx := b.Begin()
	tx.Exec("savepoint before")
	tx.End(target)
	tx.End(initiator)
	tx.Exec("rollback to before")
	tx.Commit()
	b.RequireState(initiator, "CO")
	b.RequireState(target, "CO")
	b.Send(initiator, sqltest.Request, "still")
	if got := b.Bodies("Answering"); len(got) != 1 {
		t.Errorf("received %q", got)
	}
}

// A reader that holds the group of the side that ended first is not waited for.
func TestSecondEndLeavesTheGroupOfTheFirstToItsHolder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.End(target)
	tx := b.Begin()
	tx.Exec(`select from parley._p_conversation_group as g where g.group_id in (
		select e.group_id from parley._p_endpoint as e where e.conversation_handle = $1) for update`, target)
	b.End(initiator)
	b.RequireState(target, "DO")
	tx.Rollback()
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, whatIsLeft)
}

func TestSecondEndOfASharedGroupLeavesTheGroup(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	other := sqltest.Value[string](b.Session,
		"select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', related_conversation => $1)", initiator)
	b.End(target)
	b.End(initiator)
	b.RequireState(other, "SO")
	b.Send(other, sqltest.Request, "goes on")
	sqltest.Equal(b.Session, 2, "select count(*) from parley._p_endpoint")
	sqltest.Equal(b.Session, 2, "select count(*) from parley._p_conversation_group where service_id >= 65536")
}

// The messages that both sides sent while the broker was disabled end them when it is enabled; a session that holds a group of theirs is
// not waited for.
func TestDelayedEndsWaitForNoGroup(t *testing.T) {
	t.Parallel()
	for _, isInitiators := range []bool{true, false} {
		b := sqltest.NewWorld(t)
		initiator, target := b.Conversation()
		b.Exec("select parley.disable_broker()")
		b.End(initiator)
		b.End(target)
		holder := b.Begin()
		holder.Exec(`select from parley._p_conversation_group as g join parley._p_endpoint as e using (group_id)
			where e.is_initiator = $1 for update of g`, isInitiators)
		b.Exec("select parley.enable_broker()")
		holder.Commit()
		b.Exec("select parley.fire_timers()")
		sqltest.Equal(b.Session, 0, whatIsLeft)
	}
}

// A sender that was under way when the other side ended appends to a side that receives nothing more.
func TestSecondEndRemovesWhatReachedTheFirstTooLate(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, initiatorFirst := range []bool{true, false} {
		initiator, target := b.Conversation()
		b.Send(target, sqltest.Reply, "before")
		b.Receive("Asking")
		first, second, messageType := target, initiator, sqltest.Request
		if initiatorFirst {
			first, second, messageType = initiator, target, sqltest.Reply
		}
		tx := b.Begin()
		tx.Send(second, messageType, "late")
		b.End(first)
		tx.Commit()
		sqltest.Equal(b.Session, 1, `select count(*) from parley._p_message as m join parley._p_endpoint as e using (endpoint_id)
			where e.conversation_handle = $1`, first)
		b.End(second)
		sqltest.Equal(b.Session, 0, whatIsLeft)
	}
}

// A side that ends does not receive what waits for it. The messages go with the end, and not only out of sight.
func TestEndRemovesTheUnreadMessagesOfItsSide(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	const ofSide = `select count(*) from parley._p_message as m join parley._p_endpoint as e using (endpoint_id)
		where e.conversation_handle = $1`
	initiator, target := b.Conversation()
	b.Send(initiator, sqltest.Request, "unread")
	sqltest.Equal(b.Session, true, "select 0 < ("+ofSide+")", target)
	b.End(target)
	sqltest.Equal(b.Session, 0, ofSide, target)
}
