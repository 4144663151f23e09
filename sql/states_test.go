package sql_test

import (
	"slices"
	"testing"
)

// oneOfEachState gives a handle for each state that a side can be in inside one database.
func (s session) oneOfEachState() map[string]string {
	s.Helper()
	handles := map[string]string{"SO": s.dialog()}
	handles["CO"], _ = s.conversation()
	handles["DO"], handles["DI"] = s.conversation()
	s.end(handles["DO"])
	var failing string
	handles["ER"], failing = s.conversation()
	s.endWithError(failing, 1, "no")
	var closing string
	closing, handles["CD"] = s.conversation()
	s.end(closing)
	s.end(handles["CD"])
	return handles
}

func TestStatesHaveTheirLongNames(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	names := map[string]string{
		"SO": "STARTED_OUTBOUND", "CO": "CONVERSING", "DI": "DISCONNECTED_INBOUND", "DO": "DISCONNECTED_OUTBOUND", "ER": "ERROR", "CD": "CLOSED",
	}
	for state, handle := range b.oneOfEachState() {
		equal(b.session, names[state], "select state_desc from parley.conversation_endpoints where conversation_handle = $1", handle)
	}
}

// What each state allows (spec 3.1). Where it is refused the number shows by which statement; where it is allowed it is 0.
func TestStatesAllowAndForbid(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]struct{ send, end, timer, move int }{
		"SO": {0, 0, 0, 0},
		"CO": {0, 0, 0, 0},
		"DI": {8429, 0, 0, 0},
		"DO": {8429, 8427, 8458, 8438},
		"ER": {8429, 0, 8458, 0},
		"CD": {8429, 8427, 8458, 8438},
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			handle := b.oneOfEachState()[state]
			sender := value[bool](b.session, "select is_initiator = 1 from parley.conversation_endpoints where conversation_handle = $1", handle)
			service := map[bool]string{true: "//test/Asker", false: "//test/Answerer"}[sender]
			group := b.groupOf(value[string](b.session, "select parley.begin_dialog($1, '//nowhere', allow_unknown_target => true)", service))
			for _, step := range []struct {
				number    int
				statement string
				arguments []any
			}{
				{want.send, "select parley.send($1::uuid, '//test/Note', 'x')", []any{handle}},
				{want.timer, "select parley.begin_conversation_timer($1::uuid, 1000)", []any{handle}},
				{want.move, "select parley.move_conversation($1::uuid, $2::uuid)", []any{handle, group}},
				{want.end, "select parley.end_conversation($1::uuid)", []any{handle}},
			} {
				if step.number == 0 {
					b.exec(step.statement, step.arguments...)
				} else {
					b.refuses(step.number, step.statement, step.arguments...)
				}
			}
		})
	}
}

func TestEndBeforeTheFirstSendSendsNothing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for _, statement := range []string{"select parley.end_conversation($1::uuid)", "select parley.end_conversation($1::uuid, 1, 'no')"} {
		handle := b.dialog()
		b.exec(statement, handle)
		b.requireState(handle, "")
		b.refuses(8426, statement, handle)
	}
	equal(b.session, 0, "select count(*) from parley.conversation_endpoints")
	equal(b.session, 0, "select count(*) from parley.conversation_groups")
	equal(b.session, 0, "select count(*) from parley.queue_contents('Answering')")
}

// Both sides must end (spec 3.2): the initiator's row goes at once, the target's stays as a tombstone.
func TestBothSidesMustEnd(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"initiator", "target"} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			initiator, target := b.conversation()
			order := []string{initiator, target}
			if first == "target" {
				slices.Reverse(order)
			}
			b.end(order[0])
			b.requireState(order[0], "DO")
			b.requireState(order[1], "DI")
			b.end(order[1])
			b.requireState(initiator, "")
			b.requireState(target, "CD")
			equal(b.session, 0, "select count(*) from parley.conversation_groups")
			for _, queue := range []string{"Asking", "Answering"} {
				equal(b.session, 0, "select count(*) from parley.queue_contents($1)", queue)
			}
			b.refuses(8426, "select parley.end_conversation($1::uuid)", initiator)
			b.refuses(8427, "select parley.end_conversation($1::uuid)", target)
		})
	}
}

