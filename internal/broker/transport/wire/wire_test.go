package wire

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

func TestWhatIsEncodedIsDecodedUnchanged(t *testing.T) {
	t.Parallel()
	t.Run("batch", rapid.MakeCheck(func(t *rapid.T) {
		sent := anyBatch(t)
		payload, err := EncodeBatch(sent)
		if err != nil {
			t.Fatal(err)
		}
		came, err := DecodeBatch(payload)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(came, sent) {
			t.Fatalf("came  %+v\nsent %+v", came, sent)
		}
		if most := slices.Collect(lengths(sent.Runs)); int64(len(payload)) > 256+sum(most) {
			t.Fatalf("%d bytes, the runs were to have at most %d", len(payload), most)
		}
	}))
	t.Run("fragment", rapid.MakeCheck(func(t *rapid.T) {
		sent, passage := anyFragment(t), anyPassage(t)
		payload, err := EncodeFragment(sent, passage)
		if err != nil {
			t.Fatal(err)
		}
		came, through, err := DecodeFragment(payload)
		if err != nil || !reflect.DeepEqual(came, sent) || through != passage {
			t.Fatalf("came %+v, %+v, %v", came, through, err)
		}
	}))
	t.Run("results", rapid.MakeCheck(func(t *rapid.T) {
		sent := rapid.SliceOfN(rapid.Custom(anyResult), 0, 8).Draw(t, "results")
		payload, err := EncodeResults(sent)
		if err != nil {
			t.Fatal(err)
		}
		came, err := DecodeResults(payload, len(sent))
		if err != nil || !slices.EqualFunc(came, sent, func(a, b transportstore.Result) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatalf("came %+v, %v", came, err)
		}
	}))
	t.Run("frame", rapid.MakeCheck(func(t *rapid.T) {
		sent := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload"), rapid.IntRange(0, 50).Draw(t, "times"))
		frame := Pack(pb.Kind_KIND_BATCH, 1, sent, rapid.Bool().Draw(t, "compress"))
		came, err := Unpack(frame, int64(len(sent)))
		if err != nil || !bytes.Equal(came, sent) || Length(frame) != int64(len(sent)) {
			t.Fatalf("%d bytes came, length %d, %v", len(came), Length(frame), err)
		}
	}))
}

func lengths(runs []transportstore.Run) func(func(int64) bool) {
	return func(yield func(int64) bool) {
		for i := range runs {
			if !yield(RunLength(&runs[i])) {
				return
			}
		}
	}
}

func sum(all []int64) (n int64) {
	for _, one := range all {
		n += one
	}
	return n
}

func TestOwnerAndEndpointStayAtHome(t *testing.T) {
	t.Parallel()
	batch := transport.Batch{Speaker: transportstore.Speaker{Instance: parley.UUID{1}}, Runs: []transportstore.Run{{
		EndpointID: 77, Owner: "shop_owner", ConversationID: parley.UUID{2}, Bodies: [][]byte{nil},
	}}}
	batch.Identity = "somebody else"
	payload, err := EncodeBatch(batch)
	if err != nil {
		t.Fatal(err)
	}
	came, err := DecodeBatch(payload)
	if err != nil {
		t.Fatal(err)
	}
	if run := came.Runs[0]; run.EndpointID != 0 || run.Owner != "" || came.Identity != "" {
		t.Errorf("came %+v from %q", run, came.Identity)
	}
}

