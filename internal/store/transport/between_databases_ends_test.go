package transport_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// talking gives both handles of a conversation between two databases on which a request was received.
func talking(t *testing.T) (asker, answerer *side, initiator, target string) {
	t.Helper()
	asker, answerer = newSides(t)
	initiator = asker.dialog()
	asker.Send(initiator, request, "first")
	asker.exchange(answerer)
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, []string{"first"}) {
		t.Fatalf("received %v", got)
	}
	return asker, answerer, initiator, one[string](answerer, "select conversation_handle::text from parley.conversation_endpoints")
}

func (s *side) requireForgotten() {
	s.Helper()
	equal(s, 0, "select count(*)::integer from parley._p_endpoint")
	for _, table := range []string{
		"_p_transit", "_p_send_progress", "_p_accept_progress", "_p_message", "_p_transmission", "_p_conversation_group", "_p_parked",
		"_p_unresumed", "_p_compared",
	} {
		equal(s, 0, "select count(*)::integer from parley."+table)
	}
}

func TestErrorOfAnApplicationDropsWhatIsNotTransmitted(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, target := talking(t)
	asker.Send(initiator, request, "numbered")
	taken := asker.take(answerer)
	asker.Send(initiator, request, "dropped")
	asker.EndWithError(initiator, 7, "no more")
	results := answerer.deliver(asker.speaker(), taken...)
	asker.acknowledge(taken, results)
	asker.exchange(answerer)
	// An Error overtakes what waits.
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, []string{"Error", "numbered"}) {
		t.Errorf("received %v", got)
	}
	asker.requireForgotten()
	answerer.End(target)
	answerer.requireForgotten()
}

// A message that the far side did not take has its number already; the hole that it leaves must not keep the Error back.
func TestErrorOfAnApplicationDropsWhatTheFarSideDidNotTake(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, target := talking(t)
	answerer.Exec("select parley.alter_queue('Answering', status => false)")
	asker.Send(initiator, request, "refused")
	asker.carry(answerer)
	asker.Send(initiator, request, "behind it")
	asker.EndWithError(initiator, 7, "no more")
	asker.carry(answerer)
	equal(asker, "1 true -1", `
		select format('%s %s %s', count(*), bool_and(is_conversation_error)::text, min(message_sequence_number)) from parley.transmission_queue`)
	answerer.Exec("select parley.alter_queue('Answering', status => true)")
	asker.Exec("update parley._p_parked set due_at = clock_timestamp()")
	asker.exchange(answerer)
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, []string{"Error"}) {
		t.Errorf("received %v", got)
	}
	asker.requireForgotten()
	answerer.End(target)
	answerer.requireForgotten()
}

// A database that asks in between learns of no loss: what is missing was dropped.
func TestDatabasesAgreeOnWhatAnErrorOfAnApplicationDropped(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, _ := talking(t)
	answerer.Exec("select parley.alter_queue('Answering', status => false)")
	asker.Send(initiator, request, "refused")
	asker.carry(answerer)
	asker.EndWithError(initiator, 7, "no more")
	answerer.Exec("select parley.alter_queue('Answering', status => true)")
	if results := asker.probe(answerer); len(results) != 1 || results[0].Outcome != transportstore.Accepted {
		t.Fatalf("got %+v", results)
	}
	asker.exchange(answerer)
	got := answerer.messages("select message_type_name, message_body from parley.receive('Answering')")
	if len(got) != 1 || !bytes.Contains(got[0].MessageBody, []byte(">7<")) {
		t.Errorf("received %v", got)
	}
	asker.requireForgotten()
}

