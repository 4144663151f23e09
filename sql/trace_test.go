package sql_test

import (
	"slices"
	"strings"
	"testing"
)

func (s session) events(conversation string) []string {
	s.Helper()
	return values[string](s, "select side || ' ' || event || coalesce(' ' || message_type_name, '') from parley.trace_conversation($1)", conversation)
}

func (s session) requireEvents(conversation string, want ...string) {
	s.Helper()
	got := s.events(conversation)
	for _, event := range want {
		if !slices.Contains(got, event) {
			s.Errorf("%q is missing in %q", event, got)
		}
	}
}

func TestTraceShowsTheLifeOfAConversationInOrder(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.alter_queue('Asking', retention => true)")
	initiator, target := b.conversation()
	b.send(initiator, request, "waits")
	b.send(target, reply, "taken")
	b.messages("select * from parley.receive('Asking', conversation_handle => $1)", initiator)
	b.exec("select parley.begin_conversation_timer($1::uuid, 600)", target)
	b.requireEvents(initiator,
		"initiator begun", "initiator sent "+request, "initiator received", "initiator received "+reply, "initiator state",
		"target begun", "target received", "target message waits "+request, "target timer fires")
	equal(b.session, true, "select array_agg(at order by ordinal) = array_agg(at order by at) from parley.trace_conversation($1) with ordinality as t (at, h, s, e, m, b, d, ordinal)", initiator)
	first := b.events(initiator)[0]
	if first != "initiator begun" {
		t.Errorf("the life begins with %q", first)
	}
	// By any of its names it is the same.
	for _, name := range []string{"conversation_handle", "conversation_id"} {
		other := value[string](b.session, "select "+name+"::text from parley.conversation_endpoints where conversation_handle = $1", target)
		if got := b.events(other); !slices.Equal(got, b.events(initiator)) {
			t.Errorf("by its %s it is %q", name, got)
		}
	}
}

func TestTraceShowsWhatFailsAndWhichSessionHoldsTheGroup(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator := b.dialog()
	b.send(initiator, request, "first")
	b.send(initiator, request, "second")
	holder := b.lonely()
	pid := value[string](holder, "select pg_backend_pid()::text")
	holder.exec("begin")
	holder.exec("select parley.receive('Answering', 1)")
	equal(b.session, true, "select bool_or(event = 'group locked' and detail like '%' || $2 || '%') from parley.trace_conversation($1)", initiator, pid)
	holder.exec("rollback")

	b.exec("select parley._p_set_aside_conversation(m.lane / 16, m.endpoint_id, m.position, 5) from parley._p_message as m order by m.position limit 1")
	b.exec("insert into parley._p_failure (endpoint_id, failed_at, sqlstate, error) select endpoint_id, now(), '22012', 'division by zero' from parley._p_set_aside")
	b.requireEvents(initiator, "target set aside", "target reader failed")

	delayed := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Missing', allow_unknown_target => true)")
	b.send(delayed, "DEFAULT", "x")
	b.requireEvents(delayed, "initiator message delayed DEFAULT")

	failed, target := b.conversation()
	b.endWithError(failed, 7, "no such customer")
	equal(b.session, true, "select bool_or(event = 'error waits' and detail like '%no such customer%') from parley.trace_conversation($1)", target)
	b.messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
	b.end(target)
	b.requireEvents(target, "target forgotten")
}

// Each step is what keeps the message where it is, and its cure is that of the finding.
func TestExplainConversationFindsTheMessage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		arrange func(b *broker) (conversation string)
		step    int
		answer  string
		cure    string
	}{
		{"nothing sent", func(b *broker) string { return b.dialog() }, 1, "Nothing that it has sent is committed", ""},
		{"no such service", func(b *broker) string {
			handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Missing', allow_unknown_target => true)")
			b.send(handle, "DEFAULT", "x")
			return handle
		}, 2, "no such service", "parley serve --dsn"},
		{"queue off", func(b *broker) string {
			handle := b.dialog()
			b.exec("select parley.alter_queue('Answering', status => false)")
			b.send(handle, request, "x")
			return handle
		}, 3, "switched off", "alter_queue('Answering', status => true)"},
		{"far side removed", func(b *broker) string {
			initiator, target := b.conversation()
			b.exec("select parley.end_conversation($1::uuid, cleanup => true)", target)
			return initiator
		}, 6, "closed or was removed", "end_conversation"},
		{"failed and not ended", func(b *broker) string {
			initiator, target := b.conversation()
			b.endWithError(initiator, 1, "no")
			b.messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
			return initiator
		}, 6, "in state ERROR and not ended", "end_conversation"},
		{"nobody reads", func(b *broker) string {
			handle := b.dialog()
			b.send(handle, request, "x")
			return handle
		}, 7, "nobody receives", "activation => true"},
		{"group held", func(b *broker) string {
			handle := b.dialog()
			b.send(handle, request, "first")
			b.send(handle, request, "second")
			tx := b.begin()
			tx.exec("select parley.receive('Answering', 1)")
			return handle
		}, 7, "holds it", "pg_terminate_backend"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			handle := test.arrange(b)
			answers := values[string](b.session,
				"select answer || ' / ' || coalesce(cure, '') from parley.explain_conversation($1) where step = $2 and is_finding", handle, test.step)
			if !slices.ContainsFunc(answers, func(a string) bool { return strings.Contains(a, test.answer) && strings.Contains(a, test.cure) }) {
				t.Errorf("step %d answers %q", test.step, answers)
			}
		})
	}
}

func TestExplainConversationReportsWhenAllIsWell(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	equal(b.session, 0, "select count(*)::int from parley.explain_conversation($1) where is_finding", initiator)
	equal(b.session, true, "select bool_or(answer like 'Everything that is committed%') from parley.explain_conversation($1)", target)
	b.end(initiator)
	b.end(target)
	equal(b.session, "Both sides are closed; what was sent was received, or dropped by who ended its side.",
		"select answer from parley.explain_conversation($1)", target)
}

func TestTraceIsForThoseWhoDoTheWork(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	name := b.role("reader")
	reader := b.as(name)
	for _, statement := range []string{"select parley.trace_conversation($1)", "select parley.explain_conversation($1)"} {
		reader.refuses(229, statement, initiator)
		reader.refuses(8426, statement, "01234567-89ab-cdef-0123-456789abcdef")
	}
	b.exec("select parley.grant('RECEIVE', 'queue', 'Answering', $1)", name)
	for _, query := range []string{"parley.trace_conversation($1)", "parley.explain_conversation($1)"} {
		equal(reader, target, "select string_agg(distinct conversation_handle::text, ' ') from "+query, initiator)
	}
	// Of one that is over a target remembers for a while that it was there: that is for its owner alone.
	b.exec("select parley.end_conversation($1)", initiator)
	b.exec("select parley.receive('Answering')")
	b.exec("select parley.end_conversation($1)", target)
	equal(b.session, true, "select exists (select from parley.trace_conversation($1) where event = 'forgotten')", target)
	equal(b.as(b.role("outsider")), 0, "select count(*)::int from parley.trace_conversation($1)", target)
}
