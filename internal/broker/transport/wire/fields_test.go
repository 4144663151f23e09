package wire

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// full asks that each field has a value, but for those that are to have none: so a field that is added to a shape that travels is reported
// here, and reports whether it travels.
func full(t *testing.T, value any, empty ...string) {
	t.Helper()
	v := reflect.ValueOf(value)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if isEmpty := v.Field(i).IsZero(); isEmpty != slices.Contains(empty, name) {
			t.Errorf("%s.%s: empty is %t", v.Type().Name(), name, isEmpty)
		}
	}
}

func TestEachFieldTravelsOrStaysAtHome(t *testing.T) {
	t.Parallel()
	sent := transport.Batch{
		Passage: transport.Passage{Identity: "home", Name: "home", HopsRemaining: 1, TimeToLive: time.Second, TimeConsumed: time.Second},
		Speaker: transportstore.Speaker{Instance: parley.UUID{1}, Epoch: 2, Term: 3, Token: parley.UUID{4}},
	}
	run := transportstore.Run{
		EndpointID: 1, ConversationID: parley.UUID{2}, FromInitiator: true, FirstSequence: 3, MessageType: "type", FromService: "from", ToService: "to",
		Contract: "contract", ToBroker: parley.UUID{5}, Priority: 6, EnqueuedAt: time.Unix(7, 0), EndsAt: time.Unix(8, 0), TraceContext: "trace",
		Owner: "home", IsEncrypted: true, IsBound: true, Security: []byte{9}, SealedAt: time.Unix(9, 0),
	}
	messages, large, probe := run, run, run
	messages.Bodies = [][]byte{{1}}
	large.Size = 1
	probe.Probe = &transportstore.Probe{Given: 10, Expected: 11}
	full(t, *probe.Probe)
	sent.Runs = []transportstore.Run{messages, large, probe}
	payload, err := EncodeBatch(sent)
	if err != nil {
		t.Fatal(err)
	}
	came, err := DecodeBatch(payload)
	if err != nil {
		t.Fatal(err)
	}
	full(t, sent.Passage)
	full(t, came.Passage, "Identity", "Name")
	full(t, came.Speaker)
	for i, without := range [][]string{{"Size", "Probe"}, {"Bodies", "Probe"}, {"Bodies", "Size"}} {
		full(t, sent.Runs[i], without...)
		full(t, came.Runs[i], append(without, "EndpointID", "Owner", "IsBound", "SealedAt")...)
	}
	full(t, *came.Runs[2].Probe)

	fragment := transportstore.Fragment{
		Speaker: sent.Speaker, ConversationID: parley.UUID{1}, FromInitiator: true, Sequence: 1, Offset: 2, Size: 9, Data: []byte{3}, ToService: "to",
		ToBroker: parley.UUID{4}, Security: []byte{5}, Identity: "home", Owner: "home", SealedAt: time.Unix(6, 0),
	}
	full(t, fragment)
	if payload, err = EncodeFragment(fragment, sent.Passage); err != nil {
		t.Fatal(err)
	}
	part, _, err := DecodeFragment(payload)
	if err != nil {
		t.Fatal(err)
	}
	full(t, part, "Identity", "Owner", "SealedAt")

	result := transportstore.Result{
		Outcome: transportstore.Refused, Next: 1, ErrorNumber: 2, Description: "text", Broker: parley.UUID{3}, Epoch: 4, Security: []byte{5},
	}
	full(t, result)
	if payload, err = EncodeResults([]transportstore.Result{result}); err != nil {
		t.Fatal(err)
	}
	results, err := DecodeResults(payload, 1)
	if err != nil {
		t.Fatal(err)
	}
	full(t, results[0])
}
