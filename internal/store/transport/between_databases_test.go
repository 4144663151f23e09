package transport_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

func TestDialogBetweenDatabasesArrivesInOrderAndOnce(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	handle := asker.dialog()
	var want []string
	for i := range 5 {
		asker.Send(handle, request, fmt.Sprint(i))
		want = append(want, fmt.Sprint(i))
	}
	asker.Exec("select parley.send_batch($1::uuid, $2, $3::text[])", handle, request, []string{"5", "6", "7"})
	want = append(want, "5", "6", "7")
	asker.exchange(answerer)
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
	equal(asker, 0, "select count(*)::integer from parley.transmission_queue")
	equal(asker, answerer.guid.String(), "select far_broker_instance from parley.conversation_endpoints")

	// The short way now, and back.
	asker.Send(handle, request, "8")
	asker.exchange(answerer)
	target := one[string](answerer, "select conversation_handle::text from parley.conversation_endpoints")
	answerer.Send(target, reply, "yes")
	answerer.Send(target, reply, "indeed")
	answerer.exchange(asker)
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, []string{"8"}) {
		t.Errorf("received %v", got)
	}
	if got := asker.receivedTexts("Asking"); !slices.Equal(got, []string{"yes", "indeed"}) {
		t.Errorf("received %v", got)
	}

	answerer.End(target)
	answerer.exchange(asker)
	if got := asker.receivedTexts("Asking"); !slices.Equal(got, []string{"EndDialog"}) {
		t.Errorf("received %v", got)
	}
	asker.End(handle)
	asker.exchange(answerer)
	equal(asker, 0, "select count(*)::integer from parley._p_endpoint")
	equal(answerer, 0, "select count(*)::integer from parley._p_endpoint")
	for _, table := range []string{"_p_transit", "_p_send_progress", "_p_accept_progress", "_p_message", "_p_conversation_group"} {
		equal(asker, 0, "select count(*)::integer from parley."+table)
		equal(answerer, 0, "select count(*)::integer from parley."+table)
	}
}

func TestCountersCountEachMessageOfABatchFromAfar(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	handle := asker.dialog()
	total := 0
	// The first opens the conversation, the second goes the short way.
	for _, length := range []int{40, 300} {
		asker.Exec("select parley.send_batch($1::uuid, $2, array(select 'x' from generate_series(1, $3)))", handle, request, length)
		asker.exchange(answerer)
		total += length
		equal(answerer, total, `
			select cntr_value::integer from parley.dm_os_performance_counters where counter_name = 'Enqueued Messages Total'`)
	}
	// On its way out it was on no queue.
	equal(asker, 0, `
		select cntr_value::integer from parley.dm_os_performance_counters where counter_name = 'Enqueued Messages Total'`)
}

func TestRunThatComesAgainHasNoEffect(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	handle := asker.dialog()
	asker.Exec("select parley.send_batch($1::uuid, $2, $3::text[])", handle, request, []string{"a", "b", "c"})
	runs := asker.take(answerer)
	for range 3 {
		results := answerer.deliver(asker.speaker(), runs...)
		if last := results[len(results)-1]; last.Outcome != transportstore.Accepted || last.Next != 3 {
			t.Fatalf("got %+v", results)
		}
	}
	asker.Send(handle, request, "d")
	next := asker.take(answerer)
	// Later ones before earlier ones, and a part of what is known already.
	results := answerer.deliver(asker.speaker(), append(next, runs...)...)
	if results[0].Next != 4 || results[len(results)-1].Next != 4 {
		t.Fatalf("got %+v", results)
	}
	merged := runs[0]
	merged.Bodies = [][]byte{[]byte("a"), []byte("b"), []byte("c"), []byte("d"), []byte("e")}
	if results = answerer.deliver(asker.speaker(), merged); results[0].Outcome != transportstore.Accepted || results[0].Next != 5 {
		t.Fatalf("got %+v", results)
	}
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, []string{"a", "b", "c", "d", "e"}) {
		t.Errorf("received %v", got)
	}
}

func TestRunAfterAHoleIsNotTaken(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	handle := asker.dialog()
	asker.Send(handle, request, "a")
	asker.carry(answerer)
	asker.Send(handle, request, "b")
	first := asker.take(answerer)
	asker.Send(handle, request, "c")
	second := asker.take(answerer)
	if results := answerer.deliver(asker.speaker(), second...); results[0].Outcome != transportstore.Expected || results[0].Next != 1 {
		t.Fatalf("got %+v", results)
	}
	answerer.deliver(asker.speaker(), first...)
	answerer.deliver(asker.speaker(), second...)
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("received %v", got)
	}
}

