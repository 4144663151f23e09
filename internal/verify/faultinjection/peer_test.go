package faultinjection

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/link"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// target is a transport.Deliverer that counts what comes. It accepts everything.
type target struct {
	mu      sync.Mutex
	batches []transport.Batch
	hold    chan struct{} // nil, or closed when answers may go
}

func (d *target) Deliver(ctx context.Context, batch transport.Batch) ([]transportstore.Result, error) {
	d.mu.Lock()
	d.batches = append(d.batches, batch)
	d.mu.Unlock()
	if d.hold != nil {
		select {
		case <-d.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	results := make([]transportstore.Result, len(batch.Runs))
	for i, run := range batch.Runs {
		results[i] = transportstore.Result{Outcome: transportstore.Accepted, Next: run.FirstSequence + 1}
	}
	return results, nil
}

func (d *target) DeliverFragment(_ context.Context, fragment transportstore.Fragment, _ transport.Passage) (int64, error) {
	return fragment.Offset + int64(len(fragment.Data)), nil
}

func (d *target) deliveries() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.batches)
}

func serve(t *testing.T, d transport.Deliverer, config link.Config) (*link.Server, string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := link.NewServer(d, config)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return server, listener.Addr().String()
}

// patience is how long a connection of a test may last: one that was to be closed fails the test then.
const patience = time.Minute

func dial(t *testing.T, address string) *Peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	peer, err := Dial(ctx, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(peer.Close)
	return peer
}

func hello() wire.Hello { return wire.Hello{Lowest: 1, Highest: 1, Software: "intruder"} }

func greet(t *testing.T, peer *Peer) wire.Hello {
	t.Helper()
	theirs, err := peer.Hello(hello())
	if err != nil {
		t.Fatal(err)
	}
	return theirs
}