// A message that never arrived anywhere needs no report of its failure.
func TestErrorBeforeTheFarSideTookAnything(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		begin func(asker, answerer *side)
	}{
		{"nothing was transmitted", func(_, _ *side) {}},
		{"the queue of the target was off", func(asker, answerer *side) {
			answerer.Exec("select parley.alter_queue('Answering', status => false)")
			asker.carry(answerer)
			answerer.Exec("select parley.alter_queue('Answering', status => true)")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asker, answerer := newSides(t)
			handle := asker.dialog()
			asker.Send(handle, request, "1")
			asker.resolve(answerer)
			c.begin(asker, answerer)
			asker.Send(handle, request, "2")
			asker.EndWithError(handle, 7, "no more")
			asker.exchange(answerer)
			if got := answerer.receivedTexts("Answering"); got != nil {
				t.Errorf("received %v", got)
			}
			asker.requireForgotten()
			answerer.requireForgotten()
		})
	}
}

// The first message is under way: it makes the far side, which must learn that this one has failed.
func TestErrorFollowsAFirstMessageThatIsUnderWay(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	handle := asker.dialog()
	asker.Send(handle, request, "1")
	asker.resolve(answerer)
	runs := asker.take(answerer)
	asker.Send(handle, request, "2")
	asker.EndWithError(handle, 31472, "no such customer")
	ends := asker.take(answerer)
	if early := answerer.deliver(asker.speaker(), ends...); len(early) != 1 || early[0].Outcome != transportstore.Expected {
		t.Errorf("an Error that comes first is answered %+v", early)
	}
	asker.acknowledge(runs, answerer.deliver(asker.speaker(), runs...))
	asker.acknowledge(ends, answerer.deliver(asker.speaker(), ends...))
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, []string{"Error", "1"}) {
		t.Errorf("received %v", got)
	}
	asker.requireForgotten()
}

func TestBothSidesMayEndAtOnce(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, target := talking(t)
	asker.End(initiator)
	answerer.End(target)
	asker.exchange(answerer)
	asker.requireForgotten()
	answerer.requireForgotten()
}

func TestInitiatorMayEndBeforeAnythingIsTransmitted(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	handle := asker.dialog()
	asker.Send(handle, request, "only")
	asker.End(handle)
	asker.exchange(answerer)
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, []string{"only", "EndDialog"}) {
		t.Errorf("received %v", got)
	}
	asker.requireForgotten()
}

func TestReplayOfAClosedConversationOpensNothing(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	handle := asker.dialog()
	asker.Send(handle, request, "once")
	runs := asker.take(answerer)
	asker.acknowledge(runs, answerer.deliver(asker.speaker(), runs...))
	answerer.receivedTexts("Answering")
	answerer.End(one[string](answerer, "select conversation_handle::text from parley.conversation_endpoints"))
	answerer.exchange(asker)
	asker.receivedTexts("Asking")
	asker.End(handle)
	if results := answerer.deliver(asker.speaker(), runs...); results[0].Outcome != transportstore.Accepted {
		t.Errorf("got %+v", results[0])
	}
	if got := answerer.receivedTexts("Answering"); got != nil {
		t.Errorf("received %v", got)
	}
}

func TestWhatIsNotTransmittedWhenTheOtherSideEndsIsHeld(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, target := talking(t)
	asker.Send(initiator, request, "late")
	answerer.End(target)
	answerer.carry(asker)
	equal(asker, true, "select transmission_status like '%held%' from parley.transmission_queue")
	if runs := asker.take(answerer); len(runs) != 0 {
		t.Errorf("took %v", runs)
	}
	asker.End(initiator)
	asker.requireForgotten()
}

