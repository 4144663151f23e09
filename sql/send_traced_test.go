package sql_test

import (
	"strings"
	"testing"
)

const (
	traceParent  = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	traceContext = traceParent + " congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"
)

// sendTraced sends a text with a trace context.
func (s session) sendTraced(handle, text, context string) {
	s.Helper()
	s.exec("select parley.send_traced($1::uuid, $2, convert_to($3, 'UTF8'), $4)", handle, request, text, context)
}

// sendBatchTraced sends texts as a batch with a trace context.
func (s session) sendBatchTraced(handle, context string, texts ...string) {
	s.Helper()
	s.exec("select parley.send_batch_traced($1::uuid, $2, array(select convert_to(t, 'UTF8') from unnest($3::text[]) as t), $4)",
		handle, request, texts, context)
}

// received gives the bodies and trace contexts of one RECEIVE.
func (s session) received(arguments string) string {
	s.Helper()
	return value[string](s, `
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
			b := newWorld(t)
			if c.setting != "" {
				b.exec(c.setting)
			}
			handle := b.dialog()
			// The first message goes the long way, the second the short one.
			b.sendTraced(handle, "first", traceContext)
			b.sendTraced(handle, "second", traceParent)
			b.send(handle, request, "third")
			b.exec("select parley.send_batch($1::uuid, $2, array['fourth', 'fifth'])", handle, request)
			b.sendBatchTraced(handle, traceContext, "sixth", "seventh", "eighth")
			want := "first=" + traceContext + " | second=" + traceParent + " | third=none | fourth=none | fifth=none" +
				" | sixth=" + traceContext + " | seventh=" + traceContext + " | eighth=" + traceContext
			equal(b.session, want, `
				select string_agg(parley.body_text(message_body) || '=' || coalesce(trace_context, 'none'), ' | ' order by queuing_order)
				from parley.queue_contents('Answering')`)
			equal(b.session, want, `
				select string_agg(parley.body_text(message_body) || '=' || coalesce(trace_context, 'none'), ' | ' order by queuing_order)
				from parley.peek('Answering')`)
			var got []string
			for {
				some := b.received(c.arguments)
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
	b := newWorld(t)
	b.exec("select parley.alter_queue('Asking', retention => true), parley.alter_queue('Answering', retention => true)")
	b.sendTraced(b.dialog(), "x", traceContext)
	b.received("")
	for _, queue := range []string{"Asking", "Answering"} {
		equal(b.session, traceContext, "select trace_context from parley.queue_contents($1)", queue)
	}
}

func TestADelayedMessageKeepsItsTraceContext(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Later', '//test/Work', allow_unknown_target => true)")
	b.sendTraced(handle, "x", traceContext)
	b.exec("select parley.create_service('//test/Later', 'Answering', array['//test/Work'])")
	b.exec("select parley.fire_timers()")
	if got := b.received(""); got != "x="+traceContext {
		t.Errorf("received %q", got)
	}
}

// A trace is never worth a message.
func TestWhatIsNoTraceContextIsLeftOut(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	for _, context := range []string{
		"", "x", traceParent[1:], strings.ToUpper(traceParent), traceParent + "0", traceParent + " a=\n", "ff" + traceParent[2:],
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		traceParent + " a=" + strings.Repeat("x", 600),
	} {
		b.sendTraced(handle, "sent", context)
		if got := b.received(""); got != "sent=none" {
			t.Errorf("with %q received %q", context, got)
		}
	}
	b.exec("select parley.send_traced($1::uuid, $2, 'sent'::bytea, null)", handle, request)
	if got := b.received(""); got != "sent=none" {
		t.Errorf("received %q", got)
	}
	longest := traceParent + " " + strings.Repeat("x", 544)
	b.sendTraced(handle, "sent", longest)
	if got := b.received(""); got != "sent="+longest {
		t.Errorf("received %q", got)
	}
}

func TestSendTracedRefusesWhatSendRefuses(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	const statement = "select parley.send_traced($1::uuid, $2, null, null)"
	b.refuses(8418, statement, nil, request)
	b.refuses(8426, statement, "00000000-0000-0000-0000-00000000000a", request)
	b.refuses(8428, statement, handle, "//test/Nothing")
	b.refuses(8432, statement, handle, reply)
	b.as(b.role("outsider")).refuses(229, statement, handle, request)
	b.send(handle, request, "x")
	b.end(handle)
	b.refuses(8429, statement, handle, request)
}

// The first batch of a dialog goes the long way; those that fill several frames are cut another way than short ones.
func TestEachMessageOfABatchCarriesItsTrace(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	for _, count := range []int{1, 2, 500, 5000} {
		b.exec(`select parley.send_batch_traced($1::uuid, $2, array(select convert_to('message ' || n, 'UTF8') from generate_series(1, $3) as n), $4)`,
			handle, request, count, traceContext)
		equal(b.session, count, "select count(*) from parley.receive('Answering') where trace_context = $1", traceContext)
	}
	b.refuses(8428, "select parley.send_batch_traced($1::uuid, '//test/Nothing', array['x'::bytea], null)", handle)
	b.sendBatchTraced(handle, "no context", "x", "y")
	if got := b.received(""); got != "x=none | y=none" {
		t.Errorf("received %q", got)
	}
}

func TestMessagesKeepTheirTraceInAnotherQueue(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	b.sendTraced(handle, "first", traceContext)
	b.sendBatchTraced(handle, traceParent, "second", "third")
	b.exec("select parley.create_queue('Other'), parley.alter_service('//test/Answerer', queue => 'Other'), parley.alter_service('//test/Answerer', queue => 'Answering')")
	if got, want := b.received(""), "first="+traceContext+" | second="+traceParent+" | third="+traceParent; got != want {
		t.Errorf("received %q, want %q", got, want)
	}
}

func TestPoisonTakenOutOfABatchLeavesTheOthersTheirTrace(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.sendBatchTraced(b.dialog(), traceContext, "poison", "second", "third")
	b.exec("select parley._p_set_aside_conversation(m.lane / 16, m.endpoint_id, m.position, 5) from parley._p_message as m")
	b.exec("select parley.discard_poison(conversation_handle, message_only => true) from parley.poison_conversations")
	if got, want := b.received(""), "second="+traceContext+" | third="+traceContext; got != want {
		t.Errorf("received %q, want %q", got, want)
	}
}