func batchFrame(t *testing.T, id uint64, bodies ...[]byte) *pb.Frame {
	t.Helper()
	payload, err := wire.EncodeBatch(transport.Batch{
		Speaker: transportstore.Speaker{Instance: parley.UUID{1}},
		Runs:    []transportstore.Run{{ConversationID: parley.UUID{2}, Bodies: bodies}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return wire.Pack(pb.Kind_KIND_BATCH, id, payload, false)
}

// wantClosed reads until the server closes the stream, and asks how.
func wantClosed(t *testing.T, peer *Peer, want codes.Code, text string) {
	t.Helper()
	for {
		if _, err := peer.Receive(); err != nil {
			if received := status.Convert(err); received.Code() != want || !strings.Contains(received.Message(), text) {
				t.Errorf("closed with %q, want %s: %q", err, want, text)
			}
			return
		}
	}
}

// counted waits until a server has noticed.
func counted(t *testing.T, holds func() bool) {
	t.Helper()
	deadline, tick := time.NewTimer(patience), time.NewTicker(5*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("it is never counted")
		}
	}
}

func TestAPeerThatDoesNotKeepToTheProtocolIsClosedAndCounted(t *testing.T) {
	t.Parallel()
	speaks := func(t *testing.T, peer *Peer, frames ...*pb.Frame) {
		t.Helper()
		for _, frame := range frames {
			if err := peer.Send(frame); err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := map[string]struct {
		speak func(t *testing.T, peer *Peer)
		code  codes.Code
		text  string
	}{
		"a batch before hello": {
			func(t *testing.T, peer *Peer) { t.Helper(); speaks(t, peer, batchFrame(t, 1, nil)) },
			codes.InvalidArgument, "hello comes first",
		},
		"garbage for a hello": {func(t *testing.T, peer *Peer) {
			t.Helper()
			speaks(t, peer, &pb.Frame{Kind: pb.Kind_KIND_HELLO, Payload: []byte("garbage")})
		}, codes.InvalidArgument, "malformed frame"},
		"hello twice": {func(t *testing.T, peer *Peer) {
			t.Helper()
			greet(t, peer)
			speaks(t, peer, &pb.Frame{Kind: pb.Kind_KIND_HELLO})
		}, codes.InvalidArgument, "other role"},
		"an answer that was not asked for": {func(t *testing.T, peer *Peer) {
			t.Helper()
			greet(t, peer)
			speaks(t, peer, &pb.Frame{Kind: pb.Kind_KIND_RESULTS, Id: 1})
		}, codes.InvalidArgument, "other role"},
		"garbage for a frame": {func(t *testing.T, peer *Peer) {
			t.Helper()
			greet(t, peer)
			if err := peer.SendBytes([]byte("\xff\xff\xff garbage")); err != nil {
				t.Fatal(err)
			}
		}, codes.Internal, "unmarshal"},
		"a batch that is cut off": {func(t *testing.T, peer *Peer) {
			t.Helper()
			greet(t, peer)
			frame := batchFrame(t, 1, []byte("body"))
			frame.Payload = frame.GetPayload()[:len(frame.GetPayload())-3]
			speaks(t, peer, frame)
		}, codes.InvalidArgument, "malformed frame"},
		"a number again": {func(t *testing.T, peer *Peer) {
			t.Helper()
			greet(t, peer)
			speaks(t, peer, batchFrame(t, 5, nil), batchFrame(t, 5, nil))
		}, codes.InvalidArgument, "must grow"},
		"a number gone back": {func(t *testing.T, peer *Peer) {
			t.Helper()
			greet(t, peer)
			speaks(t, peer, batchFrame(t, 5, nil), batchFrame(t, 4, nil))
		}, codes.InvalidArgument, "must grow"},
		"a frame longer than gRPC takes": {func(t *testing.T, peer *Peer) {
			t.Helper()
			greet(t, peer)
			speaks(t, peer, &pb.Frame{Kind: pb.Kind_KIND_BATCH, Id: 1, Payload: make([]byte, wire.LargestPayload+2*wire.FrameOverhead)})
		}, codes.ResourceExhausted, "larger than max"},
		"a frame longer than it says": {func(t *testing.T, peer *Peer) {
			t.Helper()
			greet(t, peer)
			frame := wire.Pack(pb.Kind_KIND_BATCH, 1, make([]byte, 2*wire.LargestPayload), true)
			speaks(t, peer, frame)
		}, codes.InvalidArgument, "longer than"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &target{}
			server, address := serve(t, d, link.Config{Plaintext: true})
			peer := dial(t, address)
			c.speak(t, peer)
			wantClosed(t, peer, c.code, c.text)
			counted(t, func() bool { return server.Counters().Corrupted == 1 })

			// Others are served as before.
			l, err := link.New(address, link.Config{Plaintext: true})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			good := transport.Batch{
				Speaker: transportstore.Speaker{Instance: parley.UUID{1}},
				Runs:    []transportstore.Run{{ConversationID: parley.UUID{2}, Bodies: [][]byte{nil}}},
			}
			if _, err := l.Deliver(t.Context(), good); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAPeerThatExceedsItsWindowIsClosed(t *testing.T) {
	t.Parallel()
	d := &target{hold: make(chan struct{})}
	server, address := serve(t, d, link.Config{Plaintext: true})
	peer := dial(t, address)
	window := greet(t, peer).Window
	body := make([]byte, 3<<20)
	sent := int64(0)
	for id := uint64(1); sent <= window; id++ {
		frame := batchFrame(t, id, body)
		sent += int64(len(frame.GetPayload())) + wire.FrameOverhead
		if err := peer.Send(frame); err != nil {
			break // it was noticed before all was sent
		}
	}
	counted(t, func() bool { return server.Counters().Corrupted == 1 })
	close(d.hold)
	wantClosed(t, peer, codes.InvalidArgument, "window")
}

func TestBytesThatAreNoProtocolAtAllAreRejected(t *testing.T) {
	t.Parallel()
	server, address := serve(t, &target{}, link.Config{Plaintext: true, ConnectTimeout: time.Second})
	for i, text := range []string{"GET / HTTP/1.1\r\n\r\n", strings.Repeat("\x00", 1000), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		counted(t, func() bool { return server.Counters().Rejected == int64(i)+1 })
		conn.Close()
	}
}

// Extensions that a later version sends are left alone: kinds of frames, fields, features.
func TestAPeerOfALaterVersionIsUnderstood(t *testing.T) {
	t.Parallel()
	_, address := serve(t, &target{}, link.Config{Plaintext: true})
	peer := dial(t, address)
	theirs, err := peer.Hello(wire.Hello{Lowest: 1, Highest: 9, Features: []string{"telepathy"}, Software: "parley 9.0"})
	if err != nil || theirs.Highest != wire.HighestVersion {
		t.Fatalf("received %+v, %v", theirs, err)
	}
	frame := batchFrame(t, 2, nil)
	text, err := proto.Marshal(frame)
	if err != nil {
		t.Fatal(err)
	}
	text = protowire.AppendBytes(protowire.AppendTag(text, 777, protowire.BytesType), []byte("later"))
	if err := errors.Join(peer.Send(&pb.Frame{Kind: 99, Id: 1, Payload: []byte("later")}), peer.SendBytes(text)); err != nil {
		t.Fatal(err)
	}
	answer, err := peer.Receive()
	if err != nil || answer.GetKind() != pb.Kind_KIND_RESULTS || answer.GetId() != 2 {
		t.Errorf("answer %v, %v", answer, err)
	}
}

func TestAPeerThatIsTooNewReceivesTheVersionsSpokenHere(t *testing.T) {
	t.Parallel()
	d := &target{}
	server, address := serve(t, d, link.Config{Plaintext: true})
	peer := dial(t, address)
	ours := wire.Hello{Lowest: 8, Highest: 9, Software: "parley 9.0"}
	theirs, err := peer.Hello(ours)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Agree(ours, theirs); !errors.Is(err, wire.ErrVersion) {
		t.Errorf("agreed: %v", err)
	}
	wantClosed(t, peer, codes.FailedPrecondition, "no common version")
	counted(t, func() bool { return server.Counters().RefusedVersions == 1 })
	if d.deliveries() != 0 {
		t.Error("it was accepted")
	}
}