func TestTargetRefusesWhatItMustNotTake(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, answerer, service, messageType, body string
		outcome                                    transportstore.Outcome
		number                                     int32
	}{
		{name: "no SEND right", answerer: "select parley.revoke('SEND', 'service', '//test/Answerer', 'public')", outcome: transportstore.Refused, number: 8494},
		{
			name: "contract not accepted", answerer: "select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])",
			outcome: transportstore.Refused, number: 8408,
		},
		{
			name:     "contract unknown",
			answerer: "select parley.drop_service('//test/Answerer'); select parley.drop_contract('//test/Work'); select parley.create_service('//test/Answerer', 'Answering', array['DEFAULT']); select parley.grant('SEND', 'service', '//test/Answerer', 'public')",
			outcome:  transportstore.Refused, number: 8425,
		},
		{name: "service unknown", service: "//test/Nobody", outcome: transportstore.Unroutable, number: 9796},
		{name: "body not valid", messageType: "//test/Checked", body: "<a", outcome: transportstore.Refused, number: 9615},
		{name: "queue off", answerer: "select parley.alter_queue('Answering', status => false)", outcome: transportstore.Held, number: 11219},
		{name: "broker disabled", answerer: "select parley.disable_broker()", outcome: transportstore.Held, number: 28012},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			asker, answerer := newSides(t)
			if test.answerer != "" {
				answerer.Exec(test.answerer)
			}
			service, messageType := "//test/Answerer", request
			if test.service != "" {
				service = test.service
			}
			if test.messageType != "" {
				messageType = test.messageType
			}
			handle := one[string](asker, "select parley.begin_dialog('//test/Asker', $1, '//test/Work', allow_unknown_target => true)::text", service)
			asker.Send(handle, messageType, test.body)
			runs := asker.take(answerer)
			results := answerer.deliver(asker.speaker(), runs...)
			if results[0].Outcome != test.outcome || results[0].ErrorNumber != test.number {
				t.Fatalf("got %+v", results[0])
			}
			asker.acknowledge(runs, results)
			if test.outcome == transportstore.Refused {
				if got := asker.messages("select message_type_name, message_body from parley.receive('Asking')"); len(got) != 1 || got[0].MessageTypeName != errorMessage {
					t.Errorf("received %v", got)
				}
				equal(asker, "ER", "select state from parley.conversation_endpoints")
				asker.End(handle)
				equal(asker, 0, "select count(*)::integer from parley.conversation_endpoints")
				return
			}
			equal(asker, results[0].Description, "select transmission_status from parley.transmission_queue")
			equal(asker, "CO", "select state from parley.conversation_endpoints")
		})
	}
}

// Messages before a bad body have arrived, as if each had been sent alone; they come once, however often the run is brought.
func TestBadBodyFromAnotherDatabaseTakesNothingFromThoseBeforeIt(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	handle := asker.dialog()
	asker.Send(handle, request, "first")
	asker.exchange(answerer)
	asker.Exec("select parley.send_batch($1::uuid, '//test/Checked', array['<a/>', null, '<bad', '<c/>'])", handle)
	runs := asker.take(answerer)
	results := answerer.deliver(asker.speaker(), runs...)
	if len(results) != 1 || results[0].Outcome != transportstore.Refused || results[0].ErrorNumber != 9615 {
		t.Fatalf("got %+v", results)
	}
	answerer.deliver(asker.speaker(), runs...)
	asker.acknowledge(runs, results)
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, []string{"Error", "first", "<a/>", ""}) {
		t.Errorf("received %q", got)
	}
	if got := asker.receivedTexts("Asking"); !slices.Equal(got, []string{"Error"}) {
		t.Errorf("received %q", got)
	}
}

// Numbers between databases are given in transit: those of copies are the same.
func TestCopiesOfWhatGoesToAnotherDatabaseHaveItsNumbers(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	handle := asker.dialog()
	asker.Send(handle, request, "0")
	asker.exchange(answerer)
	asker.Send(handle, request, "1")
	asker.take(answerer)
	asker.Send(handle, request, "2")
	asker.Exec("select parley.alter_queue('Asking', retention => true)")
	asker.Send(handle, request, "3")
	asker.Exec("select parley.send_batch($1::uuid, $2, array['4', '5'])", handle, request)
	got := sqltest.Values[string](asker.Session, `
		select format('%s %s', message_sequence_number, convert_from(message_body, 'UTF8')) from parley.queue_contents('Asking') order by queuing_order`)
	if want := []string{"3 3", "4 4", "5 5"}; !slices.Equal(got, want) {
		t.Errorf("the copies are %q, want %q", got, want)
	}
}

func TestTracesTravelBetweenDatabases(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	const single, batch = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	handle := asker.dialog()
	asker.Exec("select parley.send($1::uuid, '//test/Request', 'x', trace_context => $2)", handle, single)
	asker.Exec("select parley.send_batch_binary($1::uuid, '//test/Request', array['y'::bytea, 'z'], trace_context => $2)", handle, batch)
	asker.Exec("select parley.send_batch($1::uuid, '//test/Request', array['v', 'w'])", handle)
	for asker.carry(answerer) > 0 {
	}
	equal(answerer, single+" "+batch+" "+batch+" none none",
		"select string_agg(coalesce(r.trace_context, 'none'), ' ' order by r.queuing_order) from parley.receive('Answering') as r")
}
