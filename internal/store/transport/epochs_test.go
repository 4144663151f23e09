package transport_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

func TestSpeakerOfAnOlderTermOrEpochIsRefused(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, _ := talking(t)
	asker.Send(initiator, request, "second")
	runs := asker.take(answerer)
	now := asker.speaker()
	later := now
	later.Term++
	later.Token = parley.UUID{1}
	tests := []struct {
		name    string
		speaker transportstore.Speaker
	}{
		{"older term", now},
		{"older epoch", transportstore.Speaker{Instance: now.Instance, Epoch: now.Epoch - 1, Term: later.Term + 5, Token: now.Token}},
		{"copy under the same term", transportstore.Speaker{Instance: now.Instance, Epoch: now.Epoch, Term: later.Term, Token: parley.UUID{2}}},
		{"copy of the target itself", transportstore.Speaker{Instance: answerer.guid, Epoch: 1, Term: 1}},
	}
	answerer.deliver(later)
	for _, test := range tests {
		if results := answerer.deliver(test.speaker, runs...); results[0].Outcome != transportstore.Superseded || results[0].Description == "" {
			t.Errorf("%s: got %+v", test.name, results[0])
		}
	}
	if got := answerer.receivedTexts("Answering"); got != nil {
		t.Errorf("received %v", got)
	}
	if results := answerer.deliver(later, runs...); results[0].Outcome != transportstore.Accepted {
		t.Errorf("got %+v", results[0])
	}
}

// probe compares the conversations of a side with the other one, as a daemon does in a new epoch.
func (s *side) probe(other *side) []transportstore.Result {
	s.Helper()
	s.Exec("select parley._p_begin_epoch()")
	s.resolve(other)
	runs := s.probes()
	results := other.deliver(s.speaker(), runs...)
	s.acknowledge(runs, results)
	return results
}

func TestNothingIsTransmittedInANewEpochBeforeBothSidesAgree(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, _ := talking(t)
	asker.Exec("select parley._p_begin_epoch()")
	asker.Send(initiator, request, "second")
	if runs := asker.take(answerer); len(runs) != 0 {
		t.Fatalf("took %v", runs)
	}
	if results := asker.probe(answerer); len(results) != 1 || results[0].Outcome != transportstore.Accepted {
		t.Fatalf("got %+v", results)
	}
	asker.exchange(answerer)
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, []string{"second"}) {
		t.Errorf("received %v", got)
	}
}

// Each case takes back what a database that lost the end of its history would lack.
func TestConversationThatLostHistoryEndsInAnErrorOnBothSides(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		lose func(asker, answerer *side, initiator string)
		asks func(asker, answerer *side) []transportstore.Result
	}{
		{
			"the sender lost what it sent",
			func(asker, _ *side, _ string) {
				asker.Exec("delete from parley._p_send_progress where sequence = 2")
				asker.Exec("insert into parley._p_send_progress (endpoint_id, sequence) select endpoint_id, 1 from parley._p_endpoint")
			},
			func(asker, answerer *side) []transportstore.Result { return asker.probe(answerer) },
		},
		{
			"the receiver lost what it had acknowledged",
			func(_, answerer *side, _ string) {
				answerer.Exec("update parley._p_accept_progress set sequence = 1")
			},
			func(asker, answerer *side) []transportstore.Result { return asker.probe(answerer) },
		},
		{
			"the receiver asks",
			func(_, answerer *side, _ string) {
				answerer.Exec("update parley._p_accept_progress set sequence = 1")
				answerer.Exec("select parley.Send(conversation_handle, '//test/Note', 'x'::text) from parley.conversation_endpoints")
			},
			func(asker, answerer *side) []transportstore.Result { return answerer.probe(asker) },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			asker, answerer, initiator, _ := talking(t)
			asker.Send(initiator, request, "second")
			asker.exchange(answerer)
			answerer.receivedTexts("Answering")
			test.lose(asker, answerer, initiator)
			results := test.asks(asker, answerer)
			if len(results) != 1 || results[0].Outcome != transportstore.Refused {
				t.Fatalf("got %+v", results)
			}
			for queue, s := range map[string]*side{"Asking": asker, "Answering": answerer} {
				got := s.messages("select message_type_name, message_body from parley.receive($1)", queue)
				if len(got) != 1 || got[0].MessageTypeName != errorMessage || !bytes.Contains(got[0].MessageBody, []byte("lost")) {
					t.Errorf("%s received %v", s.name, got)
				}
				equal(s, "ER", "select state from parley.conversation_endpoints")
			}
		})
	}
}

func TestHistoryLostWithoutANewEpochIsFoundByTheNextMessage(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, _ := talking(t)
	asker.Send(initiator, request, "second")
	asker.exchange(answerer)
	answerer.Exec("update parley._p_accept_progress set sequence = 1")
	asker.Send(initiator, request, "third")
	asker.exchange(answerer)
	if got := asker.receivedTexts("Asking"); !slices.Equal(got, []string{"Error"}) {
		t.Errorf("the asker received %v", got)
	}
	if got := answerer.receivedTexts("Answering"); !slices.Contains(got, "Error") {
		t.Errorf("the answerer received %v", got)
	}
}

// A message that is sent anew under numbers that the far side has already is a duplicate to it. Its answer acknowledges more than was ever
// given.
func TestAnAcknowledgementOfWhatWasNeverGivenEndsTheConversation(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, _ := talking(t)
	asker.Send(initiator, request, "second")
	asker.Send(initiator, request, "third")
	asker.exchange(answerer)
	answerer.receivedTexts("Answering")
	asker.Exec("delete from parley._p_send_progress where sequence > 1")
	asker.Exec("insert into parley._p_send_progress (endpoint_id, sequence) select endpoint_id, 1 from parley._p_endpoint")
	asker.Send(initiator, request, "never to arrive")

	// As long as an application holds the conversation nothing is forgotten.
	runs := asker.take(answerer)
	results := answerer.deliver(asker.speaker(), runs...)
	if len(results) != 1 || results[0].Outcome != transportstore.Accepted || results[0].Next != 3 {
		t.Fatalf("got %+v", results)
	}
	application, err := asker.db.Begin(t.Context())
	asker.noError(err)
	_, err = application.Exec(t.Context(), "select from parley._p_endpoint for update")
	asker.noError(err)
	asker.acknowledge(runs, results)
	equal(asker, 1, "select count(*)::int from parley._p_transit")
	asker.noError(application.Rollback(t.Context()))

	asker.acknowledge(runs, results)
	asker.exchange(answerer)
	for queue, s := range map[string]*side{"Asking": asker, "Answering": answerer} {
		if got := s.receivedTexts(queue); !slices.Equal(got, []string{"Error"}) {
			t.Errorf("the %s received %v", s.name, got)
		}
	}
}
