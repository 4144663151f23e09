package send_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const (
	traceParent  = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	traceContext = traceParent + " congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"
)

// sendTraced sends a text with a trace context.
func sendTraced(s sqltest.Session, handle, text, context string) {
	s.Helper()
	s.Exec("select parley.send($1::uuid, $2, convert_to($3, 'UTF8'), trace_context => $4)", handle, sqltest.Request, text, context)
}

// sendBatchTraced sends texts as a batch with a trace context.
func sendBatchTraced(s sqltest.Session, handle, context string, texts ...string) {
	s.Helper()
	s.Exec("select parley.send_batch_binary($1::uuid, $2, array(select convert_to(t, 'UTF8') from unnest($3::text[]) as t), $4)",
		handle, sqltest.Request, texts, context)
}

// received gives the bodies and trace contexts of one RECEIVE.
func received(s sqltest.Session, arguments string) string {
	s.Helper()
	return sqltest.Value[string](s, `
		select coalesce(string_agg(parley.body_text(message_body) || '=' || coalesce(trace_context, 'none'), ' | ' order by queuing_order), 'nothing')
		from parley.receive('Answering'`+arguments+`)`)
}

func TestATraceContextTravelsWithItsMessage(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name      string
		setting   string // before anything is sent
		arguments string // of RECEIVE
	}{
		{"one by one", "", ", 1"},
		{"all at once", "", ""},
		{"two by two", "", ", 2"},
		{"from their group", "", ", 2, conversation_group_id => coalesce(parley.get_conversation_group('Answering'), 'ffffffff-ffff-ffff-ffff-ffffffffffff')"},
		{"with retention", "select parley.alter_queue('Answering', retention => true)", ""},
		{"with retention at the sender", "select parley.alter_queue('Asking', retention => true)", ""},
		{"in a queue with priorities", "select parley.create_broker_priority('low', priority_level => 2)", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			if c.setting != "" {
				b.Exec(c.setting)
			}
			handle := b.Dialog()
			// The first message goes the long way, the second the short one.
			sendTraced(b.Session, handle, "first", traceContext)
			sendTraced(b.Session, handle, "second", traceParent)
			b.Send(handle, sqltest.Request, "third")
			b.Exec("select parley.send_batch($1::uuid, $2, array['fourth', 'fifth'])", handle, sqltest.Request)
			sendBatchTraced(b.Session, handle, traceContext, "sixth", "seventh", "eighth")
			want := "first=" + traceContext + " | second=" + traceParent + " | third=none | fourth=none | fifth=none" +
				" | sixth=" + traceContext + " | seventh=" + traceContext + " | eighth=" + traceContext
			sqltest.Equal(b.Session, want, `
				select string_agg(parley.body_text(message_body) || '=' || coalesce(trace_context, 'none'), ' | ' order by queuing_order)
				from parley.queue_contents('Answering')`)
			sqltest.Equal(b.Session, want, `
				select string_agg(parley.body_text(message_body) || '=' || coalesce(trace_context, 'none'), ' | ' order by queuing_order)
				from parley.peek('Answering')`)
			var got []string
			for {
				some := received(b.Session, c.arguments)
				if some == "nothing" {
					break
				}
				got = append(got, some)
			}
			if strings.Join(got, " | ") != want {
				t.Errorf("received %q, want %q", got, want)
			}
		})
	}
}

func TestRetentionKeepsTheTraceContextOnBothSides(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Asking', retention => true), parley.alter_queue('Answering', retention => true)")
	sendTraced(b.Session, b.Dialog(), "x", traceContext)
	received(b.Session, "")
	for _, queue := range []string{"Asking", "Answering"} {
		sqltest.Equal(b.Session, traceContext, "select trace_context from parley.queue_contents($1)", queue)
	}
}

