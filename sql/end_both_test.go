package sql_test

import (
	"testing"
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
	b := newWorld(t)
	for _, retention := range []bool{false, true} {
		b.exec("select parley.alter_queue('Asking', retention => $1), parley.alter_queue('Answering', retention => $1)", retention)
		for _, initiatorFirst := range []bool{true, false} {
			initiator := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 1000)")
			b.send(initiator, request, "first")
			target := b.farHandle(initiator)
			b.receive("Answering")
			b.send(target, reply, "unread")
			b.send(initiator, request, "unread")
			b.exec("select parley.begin_conversation_timer(h, 500) from unnest($1::uuid[]) as h", []string{initiator, target})
			first, second := target, initiator
			if initiatorFirst {
				first, second = initiator, target
			}
			b.end(first)
			b.requireState(first, "DO")
			b.requireState(second, "DI")
			b.end(second)
			equal(b.session, 0, whatIsLeft)
			equal(b.session, target, "select string_agg(conversation_handle::text, ' ') from parley._p_tombstone")
			b.refuses(8426, "select parley.end_conversation($1::uuid)", initiator)
			b.refuses(8427, "select parley.end_conversation($1::uuid)", target)
			b.exec("delete from parley._p_tombstone")
		}
	}
}

func TestTwoSessionsMayEndBothSidesAtOnce(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for range 2 {
		for _, initiatorFirst := range []bool{true, false} {
			initiator, target := b.conversation()
			first, second := target, initiator
			if initiatorFirst {
				first, second = initiator, target
			}
			tx := b.begin()
			tx.end(first)
			other := b.blocked("select parley.end_conversation($1::uuid)", second)
			tx.commit()
			other.requireSuccess()
			equal(b.session, 0, "select count(*) from parley.conversation_endpoints where state <> 'CD'")
			b.exec("select parley.fire_timers()")
			equal(b.session, 0, whatIsLeft)
		}
	}
}

func TestRollbackToASavepointTakesBothEndsBack(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	tx := b.begin()
	tx.exec("savepoint before")
	tx.end(target)
	tx.end(initiator)
	tx.exec("rollback to before")
	tx.commit()
	b.requireState(initiator, "CO")
	b.requireState(target, "CO")
	b.send(initiator, request, "still")
	if got := b.bodies("Answering"); len(got) != 1 {
		t.Errorf("received %q", got)
	}
}

// A reader that holds the group of the side that ended first is not waited for.
func TestSecondEndLeavesTheGroupOfTheFirstToItsHolder(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.end(target)
	tx := b.begin()
	tx.exec(`select from parley._p_conversation_group as g where g.group_id in (
		select e.group_id from parley._p_endpoint as e where e.conversation_handle = $1) for update`, target)
	b.end(initiator)
	b.requireState(target, "DO")
	tx.rollback()
	b.exec("select parley.fire_timers()")
	equal(b.session, 0, whatIsLeft)
}

func TestSecondEndOfASharedGroupLeavesTheGroup(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	other := value[string](b.session,
		"select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', related_conversation => $1)", initiator)
	b.end(target)
	b.end(initiator)
	b.requireState(other, "SO")
	b.send(other, request, "goes on")
	equal(b.session, 2, "select count(*) from parley._p_endpoint")
	equal(b.session, 2, "select count(*) from parley._p_conversation_group where service_id >= 65536")
}

// MOVE takes the group away for which END waits.
func TestEndLocksTheGroupToWhichAConversationWasMoved(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	group := value[string](b.session,
		"select conversation_group_id::text from parley.conversation_endpoints where conversation_handle = $1", b.dialog())
	mover := b.begin()
	mover.exec("select parley.move_conversation($1::uuid, $2::uuid)", initiator, group)
	tx := b.begin()
	w := b.startIn(tx, "select parley.end_conversation($1::uuid)", initiator)
	b.waitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock')", w.backend)
	mover.commit()
	w.requireSuccess()
	equal(b.session, 0, `select count(*) from (
		select from parley._p_conversation_group as g where g.conversation_group_id = $1 for update skip locked) as free`, group)
	tx.commit()
	b.requireState(initiator, "DO")
}

// What both sides sent while the broker was disabled ends them when it is enabled; who holds a group of theirs is not waited for.
func TestDelayedEndsWaitForNoGroup(t *testing.T) {
	t.Parallel()
	for _, isInitiators := range []bool{true, false} {
		b := newWorld(t)
		initiator, target := b.conversation()
		b.exec("select parley.disable_broker()")
		b.end(initiator)
		b.end(target)
		holder := b.begin()
		holder.exec(`select from parley._p_conversation_group as g join parley._p_endpoint as e using (group_id)
			where e.is_initiator = $1 for update of g`, isInitiators)
		b.exec("select parley.enable_broker()")
		holder.commit()
		b.exec("select parley.fire_timers()")
		equal(b.session, 0, whatIsLeft)
	}
}
