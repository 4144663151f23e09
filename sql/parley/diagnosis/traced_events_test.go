package diagnosis_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const allOfIt = `select coalesce(role_name || ' ', '') || event_name || ', ' || event_subclass || ' ' || event_subclass_name
		|| case when event_class = 136 then '' else ', ' || coalesce(state, '-') end
		|| coalesce(', ' || messages || ' ' || message_type_name, '') || coalesce(', error ' || error, '') || coalesce(', ' || text_data, '')
	from parley.traced_events order by event_sequence`

// traced gives the trace of some statements.
func traced(s sqltest.Session, do func(), arguments ...any) []string {
	s.Helper()
	events := "null"
	if len(arguments) > 0 {
		events = fmt.Sprintf("array['%s']", arguments[0])
	}
	s.Exec("select parley.start_trace(" + events + ")")
	do()
	s.Exec("select parley.stop_trace()")
	return sqltest.Values[string](s, allOfIt)
}

// Each event has the class, subclass, name and state that SQL Server gives it (spec 8.5).
func TestATraceShowsWhatHappensToConversations(t *testing.T) {
	t.Parallel()
	var handle, target string
	const conversations = "Broker:Conversation"
	scenes := map[string]struct {
		arrange, act func(b *sqltest.Broker)
		events       string
		want         []string
	}{
		"a first message": {
			act: func(b *sqltest.Broker) {
				handle = b.Dialog()
				b.Send(handle, sqltest.Request, "x")
			},
			want: []string{
				"Broker:Conversation Group, 1 Create",
				"initiator Broker:Conversation, 11 BEGIN DIALOG, SO",
				"initiator Broker:Conversation, 1 SEND Message, SO, 1 //test/Request",
				"Broker:Conversation Group, 1 Create",
				"target Broker:Conversation, 12 Dialog Created, CO",
				"initiator Broker:Message Classify, 1 Local, CO",
				"target Broker:Conversation, 6 Received Sequenced Message, CO, 1 //test/Request",
			},
		},
		"a message on the short way": {
			arrange: func(b *sqltest.Broker) { handle, _ = b.Conversation() },
			act:     func(b *sqltest.Broker) { b.Send(handle, sqltest.Request, "x") },
			want: []string{
				"initiator Broker:Conversation, 1 SEND Message, CO, 1 //test/Request",
				"target Broker:Conversation, 6 Received Sequenced Message, CO, 1 //test/Request",
			},
		},
		"a batch, which is received in parts": {
			arrange: func(b *sqltest.Broker) { handle, _ = b.Conversation() },
			act: func(b *sqltest.Broker) {
				// In one statement: what RECEIVE puts back of the batch is as young as the batch.
				b.Exec(fmt.Sprintf(`do $$ begin
					perform parley.send_batch('%s', '%s', array['a', 'b', 'c']);
					perform parley.receive('Answering', top => 1);
				end $$`, handle, sqltest.Request))
				b.Exec("select parley.send_to_all(array[$1::uuid], $2, 'x')", handle, sqltest.Request)
			},
			want: []string{
				"initiator Broker:Conversation, 1 SEND Message, CO, 3 //test/Request",
				"target Broker:Conversation, 6 Received Sequenced Message, CO, 3 //test/Request",
				"initiator Broker:Conversation, 1 SEND Message, CO, 1 //test/Request",
				"target Broker:Conversation, 6 Received Sequenced Message, CO, 1 //test/Request",
			},
		},
		"both sides end": {
			arrange: func(b *sqltest.Broker) { handle, target = b.Conversation() },
			act: func(b *sqltest.Broker) {
				b.End(handle)
				b.End(target)
			},
			want: []string{
				"target Broker:Conversation, 7 Received END CONVERSATION, DI",
				"initiator Broker:Conversation, 2 END CONVERSATION, DO",
				"Broker:Conversation Group, 2 Drop",
				"Broker:Conversation Group, 2 Drop",
				"target Broker:Conversation, 2 END CONVERSATION, CD",
			},
		},
		"an end with an error": {
			arrange: func(b *sqltest.Broker) { handle, target = b.Conversation() },
			act:     func(b *sqltest.Broker) { b.EndWithError(target, 7, "no such customer") },
			want: []string{
				"initiator Broker:Conversation, 8 Received END CONVERSATION WITH ERROR, ER, error 7, no such customer",
				"target Broker:Conversation, 3 END CONVERSATION WITH ERROR, DO",
			},
		},
		"an error of the broker": {
			arrange: func(b *sqltest.Broker) { handle, _ = b.Conversation() },
			act: func(b *sqltest.Broker) {
				b.Exec("select parley._p_break_conversations(array[e.endpoint_id], (9719, 'lost')) from parley._p_endpoint as e where e.is_initiator")
			},
			want: []string{
				"initiator Broker:Conversation, 4 Broker Initiated Error, ER, error -9719, lost",
				"target Broker:Conversation, 4 Broker Initiated Error, ER, error -9719, lost",
			},
		},
		"a service is dropped": {
			events:  conversations,
			arrange: func(b *sqltest.Broker) { b.Conversation() },
			act:     func(b *sqltest.Broker) { b.Exec("select parley.drop_service('//test/Answerer')") },
			want: []string{
				"initiator Broker:Conversation, 4 Broker Initiated Error, ER, error -8470, The service \"//test/Answerer\" was dropped.",
				"target Broker:Conversation, 5 Terminate Dialog, CD, The service \"//test/Answerer\" was dropped.",
			},
		},
		"a cleanup": {
			events:  conversations,
			arrange: func(b *sqltest.Broker) { handle, _ = b.Conversation() },
			act:     func(b *sqltest.Broker) { b.Exec("select parley.end_conversation($1, cleanup => true)", handle) },
			want:    []string{"initiator Broker:Conversation, 13 END CONVERSATION WITH CLEANUP, CD"},
		},
		"a target that is not there": {
			events: "Broker:Message Classify",
			arrange: func(b *sqltest.Broker) {
				handle = sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Missing', allow_unknown_target => true)")
			},
			act:  func(b *sqltest.Broker) { b.Exec("select parley.send($1::uuid)", handle) },
			want: []string{`initiator Broker:Message Classify, 3 Delayed, CO, 1 DEFAULT, The target service "//test/Missing" does not exist in this database, and there is no route to it.`},
		},
		"a route to another server": {
			events: "broker:message classify",
			arrange: func(b *sqltest.Broker) {
				b.CreateRoute("far", "tcp://far:4022", sqltest.Far)
				handle = b.DialogTo(sqltest.Far)
			},
			act:  func(b *sqltest.Broker) { b.Send(handle, sqltest.Request, "x") },
			want: []string{"initiator Broker:Message Classify, 2 Remote, CO"},
		},
		"send and forget": {
			events: conversations,
			act:    func(b *sqltest.Broker) { b.SendAndEnd("//test/Answerer", "x") },
			want: []string{
				"initiator Broker:Conversation, 11 BEGIN DIALOG, SO",
				"initiator Broker:Conversation, 1 SEND Message, SO, 1 //test/Request",
				"target Broker:Conversation, 12 Dialog Created, CO",
				"target Broker:Conversation, 6 Received Sequenced Message, CO, 1 //test/Request",
				"target Broker:Conversation, 7 Received END CONVERSATION, DI",
				"initiator Broker:Conversation, 2 END CONVERSATION, DO",
			},
		},
		"messages that only get another place": {
			arrange: func(b *sqltest.Broker) {
				handle, _ = b.Conversation()
				b.Send(handle, sqltest.Request, "x")
			},
			act: func(b *sqltest.Broker) { b.Exec("select parley.alter_service('//test/Answerer', queue => 'Asking')") },
		},
		"what is rolled back": {
			arrange: func(b *sqltest.Broker) { handle, _ = b.Conversation() },
			act: func(b *sqltest.Broker) {
				tx := b.Begin()
				tx.Send(handle, sqltest.Request, "x")
				tx.Rollback()
			},
		},
	}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			b := sqltest.NewWorld(t)
			if scene.arrange != nil {
				scene.arrange(b)
			}
			var events []any
			if scene.events != "" {
				events = append(events, scene.events)
			}
			got := traced(b.Session, func() { scene.act(b) }, events...)
			if !slices.Equal(got, scene.want) {
				t.Errorf("traced\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(scene.want, "\n\t"))
			}
		})
	}
}

