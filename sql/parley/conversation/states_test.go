package conversation_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// oneOfEachState gives a handle for each state that a side can be in inside one database.
func oneOfEachState(s sqltest.Session) map[string]string {
	s.Helper()
	handles := map[string]string{"SO": s.Dialog()}
	handles["CO"], _ = s.Conversation()
	handles["DO"], handles["DI"] = s.Conversation()
	s.End(handles["DO"])
	var failing string
	handles["ER"], failing = s.Conversation()
	s.EndWithError(failing, 1, "no")
	var closing string
	closing, handles["CD"] = s.Conversation()
	s.End(closing)
	s.End(handles["CD"])
	return handles
}

func TestStatesHaveTheirLongNames(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	names := map[string]string{
		"SO": "STARTED_OUTBOUND", "CO": "CONVERSING", "DI": "DISCONNECTED_INBOUND", "DO": "DISCONNECTED_OUTBOUND", "ER": "ERROR", "CD": "CLOSED",
	}
	for state, handle := range oneOfEachState(b.Session) {
		sqltest.Equal(b.Session, names[state], "select state_desc from parley.conversation_endpoints where conversation_handle = $1", handle)
	}
}

// The statements that each state allows (spec 3.1). Where it is refused the number shows by which statement; where it is allowed it is 0.
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
			b := sqltest.NewWorld(t)
			handle := oneOfEachState(b.Session)[state]
			sender := sqltest.Value[bool](b.Session, "select is_initiator = 1 from parley.conversation_endpoints where conversation_handle = $1", handle)
			service := map[bool]string{true: "//test/Asker", false: "//test/Answerer"}[sender]
			group := b.GroupOf(sqltest.Value[string](b.Session, "select parley.begin_dialog($1, '//nowhere', allow_unknown_target => true)", service))
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
					b.Exec(step.statement, step.arguments...)
				} else {
					b.Refuses(step.number, step.statement, step.arguments...)
				}
			}
		})
	}
}

func TestEndBeforeTheFirstSendSendsNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, statement := range []string{"select parley.end_conversation($1::uuid)", "select parley.end_conversation($1::uuid, 1, 'no')"} {
		handle := b.Dialog()
		b.Exec(statement, handle)
		b.RequireState(handle, "")
		b.Refuses(8426, statement, handle)
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_endpoints")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_groups")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering')")
}

// Both sides must end (spec 3.2): the initiator's row goes at once, the target's stays as a tombstone.
func TestBothSidesMustEnd(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"initiator", "target"} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			initiator, target := b.Conversation()
			order := []string{initiator, target}
			if first == "target" {
				slices.Reverse(order)
			}
			b.End(order[0])
			b.RequireState(order[0], "DO")
			b.RequireState(order[1], "DI")
			b.End(order[1])
			b.RequireState(initiator, "")
			b.RequireState(target, "CD")
			sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_groups")
			for _, queue := range []string{"Asking", "Answering"} {
				sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents($1)", queue)
			}
			b.Refuses(8426, "select parley.end_conversation($1::uuid)", initiator)
			b.Refuses(8427, "select parley.end_conversation($1::uuid)", target)
		})
	}
}

// The other side has ended by itself and gets no end: nothing is sent back (spec 3.2).
func TestErrorAfterTheFarEndIsDiscarded(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.End(initiator)
	b.EndWithError(target, 1, "too late")
	b.RequireState(initiator, "")
	b.RequireState(target, "CD")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Asking')")
}

func TestFailedSideEndsInEitherForm(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, statement := range []string{"select parley.end_conversation($1::uuid)", "select parley.end_conversation($1::uuid, 2, 'me too')"} {
		initiator, target := b.Conversation()
		b.EndWithError(target, 1, "no")
		b.RequireState(initiator, "ER")
		b.RequireState(target, "DO")
		b.Exec(statement, initiator)
		b.RequireState(initiator, "")
		b.RequireState(target, "CD")
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering')")
}

// The broker never ends a conversation by itself, not even after an error (spec 3.2).
func TestSidesThatTheBrokerFailedEndOneByOne(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Exec("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
	b.RequireState(initiator, "ER")
	b.RequireState(target, "ER")
	b.End(initiator)
	b.RequireState(initiator, "")
	b.RequireState(target, "ER")
	b.RequireError("Answering", -8469)
	b.End(target)
	b.RequireState(target, "CD")
}

func TestReceivingSystemMessagesChangesNoState(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	ending, disconnected := b.Conversation()
	b.End(ending)
	b.Receive("Answering")
	b.RequireState(disconnected, "DI")
	failed, failing := b.Conversation()
	b.EndWithError(failing, 1, "no")
	b.Receive("Asking")
	b.RequireState(failed, "ER")
}

func TestTombstoneIsKeptForItsTime(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.End(initiator)
	b.End(target)
	sqltest.Equal(b.Session, true, `
		select security_timestamp between now() + interval '29 minutes' and now() + interval '31 minutes'
		from parley.conversation_endpoints where conversation_handle = $1`, target)
	b.Exec("select parley.fire_timers()")
	b.RequireState(target, "CD")
	b.Exec("update parley._p_tombstone set expires_at = now()")
	b.Exec("select parley.fire_timers()")
	b.RequireState(target, "")
}

func TestTombstoneTimeIsASetting(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("update parley._p_broker set tombstone_seconds = 0")
	initiator, target := b.Conversation()
	b.End(initiator)
	b.End(target)
	b.Exec("select parley.fire_timers()")
	b.RequireState(target, "")
}

// A target that never ends itself must not stay for ever when its initiator sent and went (fire and forget).
func TestTargetOfFireAndForgetGoesInBoundedTime(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, statement := range []string{"select parley.end_conversation($1::uuid)", "select parley.end_conversation($1::uuid, 1, 'bye')"} {
		initiator, target := b.Conversation()
		b.Exec(statement, initiator)
		due := "update parley._p_alarm set due_at = now() where kind = 'abandoned'"
		// Not as long as it has something to read.
		b.Exec(due)
		b.Exec("select parley.fire_timers()")
		sqltest.Equal(b.Session, true, "select state in ('DI', 'ER') from parley.conversation_endpoints where conversation_handle = $1", target)
		b.Receive("Answering")
		b.Exec(due)
		b.Exec("select parley.fire_timers()")
		b.RequireState(target, "CD")
		b.RequireState(initiator, "")
	}
}

// The time after which abandoned targets end is a setting, for those that wait already too; the longest one keeps them as SQL Server does.
func TestTheTimeOfAbandonedTargetsIsASetting(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	left := "select extract(epoch from a.due_at - clock_timestamp())::bigint / 1000 from parley._p_alarm as a where a.kind = 'abandoned'"
	sqltest.Equal(b.Session, 1800, "select abandoned_target_seconds from parley.databases")
	initiator, target := b.Conversation()
	b.End(initiator)
	sqltest.Equal(b.Session, 1, left)
	b.Exec("select parley.end_abandoned_after(2147483647)")
	sqltest.Equal(b.Session, 2147483647, "select abandoned_target_seconds from parley.databases")
	sqltest.Equal(b.Session, 2147483, left)
	b.Receive("Answering")
	b.Exec("select parley.fire_timers()")
	b.RequireState(target, "DI")
	b.Exec("update parley._p_endpoint set state_since = state_since - interval '1 hour'")
	b.Exec("select parley.end_abandoned_after(3600)")
	b.Exec("select parley.fire_timers()")
	b.RequireState(target, "CD")
	second, _ := b.Conversation()
	b.End(second)
	sqltest.Equal(b.Session, 3, left)
}