// A run that a peer would refuse again and again is refused before it is sent.
func TestWhatNoPeerTakesIsNotEncoded(t *testing.T) {
	t.Parallel()
	good := transportstore.Run{ConversationID: parley.UUID{2}, Priority: 5, Bodies: [][]byte{{1}}}
	for name, spoil := range map[string]func(*transportstore.Run){
		"no conversation":            func(r *transportstore.Run) { r.ConversationID = parley.UUID{} },
		"a name too long":            func(r *transportstore.Run) { r.ToService = strings.Repeat("ä", MaxName+1) },
		"a name with NUL":            func(r *transportstore.Run) { r.MessageType = "a\x00b" },
		"a name in another encoding": func(r *transportstore.Run) { r.Contract = "\xff" },
		"a priority":                 func(r *transportstore.Run) { r.Priority = 11 },
		"no messages":                func(r *transportstore.Run) { r.Bodies = nil },
		"bodies beside fragments":    func(r *transportstore.Run) { r.Size = 5 },
		"a size":                     func(r *transportstore.Run) { r.Bodies, r.Size = nil, MaxBody+1 },
		"a number":                   func(r *transportstore.Run) { r.FirstSequence = -1 },
		"the last number of all":     func(r *transportstore.Run) { r.FirstSequence = transportstore.Unsequenced - 1 },
		"two outside the order":      func(r *transportstore.Run) { r.FirstSequence, r.Bodies = transportstore.Unsequenced, make([][]byte, 2) },
		"a security header":          func(r *transportstore.Run) { r.Security = make([]byte, MaxSecurity+1) },
		"messages in a probe":        func(r *transportstore.Run) { r.Probe = &transportstore.Probe{} },
		"a number in a probe":        func(r *transportstore.Run) { r.Bodies, r.Probe = nil, &transportstore.Probe{Given: -1} },
		"too many messages":          func(r *transportstore.Run) { r.Bodies = make([][]byte, MaxMessages+1) },
	} {
		run := good
		spoil(&run)
		batch := transport.Batch{Speaker: transportstore.Speaker{Instance: parley.UUID{1}}, Runs: []transportstore.Run{run}}
		if _, err := EncodeBatch(batch); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	longest := good
	longest.ToService = strings.Repeat("語", MaxName)
	longest.FirstSequence = transportstore.Unsequenced
	if _, err := EncodeBatch(transport.Batch{Speaker: transportstore.Speaker{Instance: parley.UUID{1}}, Runs: []transportstore.Run{longest}}); err != nil {
		t.Errorf("what is just allowed: %s", err)
	}
}

func TestMalformedPayloadsAreRefused(t *testing.T) {
	t.Parallel()
	batch := func(spoil func(*pb.Batch)) []byte {
		message := &pb.Batch{
			Speaker: &pb.Speaker{Instance: make([]byte, 16), Epoch: 1},
			Names:   []string{"stock"},
			Runs:    []*pb.Run{{Conversation: bytes.Repeat([]byte{1}, 16), Lengths: []uint32{3}, Bodies: []byte{1, 2}, ToService: 1}},
		}
		message.Speaker.Instance[0] = 1
		spoil(message)
		payload, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		return payload
	}
	if _, err := DecodeBatch(batch(func(*pb.Batch) {})); err != nil {
		t.Fatalf("the batch that is spoilt: %s", err)
	}
	for name, payload := range map[string][]byte{
		"no speaker":                 batch(func(b *pb.Batch) { b.Speaker = nil }),
		"a short speaker":            batch(func(b *pb.Batch) { b.Speaker.Instance = b.GetSpeaker().GetInstance()[:15] }),
		"an epoch":                   batch(func(b *pb.Batch) { b.Speaker.Epoch = -1 }),
		"a short conversation":       batch(func(b *pb.Batch) { b.Runs[0].Conversation = []byte{1} }),
		"a name that is not there":   batch(func(b *pb.Batch) { b.Runs[0].Contract = 2 }),
		"a body that is cut off":     batch(func(b *pb.Batch) { b.Runs[0].Lengths = []uint32{4} }),
		"lengths without end":        batch(func(b *pb.Batch) { b.Runs[0].Lengths = []uint32{1<<32 - 1, 1<<32 - 1} }),
		"bytes after the last body":  batch(func(b *pb.Batch) { b.Runs[0].Lengths = []uint32{2} }),
		"a priority":                 batch(func(b *pb.Batch) { b.Runs[0].Priority = 1 << 16 }),
		"a time":                     batch(func(b *pb.Batch) { b.Runs[0].EndsAt = -1 }),
		"a time after the last year": batch(func(b *pb.Batch) { b.Runs[0].EnqueuedAt = lastTime + 1 }),
		"a negative size":            batch(func(b *pb.Batch) { b.Runs[0].Size = -1 }),
		"a broker":                   batch(func(b *pb.Batch) { b.Runs[0].ToBroker = []byte("stock") }),
		"cut off":                    batch(func(*pb.Batch) {})[:20],
		"another encoding":           batch(func(*pb.Batch) {}),
		"more runs than fit":         bytes.Repeat([]byte{4<<3 | 2, 0}, 1000),
	} {
		if name == "another encoding" {
			payload = bytes.Replace(payload, []byte("stock"), []byte("st\xffck"), 1)
		}
		if got, err := DecodeBatch(payload); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// A field that a later version adds is left alone, wherever it stands.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	t.Parallel()
	sent := transport.Batch{
		Passage: transport.Outset(),
		Speaker: transportstore.Speaker{Instance: parley.UUID{1}},
		Runs:    []transportstore.Run{{ConversationID: parley.UUID{2}, Bodies: [][]byte{{1}}}},
	}
	payload, err := EncodeBatch(sent)
	if err != nil {
		t.Fatal(err)
	}
	message := &pb.Batch{}
	if err := proto.Unmarshal(payload, message); err != nil {
		t.Fatal(err)
	}
	later := protowire.AppendBytes(protowire.AppendTag(nil, 1999, protowire.BytesType), []byte("from a later version"))
	message.ProtoReflect().SetUnknown(later)
	message.GetRuns()[0].ProtoReflect().SetUnknown(later)
	message.GetSpeaker().ProtoReflect().SetUnknown(later)
	if payload, err = proto.Marshal(message); err != nil {
		t.Fatal(err)
	}
	came, err := DecodeBatch(payload)
	if err != nil || !reflect.DeepEqual(came, sent) {
		t.Errorf("came %+v, %v", came, err)
	}
}

// An outcome that is not known is not taken for another one.
func TestAnOutcomeOfALaterVersionIsAnError(t *testing.T) {
	t.Parallel()
	payload, err := proto.Marshal(&pb.Results{Results: []*pb.Result{{Outcome: 99}}})
	if err != nil {
		t.Fatal(err)
	}
	if results, err := DecodeResults(payload, 1); err == nil {
		t.Errorf("results %+v", results)
	}
	if results, err := DecodeResults(nil, 1); err == nil {
		t.Errorf("no results for one run: %+v", results)
	}
}

func TestAFrameHoldsNoMoreThanItStates(t *testing.T) {
	t.Parallel()
	packed := Pack(pb.Kind_KIND_BATCH, 1, make([]byte, 100000), true)
	if packed.GetCompression() != pb.Compression_COMPRESSION_DEFLATE {
		t.Fatal("zeros were not compressed")
	}
	for name, spoil := range map[string]func(*pb.Frame){
		"less":               func(f *pb.Frame) { f.Size = 99999 },
		"more":               func(f *pb.Frame) { f.Size = 100001 },
		"more than possible": func(f *pb.Frame) { f.Size = 1 << 30 },
		"without end":        func(f *pb.Frame) { f.Size = 1<<64 - 1 },
		"cut off":            func(f *pb.Frame) { f.Payload = f.GetPayload()[:50] },
		"otherwise packed":   func(f *pb.Frame) { f.Compression = 9 },
	} {
		spoilt, _ := proto.Clone(packed).(*pb.Frame)
		spoil(spoilt)
		if payload, err := Unpack(spoilt, 1<<40); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %d bytes, %v", name, len(payload), err)
		}
	}
	if _, err := Unpack(packed, 99999); !errors.Is(err, ErrMalformed) {
		t.Errorf("longer than is taken: %v", err)
	}
}

func TestResultsAlwaysFitAnAnswer(t *testing.T) {
	t.Parallel()
	results := make([]transportstore.Result, MaxRuns)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range results {
		text := make([]rune, MaxText)
		for j := range text {
			text[j] = rune('a' + source.IntN(26))
		}
		results[i] = transportstore.Result{
			Outcome: transportstore.Refused, Next: 1 << 62, ErrorNumber: -8490, Description: string(text),
			Broker: parley.UUID{byte(i), byte(i >> 8), 1}, Epoch: 1 << 62, Security: make([]byte, MaxSecurity),
		}
	}
	payload, err := EncodeResults(results)
	if err != nil {
		t.Fatal(err)
	}
	if len(payload) > LargestAnswer {
		t.Errorf("%d bytes", len(payload))
	}
	came, err := DecodeResults(payload, MaxRuns)
	if err != nil || came[MaxRuns-1].Broker != results[MaxRuns-1].Broker {
		t.Errorf("came %v", err)
	}
}

// The decoder's allocations for nasty payloads are bounded by their length.
func TestDecodingAllocatesInProportion(t *testing.T) { // it measures
	for name, payload := range map[string][]byte{
		"empty runs":     bytes.Repeat([]byte{4<<3 | 2, 0}, 1<<20),
		"empty names":    bytes.Repeat([]byte{3<<3 | 2, 0}, 1<<20),
		"shortest runs":  bytes.Repeat(append([]byte{4<<3 | 2, 18, 1<<3 | 2, 16}, make([]byte, 16)...), 1<<17),
		"empty bodies":   protowire.AppendBytes([]byte{4<<3 | 2}, protowire.AppendBytes([]byte{5<<3 | 2}, bytes.Repeat([]byte{1}, 1<<20))),
		"endless length": {4<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
	} {
		const most = 16
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeBatch(payload)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: was taken", name)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(most*len(payload)+1<<16) {
			t.Errorf("%s: %d bytes made it allocate %d", name, len(payload), n)
		}
	}
}

func TestTimesAreClippedToWhatCanBeEncoded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sent, came time.Time }{
		{time.Time{}, time.Time{}},
		{time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), time.UnixMicro(1).UTC()},
		{time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), time.UnixMicro(lastTime).UTC()},
		{time.Date(2026, 1, 1, 0, 0, 0, 1999, time.UTC), time.Date(2026, 1, 1, 0, 0, 0, 1000, time.UTC)},
	} {
		came, err := decodeTime(encodeTime(c.sent))
		if err != nil || !came.Equal(c.came) {
			t.Errorf("%s became %s, %v; want %s", c.sent, came, err, c.came)
		}
	}
}