// Without a trace PostgreSQL calls nothing on the way of a message.
func TestNothingIsTracedUnlessSomebodyAsks(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	const enabled = "select count(*) from pg_trigger where tgname like '\\_p\\_record%' and tgenabled <> 'D'"
	sqltest.Equal(b.Session, int64(0), enabled)
	initiator, _ := b.Conversation()
	b.Send(initiator, sqltest.Request, "x")
	sqltest.Equal(b.Session, int64(0), "select count(*) from parley._p_trace_event")
	b.Exec("select parley.start_trace()")
	sqltest.Equal(b.Session, int64(5), enabled)
	b.Send(initiator, sqltest.Request, "x")
	b.Exec("select parley.stop_trace()")
	sqltest.Equal(b.Session, int64(0), enabled)
	b.Send(initiator, sqltest.Request, "x")
	b.End(initiator)
	sqltest.Equal(b.Session, int64(2), "select count(*) from parley.traced_events")
	// A start that is taken back leaves nothing on.
	tx := b.Begin()
	tx.Exec("select parley.start_trace()")
	tx.Rollback()
	sqltest.Equal(b.Session, int64(0), enabled)
	b.SendAndEnd("//test/Answerer", "x")
	sqltest.Equal(b.Session, int64(2), "select count(*) from parley.traced_events")
}