func TestErrorsOfTheBrokerReachTheOtherDatabase(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, statement, code string }{
		{"ERROR_BROKER_CONVERSATIONS", "select parley.error_broker_conversations()", "-9720"},
		{"service dropped", "select parley.drop_service('//test/Answerer')", "-8470"},
		{"contract dropped", "select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])", "-8469"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			asker, answerer, initiator, _ := talking(t)
			asker.Send(initiator, request, "under way")
			taken := asker.take(answerer)
			answerer.Exec(test.statement)
			answerer.carry(asker)
			got := asker.messages("select message_type_name, message_body from parley.receive('Asking')")
			if len(got) != 1 || got[0].MessageTypeName != errorMessage || !bytes.Contains(got[0].MessageBody, []byte(">"+test.code+"<")) {
				t.Fatalf("received %v", got)
			}
			asker.acknowledge(taken, answerer.deliver(asker.speaker(), taken...))
			asker.End(initiator)
			asker.exchange(answerer)
			asker.requireForgotten()
		})
	}
}

func TestLargeMessageTravelsInFragments(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, _ := talking(t)
	body := bytes.Repeat([]byte("0123456789abcdef"), 40_000)
	asker.Exec("select parley.send($1::uuid, $2, $3::bytea)", initiator, request, body)
	asker.Send(initiator, request, "after")
	runs := asker.take(answerer)
	if runs[0].Size != int64(len(body)) || len(runs[0].Bodies) != 0 {
		t.Fatalf("took %d bytes, %d bodies", runs[0].Size, len(runs[0].Bodies))
	}
	if results := answerer.deliver(asker.speaker(), runs[0]); results[0].Outcome != transportstore.Held || results[0].ErrorNumber != 0 {
		t.Errorf("without its fragments: %+v", results[0])
	}
	fragment := transportstore.Fragment{
		Speaker: asker.speaker(), ConversationID: runs[0].ConversationID, FromInitiator: true, Sequence: runs[0].FirstSequence, Size: runs[0].Size,
	}
	for stored := int64(0); stored < runs[0].Size; {
		part, err := transportstore.ReadBodyPart(t.Context(), asker.db, runs[0].EndpointID, runs[0].FirstSequence, stored, 100_000)
		asker.noError(err)
		fragment.Offset, fragment.Data = stored, part
		// Once more changes nothing.
		for range 2 {
			stored, err = transportstore.AcceptFragment(t.Context(), answerer.db, fragment)
			asker.noError(err)
		}
	}
	asker.acknowledge(runs, answerer.deliver(asker.speaker(), runs...))
	got := answerer.messages("select message_type_name, message_body from parley.receive('Answering')")
	if len(got) != 2 || !bytes.Equal(got[0].MessageBody, body) || string(got[1].MessageBody) != "after" {
		t.Errorf("received %d messages", len(got))
	}
	equal(answerer, 0, "select count(*)::integer from parley._p_fragment")
}

func TestConversationThatCannotBeTakenNowIsTriedAgainAndOthersGoOn(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, _ := talking(t)
	answerer.Exec(`select parley.create_queue('Other'); select parley.create_service('//test/Other', 'Other', array['//test/Work']);
		select parley.grant('SEND', 'service', '//test/Other', 'public'); select parley.alter_queue('Answering', status => false)`)
	asker.Send(initiator, request, "one")
	asker.carry(answerer)
	asker.Send(initiator, request, "two")
	other := one[string](asker, "select parley.begin_dialog('//test/Asker', '//test/Other', '//test/Work', allow_unknown_target => true)::text")
	for i := range 3 {
		asker.Send(other, request, fmt.Sprint(i))
		asker.carry(answerer)
	}
	if got := answerer.receivedTexts("Other"); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("received %v", got)
	}
	if got := sqltest.Values[string](asker.Session, "select convert_from(message_body, 'UTF8') from parley.transmission_queue order by message_sequence_number"); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("waiting %v", got)
	}
	answerer.Exec("select parley.alter_queue('Answering', status => true)")
	asker.Exec("update parley._p_parked set due_at = clock_timestamp()")
	asker.exchange(answerer)
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("received %v", got)
	}
	asker.Send(initiator, request, "three")
	asker.exchange(answerer)
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, []string{"three"}) {
		t.Errorf("received %v", got)
	}
	equal(asker, 0, "select count(*)::integer from parley._p_parked")
}
