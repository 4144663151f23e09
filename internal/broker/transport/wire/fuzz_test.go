package wire

import (
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// FuzzFrame decodes any bytes as each kind of frame. Nothing may panic, and what is taken must encode again to something that is taken
// and means the same.
func FuzzFrame(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		frame := &pb.Frame{}
		if proto.Unmarshal(text, frame) != nil {
			return
		}
		payload, err := Unpack(frame, 1<<20)
		if err != nil {
			return
		}
		switch frame.GetKind() {
		case pb.Kind_KIND_HELLO:
			checkAgain(t, payload, DecodeHello, EncodeHello)
		case pb.Kind_KIND_BATCH:
			checkAgain(t, payload, DecodeBatch, EncodeBatch)
		case pb.Kind_KIND_RESULTS:
			for n := range 4 {
				checkAgain(t, payload, func(p []byte) ([]transportstore.Result, error) { return DecodeResults(p, n) }, EncodeResults)
			}
		case pb.Kind_KIND_FRAGMENT:
			checkFragmentAgain(t, payload)
		case pb.Kind_KIND_STORED:
			checkAgain(t, payload, func(p []byte) (int64, error) { return DecodeStored(p, 1<<20) }, EncodeStored)
		case pb.Kind_KIND_FAILURE:
			checkAgain(t, payload, DecodeFailure, EncodeFailure)
		case pb.Kind_KIND_GRANT:
			checkAgain(t, payload, DecodeGrant, EncodeGrant)
		case pb.Kind_KIND_GOODBYE, pb.Kind_KIND_UNSPECIFIED: // which are not read
		}
	})
}

func checkAgain[T any](t *testing.T, payload []byte, decode func([]byte) (T, error), encode func(T) ([]byte, error)) {
	t.Helper()
	first, err := decode(payload)
	if err != nil {
		return
	}
	again, err := encode(first)
	if err != nil {
		t.Fatalf("%+v was taken, and is not encoded: %s", first, err)
	}
	second, err := decode(again)
	if err != nil || !reflect.DeepEqual(first, second) {
		t.Fatalf("%+v became %+v, %v", first, second, err)
	}
}

func checkFragmentAgain(t *testing.T, payload []byte) {
	t.Helper()
	type both struct {
		fragment transportstore.Fragment
		passage  transport.Passage
	}
	decode := func(payload []byte) (b both, err error) {
		b.fragment, b.passage, err = DecodeFragment(payload)
		if len(b.fragment.Data) == 0 {
			b.fragment.Data = nil
		}
		return b, err
	}
	checkAgain(t, payload, decode, func(b both) ([]byte, error) { return EncodeFragment(b.fragment, b.passage) })
}

// seeds has a good frame of each kind.
func seeds(f *testing.F) [][]byte {
	f.Helper()
	speaker := transportstore.Speaker{Instance: parley.UUID{1}, Epoch: 2, Term: 3, Token: parley.UUID{4}}
	run := transportstore.Run{
		ConversationID: parley.UUID{5}, FromInitiator: true, FirstSequence: 6, MessageType: "DEFAULT", FromService: "orders", ToService: "stock",
		Contract: "DEFAULT", ToBroker: parley.UUID{7}, Priority: 5, EnqueuedAt: time.Unix(1, 0), EndsAt: time.Unix(2, 0),
		TraceContext: "00-01-02-03", IsEncrypted: true, Security: []byte{8}, Bodies: [][]byte{[]byte("a"), nil, {}},
	}
	large := run
	large.Bodies, large.Size = nil, 5<<20
	var all [][]byte
	add := func(kind pb.Kind, payload []byte, err error) {
		if err != nil {
			f.Fatal(err)
		}
		text, err := proto.Marshal(Pack(kind, 1, payload, true))
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, text)
	}
	hello, err := EncodeHello(Hello{Lowest: 1, Highest: 1, Features: []string{"deflate"}, Brokers: []Broker{{Instance: parley.UUID{1}, Epoch: 2}}})
	add(pb.Kind_KIND_HELLO, hello, err)
	batch, err := EncodeBatch(transport.Batch{Passage: transport.Outset(), Speaker: speaker, Runs: []transportstore.Run{run, large}})
	add(pb.Kind_KIND_BATCH, batch, err)
	run.Bodies = [][]byte{make([]byte, 5000)}
	batch, err = EncodeBatch(transport.Batch{Passage: transport.Outset(), Speaker: speaker, Runs: []transportstore.Run{run}})
	add(pb.Kind_KIND_BATCH, batch, err)
	results, err := EncodeResults([]transportstore.Result{
		{Outcome: transportstore.Accepted, Next: 7, Broker: parley.UUID{7}, Epoch: 2, Security: []byte{9}},
		{Outcome: transportstore.Refused, ErrorNumber: 8490, Description: "there is no such service"},
	})
	add(pb.Kind_KIND_RESULTS, results, err)
	fragment, err := EncodeFragment(transportstore.Fragment{
		Speaker: speaker, ConversationID: parley.UUID{5}, Sequence: 6, Offset: 3, Size: 9, Data: []byte("abc"), ToService: "stock",
	}, transport.Outset())
	add(pb.Kind_KIND_FRAGMENT, fragment, err)
	stored, err := EncodeStored(6)
	add(pb.Kind_KIND_STORED, stored, err)
	failure, err := EncodeFailure(Notice{Number: transport.FailureToDispatch, Text: "the database is down"})
	add(pb.Kind_KIND_FAILURE, failure, err)
	grant, err := EncodeGrant(1 << 20)
	add(pb.Kind_KIND_GRANT, grant, err)
	goodbye, err := EncodeGoodbye(Notice{Number: transport.ClosedByFarEnd, Text: "the server stops"})
	add(pb.Kind_KIND_GOODBYE, goodbye, err)
	return all
}