// A trace ends by itself, after a time or a number of events, and may be of one conversation.
func TestATraceHasBounds(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	one, target := b.Conversation()
	other, _ := b.Conversation()
	group := b.GroupOf(target)
	id := sqltest.Value[string](b.Session, "select conversation_id::text from parley.conversation_endpoints where conversation_handle = $1", one)
	const both = "select string_agg(distinct event_subclass_name || ' ' || role_name, ', ') from parley.traced_events"
	for _, c := range []struct{ conversation, want string }{
		{one, "SEND Message initiator"},
		{target, "Received Sequenced Message target"},
		{group, "Received Sequenced Message target"},
		{id, "Received Sequenced Message target, SEND Message initiator"},
	} {
		b.Exec("select parley.start_trace(conversation => $1)", c.conversation)
		b.Send(one, sqltest.Request, "x")
		b.Send(other, sqltest.Request, "x")
		sqltest.Equal(b.Session, c.want, both)
	}
	b.Exec("select parley.start_trace(max_events => 3)")
	b.Send(one, sqltest.Request, "x")
	b.Send(one, sqltest.Request, "x")
	sqltest.Equal(b.Session, int64(3), "select count(*) from parley.traced_events")
	b.Exec("select parley.start_trace(seconds => 1)")
	b.WaitUntil("select stops_at < clock_timestamp() from parley._p_trace")
	b.Send(one, sqltest.Request, "x")
	b.End(one)
	sqltest.Equal(b.Session, int64(0), "select count(*) from parley.traced_events")
	for _, call := range []string{
		"parley.start_trace(array['Broker:Nothing'])", "parley.start_trace('{}')", "parley.start_trace(seconds => 0)", "parley.start_trace(seconds => null)",
		"parley.start_trace(seconds => 604801)", "parley.start_trace(max_events => 0)",
	} {
		b.Refuses(8402, "select "+call)
	}
}

// ALTER TRACE is a permission on the database: a role that has it may trace and see, no other but administrators.
func TestTracingWantsAlterTrace(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	role := b.Role("tracer")
	s := b.As(role)
	s.Refuses(229, "select parley.start_trace()")
	s.Refuses(229, "select parley.stop_trace()")
	b.Exec("select parley.start_trace()")
	b.Send(initiator, sqltest.Request, "x")
	sqltest.Equal(s, int64(0), "select count(*) from parley.traced_events")
	b.Exec("select parley.grant('ALTER TRACE', 'database', null, $1)", role)
	sqltest.Equal(s, int64(2), "select count(*) from parley.traced_events")
	sqltest.Equal(s, "SEND Message", "select event_subclass_name from parley.traced_events where spid <> pg_backend_pid() order by event_sequence limit 1")
	s.Exec("select parley.stop_trace()")
	s.Exec("select parley.start_trace()")
	sqltest.Equal(s, int64(0), "select count(*) from parley.traced_events")
	b.Exec("select parley.revoke('ALTER TRACE', 'database', null, $1)", role)
	s.Refuses(229, "select parley.stop_trace()")
}

// A session that waits to start a trace does not hold up those that send.
func TestStartingATraceLetsSendersPass(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	slow := b.Begin()
	slow.Send(initiator, sqltest.Request, "slow")
	done := make(chan error, 1)
	go func() {
		_, err := b.Pool.Exec(context.Background(), "select parley.start_trace()")
		done <- err
	}()
	b.WaitUntil(`
		select exists (
			select from pg_stat_activity
			where datname = current_database() and query like '%start_trace%' and pid <> pg_backend_pid() and wait_event is not null
		)`)
	quick := b.Connection()
	quick.Exec("set lock_timeout = '3s'")
	for range 20 {
		quick.Send(initiator, sqltest.Request, "quick")
	}
	slow.Commit()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.Send(initiator, sqltest.Request, "traced")
	sqltest.Equal(b.Session, int64(2), "select count(*) from parley.traced_events")
}