func TestADelayedMessageKeepsItsTraceContext(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Later', '//test/Work', allow_unknown_target => true)")
	sendTraced(b.Session, handle, "x", traceContext)
	b.Exec("select parley.create_service('//test/Later', 'Answering', array['//test/Work'])")
	b.Exec("select parley.fire_timers()")
	if got := received(b.Session, ""); got != "x="+traceContext {
		t.Errorf("received %q", got)
	}
}

// A trace is never worth a message.
func TestWhatIsNoTraceContextIsLeftOut(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	for _, context := range []string{
		"", "x", traceParent[1:], strings.ToUpper(traceParent), traceParent + "0", traceParent + " a=\n", "ff" + traceParent[2:],
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		traceParent + " a=" + strings.Repeat("x", 600),
	} {
		sendTraced(b.Session, handle, "sent", context)
		if got := received(b.Session, ""); got != "sent=none" {
			t.Errorf("with %q received %q", context, got)
		}
	}
	b.Exec("select parley.send($1::uuid, $2, 'sent'::bytea, trace_context => null)", handle, sqltest.Request)
	if got := received(b.Session, ""); got != "sent=none" {
		t.Errorf("received %q", got)
	}
	longest := traceParent + " " + strings.Repeat("x", 544)
	sendTraced(b.Session, handle, "sent", longest)
	if got := received(b.Session, ""); got != "sent="+longest {
		t.Errorf("received %q", got)
	}
}

func TestSendTracedRefusesWhatSendRefuses(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	const statement = "select parley.send($1::uuid, $2, null, trace_context => null)"
	b.Refuses(8418, statement, nil, sqltest.Request)
	b.Refuses(8426, statement, "00000000-0000-0000-0000-00000000000a", sqltest.Request)
	b.Refuses(8428, statement, handle, "//test/Nothing")
	b.Refuses(8432, statement, handle, sqltest.Reply)
	b.As(b.Role("outsider")).Refuses(229, statement, handle, sqltest.Request)
	b.Send(handle, sqltest.Request, "x")
	b.End(handle)
	b.Refuses(8429, statement, handle, sqltest.Request)
}

// The first batch of a dialog goes the long way; those that fill several frames are cut another way than short ones.
func TestEachMessageOfABatchCarriesItsTrace(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	for _, count := range []int{1, 2, 500, 5000} {
		b.Exec(`select parley.send_batch_binary($1::uuid, $2, array(select convert_to('message ' || n, 'UTF8') from generate_series(1, $3) as n), $4)`,
			handle, sqltest.Request, count, traceContext)
		sqltest.Equal(b.Session, count, "select count(*) from parley.receive('Answering') where trace_context = $1", traceContext)
	}
	b.Refuses(8428, "select parley.send_batch_binary($1::uuid, '//test/Nothing', array['x'::bytea], null)", handle)
	sendBatchTraced(b.Session, handle, "no context", "x", "y")
	if got := received(b.Session, ""); got != "x=none | y=none" {
		t.Errorf("received %q", got)
	}
}

func TestMessagesKeepTheirTraceInAnotherQueue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	sendTraced(b.Session, handle, "first", traceContext)
	sendBatchTraced(b.Session, handle, traceParent, "second", "third")
	b.Exec("select parley.create_queue('Other'), parley.alter_service('//test/Answerer', queue => 'Other'), parley.alter_service('//test/Answerer', queue => 'Answering')")
	if got, want := received(b.Session, ""), "first="+traceContext+" | second="+traceParent+" | third="+traceParent; got != want {
		t.Errorf("received %q, want %q", got, want)
	}
}

func TestPoisonTakenOutOfABatchLeavesTheOthersTheirTrace(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	sendBatchTraced(b.Session, b.Dialog(), traceContext, "poison", "second", "third")
	b.Exec("select parley._p_set_aside_conversation(m.lane / 16, m.endpoint_id, m.position, 5) from parley._p_message as m")
	b.Exec("select parley.discard_poison(conversation_handle, message_only => true) from parley.poison_conversations")
	if got, want := received(b.Session, ""), "second="+traceContext+" | third="+traceContext; got != want {
		t.Errorf("received %q, want %q", got, want)
	}
}
