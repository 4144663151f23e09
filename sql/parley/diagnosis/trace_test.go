package diagnosis_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func events(s sqltest.Session, conversation string) []string {
	s.Helper()
	return sqltest.Values[string](s, "select side || ' ' || event || coalesce(' ' || message_type_name, '') from parley.trace_conversation($1)", conversation)
}

func requireEvents(s sqltest.Session, conversation string, want ...string) {
	s.Helper()
	got := events(s, conversation)
	for _, event := range want {
		if !slices.Contains(got, event) {
			s.Errorf("%q is missing in %q", event, got)
		}
	}
}

func TestTraceShowsTheLifeOfAConversationInOrder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Asking', retention => true)")
	initiator, target := b.Conversation()
	b.Send(initiator, sqltest.Request, "waits")
	b.Send(target, sqltest.Reply, "taken")
	b.Messages("select * from parley.receive('Asking', conversation_handle => $1)", initiator)
	b.Exec("select parley.begin_conversation_timer($1::uuid, 600)", target)
	requireEvents(b.Session, initiator,
		"initiator begun", "initiator sent "+sqltest.Request, "initiator received", "initiator received "+sqltest.Reply, "initiator state",
		"target begun", "target received", "target message waits "+sqltest.Request, "target timer fires")
	sqltest.Equal(b.Session, true, "select array_agg(at order by ordinal) = array_agg(at order by at) from parley.trace_conversation($1) with ordinality as t (at, h, s, e, m, b, d, ordinal)", initiator)
	first := events(b.Session, initiator)[0]
	if first != "initiator begun" {
		t.Errorf("the life begins with %q", first)
	}
	// By any of its names it is the same.
	for _, name := range []string{"conversation_handle", "conversation_id"} {
		other := sqltest.Value[string](b.Session, "select "+name+"::text from parley.conversation_endpoints where conversation_handle = $1", target)
		if got := events(b.Session, other); !slices.Equal(got, events(b.Session, initiator)) {
			t.Errorf("by its %s it is %q", name, got)
		}
	}
}

func TestTraceShowsWhatFailsAndWhichSessionHoldsTheGroup(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "first")
	b.Send(initiator, sqltest.Request, "second")
	holder := b.Lonely()
	pid := sqltest.Value[string](holder, "select pg_backend_pid()::text")
	holder.Exec("begin")
	holder.Exec("select parley.receive('Answering', 1)")
	sqltest.Equal(b.Session, true, "select bool_or(event = 'group locked' and detail like '%' || $2 || '%') from parley.trace_conversation($1)", initiator, pid)
	holder.Exec("rollback")

	b.Exec("select parley._p_set_aside_conversation(m.lane / 16, m.endpoint_id, m.position, 5) from parley._p_message as m order by m.position limit 1")
	b.Exec("insert into parley._p_failure (endpoint_id, failed_at, sqlstate, error) select endpoint_id, now(), '22012', 'division by zero' from parley._p_set_aside")
	requireEvents(b.Session, initiator, "target set aside", "target reader failed")

	delayed := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Missing', allow_unknown_target => true)")
	b.Send(delayed, "DEFAULT", "x")
	requireEvents(b.Session, delayed, "initiator message delayed DEFAULT")

	failed, target := b.Conversation()
	b.EndWithError(failed, 7, "no such customer")
	sqltest.Equal(b.Session, true, "select bool_or(event = 'error waits' and detail like '%no such customer%') from parley.trace_conversation($1)", target)
	b.Messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
	b.End(target)
	requireEvents(b.Session, target, "target forgotten")
}

// Each step is what keeps the message where it is, and its cure is that of the finding.
func TestExplainConversationFindsTheMessage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		arrange func(b *sqltest.Broker) (conversation string)
		step    int
		answer  string
		cure    string
	}{
		{"nothing sent", func(b *sqltest.Broker) string { return b.Dialog() }, 1, "Nothing that it has sent is committed", ""},
		{"no such service", func(b *sqltest.Broker) string {
			handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Missing', allow_unknown_target => true)")
			b.Send(handle, "DEFAULT", "x")
			return handle
		}, 2, "no such service", "parley serve --dsn"},
		{"queue off", func(b *sqltest.Broker) string {
			handle := b.Dialog()
			b.Exec("select parley.alter_queue('Answering', status => false)")
			b.Send(handle, sqltest.Request, "x")
			return handle
		}, 3, "switched off", "alter_queue('Answering', status => true)"},
		{"far side removed", func(b *sqltest.Broker) string {
			initiator, target := b.Conversation()
			b.Exec("select parley.end_conversation($1::uuid, cleanup => true)", target)
			return initiator
		}, 6, "closed or was removed", "end_conversation"},
		{"failed and not ended", func(b *sqltest.Broker) string {
			initiator, target := b.Conversation()
			b.EndWithError(initiator, 1, "no")
			b.Messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
			return initiator
		}, 6, "in state ERROR and not ended", "end_conversation"},
		{"nobody reads", func(b *sqltest.Broker) string {
			handle := b.Dialog()
			b.Send(handle, sqltest.Request, "x")
			return handle
		}, 7, "nobody receives", "activation => true"},
		{"group held", func(b *sqltest.Broker) string {
			handle := b.Dialog()
			b.Send(handle, sqltest.Request, "first")
			b.Send(handle, sqltest.Request, "second")
			tx := b.Begin()
			tx.Exec("select parley.receive('Answering', 1)")
			return handle
		}, 7, "holds it", "pg_terminate_backend"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			handle := test.arrange(b)
			answers := sqltest.Values[string](b.Session,
				"select answer || ' / ' || coalesce(cure, '') from parley.explain_conversation($1) where step = $2 and is_finding", handle, test.step)
			if !slices.ContainsFunc(answers, func(a string) bool { return strings.Contains(a, test.answer) && strings.Contains(a, test.cure) }) {
				t.Errorf("step %d answers %q", test.step, answers)
			}
		})
	}
}

func TestExplainConversationReportsWhenAllIsWell(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.explain_conversation($1) where is_finding", initiator)
	sqltest.Equal(b.Session, true, "select bool_or(answer like 'Everything that is committed%') from parley.explain_conversation($1)", target)
	b.End(initiator)
	b.End(target)
	sqltest.Equal(b.Session, "Both sides are closed; what was sent was received, or dropped by who ended its side.",
		"select answer from parley.explain_conversation($1)", target)
}

func TestTraceIsForThoseWhoDoTheWork(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	name := b.Role("reader")
	reader := b.As(name)
	for _, statement := range []string{"select parley.trace_conversation($1)", "select parley.explain_conversation($1)"} {
		reader.Refuses(229, statement, initiator)
		reader.Refuses(8426, statement, "01234567-89ab-cdef-0123-456789abcdef")
	}
	b.Exec("select parley.grant('RECEIVE', 'queue', 'Answering', $1)", name)
	for _, query := range []string{"parley.trace_conversation($1)", "parley.explain_conversation($1)"} {
		sqltest.Equal(reader, target, "select string_agg(distinct conversation_handle::text, ' ') from "+query, initiator)
	}
	// Of one that is over a target remembers for a while that it was there: that is for its owner alone.
	b.Exec("select parley.end_conversation($1)", initiator)
	b.Exec("select parley.receive('Answering')")
	b.Exec("select parley.end_conversation($1)", target)
	sqltest.Equal(b.Session, true, "select exists (select from parley.trace_conversation($1) where event = 'forgotten')", target)
	sqltest.Equal(b.As(b.Role("outsider")), 0, "select count(*)::int from parley.trace_conversation($1)", target)
}