// The other side has ended by itself and gets no end: nothing is sent back (spec 3.2).
func TestErrorAfterTheFarEndIsDiscarded(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.end(initiator)
	b.endWithError(target, 1, "too late")
	b.requireState(initiator, "")
	b.requireState(target, "CD")
	equal(b.session, 0, "select count(*) from parley.queue_contents('Asking')")
}

func TestFailedSideEndsInEitherForm(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for _, statement := range []string{"select parley.end_conversation($1::uuid)", "select parley.end_conversation($1::uuid, 2, 'me too')"} {
		initiator, target := b.conversation()
		b.endWithError(target, 1, "no")
		b.requireState(initiator, "ER")
		b.requireState(target, "DO")
		b.exec(statement, initiator)
		b.requireState(initiator, "")
		b.requireState(target, "CD")
	}
	equal(b.session, 0, "select count(*) from parley.queue_contents('Answering')")
}

// The broker never ends a conversation by itself, not even after an error (spec 3.2).
func TestSidesThatTheBrokerFailedEndOneByOne(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.exec("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
	b.requireState(initiator, "ER")
	b.requireState(target, "ER")
	b.end(initiator)
	b.requireState(initiator, "")
	b.requireState(target, "ER")
	b.requireError("Answering", -8469)
	b.end(target)
	b.requireState(target, "CD")
}

func TestReceivingSystemMessagesChangesNoState(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	ending, disconnected := b.conversation()
	b.end(ending)
	b.receive("Answering")
	b.requireState(disconnected, "DI")
	failed, failing := b.conversation()
	b.endWithError(failing, 1, "no")
	b.receive("Asking")
	b.requireState(failed, "ER")
}

func TestTombstoneIsKeptForItsTime(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.end(initiator)
	b.end(target)
	equal(b.session, true, `
		select security_timestamp between now() + interval '29 minutes' and now() + interval '31 minutes'
		from parley.conversation_endpoints where conversation_handle = $1`, target)
	b.exec("select parley.fire_timers()")
	b.requireState(target, "CD")
	b.exec("update parley._p_tombstone set expires_at = now()")
	b.exec("select parley.fire_timers()")
	b.requireState(target, "")
}

func TestTombstoneTimeIsASetting(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("update parley._p_broker set tombstone_seconds = 0")
	initiator, target := b.conversation()
	b.end(initiator)
	b.end(target)
	b.exec("select parley.fire_timers()")
	b.requireState(target, "")
}

// A target that never ends itself must not stay for ever when its initiator sent and went (fire and forget).
func TestTargetOfFireAndForgetGoesInBoundedTime(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for _, statement := range []string{"select parley.end_conversation($1::uuid)", "select parley.end_conversation($1::uuid, 1, 'bye')"} {
		initiator, target := b.conversation()
		b.exec(statement, initiator)
		due := "update parley._p_alarm set due_at = now() where kind = 'abandoned'"
		// Not as long as it has something to read.
		b.exec(due)
		b.exec("select parley.fire_timers()")
		equal(b.session, true, "select state in ('DI', 'ER') from parley.conversation_endpoints where conversation_handle = $1", target)
		b.receive("Answering")
		b.exec(due)
		b.exec("select parley.fire_timers()")
		b.requireState(target, "CD")
		b.requireState(initiator, "")
	}
}

// The time after which abandoned targets end is a setting, for those that wait already too; the longest one keeps them as SQL Server does.
func TestTheTimeOfAbandonedTargetsIsASetting(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	left := "select extract(epoch from a.due_at - clock_timestamp())::bigint / 1000 from parley._p_alarm as a where a.kind = 'abandoned'"
	equal(b.session, 1800, "select abandoned_target_seconds from parley.databases")
	initiator, target := b.conversation()
	b.end(initiator)
	equal(b.session, 1, left)
	b.exec("select parley.end_abandoned_after(2147483647)")
	equal(b.session, 2147483647, "select abandoned_target_seconds from parley.databases")
	equal(b.session, 2147483, left)
	b.receive("Answering")
	b.exec("select parley.fire_timers()")
	b.requireState(target, "DI")
	b.exec("update parley._p_endpoint set state_since = state_since - interval '1 hour'")
	b.exec("select parley.end_abandoned_after(3600)")
	b.exec("select parley.fire_timers()")
	b.requireState(target, "CD")
	second, _ := b.conversation()
	b.end(second)
	equal(b.session, 3, left)
}
