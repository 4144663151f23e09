package link

import (
	"errors"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// foreignServer is another implementation of the protocol: it sends its own Hello and answers each frame as it likes.
type foreignServer struct {
	pb.UnimplementedBrokerServer

	hello  *pb.Hello
	answer func(question *pb.Frame) []*pb.Frame
}

func (s *foreignServer) Exchange(stream grpc.BidiStreamingServer[pb.Frame, pb.Frame]) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	payload, err := proto.Marshal(s.hello)
	if err != nil {
		return err
	}
	if err := stream.Send(&pb.Frame{Kind: pb.Kind_KIND_HELLO, Payload: payload}); err != nil {
		return err
	}
	for {
		question, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, frame := range s.answer(question) {
			if err := stream.Send(frame); err != nil {
				return err
			}
		}
	}
}

// meet starts a foreign server and returns a link to it.
func meet(t *testing.T, s *foreignServer) *Link {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	pb.RegisterBrokerServer(server, s)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return connect(t, listener.Addr().String(), plaintext())
}

// results answers a batch of one run, well.
func results(id uint64) *pb.Frame {
	payload, err := wire.EncodeResults([]transportstore.Result{{Outcome: transportstore.Accepted, Next: 1, Broker: parley.UUID{0xB0}, Epoch: 7}})
	if err != nil {
		panic(err)
	}
	return &pb.Frame{Kind: pb.Kind_KIND_RESULTS, Id: id, Payload: payload}
}

func framed(kind pb.Kind, id uint64, message proto.Message) *pb.Frame {
	payload, err := proto.Marshal(message)
	if err != nil {
		panic(err)
	}
	return &pb.Frame{Kind: kind, Id: id, Payload: payload}
}

func TestOldAndNewVersionsUnderstandEachOther(t *testing.T) {
	t.Parallel()
	good := func(question *pb.Frame) []*pb.Frame { return []*pb.Frame{results(question.GetId())} }
	for name, s := range map[string]*foreignServer{
		// The first version there was: no features, no limits stated.
		"older": {hello: &pb.Hello{LowestVersion: 1, HighestVersion: 1}, answer: good},
		"newer": {
			hello: &pb.Hello{LowestVersion: 1, HighestVersion: 9, Features: []string{"telepathy", "deflate"}, Window: 1 << 40, LargestPayload: 1 << 40},
			answer: func(question *pb.Frame) []*pb.Frame {
				answer := results(question.GetId())
				answer.ProtoReflect().SetUnknown([]byte{0xfa, 0x7f, 1, 'x'})
				return []*pb.Frame{{Kind: 99, Id: 7, Payload: []byte("of a later version")}, answer}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := meet(t, s)
			for range 3 {
				deliver(t, l, batch(run(1, 0, "a")))
			}
			if state := only(l); state.Version != 1 {
				t.Errorf("version %d", state.Version)
			}
		})
	}
}

func TestAServerThatIsTooNewOrTooOldIsRefused(t *testing.T) {
	t.Parallel()
	for name, hello := range map[string]*pb.Hello{
		"too new":        {LowestVersion: wire.HighestVersion + 1, HighestVersion: wire.HighestVersion + 5},
		"without number": {},
	} {
		_, err := meet(t, &foreignServer{hello: hello}).Deliver(t.Context(), batch(run(1, 0, "a")))
		wantFailure(t, err, transport.FailureOfProtocol)
		if isNew := hello.GetLowestVersion() > 0; errors.Is(err, wire.ErrVersion) != isNew {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Anything that a server sends that does not answer the request is an error, and never a result.
func TestAFalseAnswerIsAnError(t *testing.T) {
	t.Parallel()
	twice := func(answers ...*pb.Result) *pb.Results { return &pb.Results{Results: answers} }
	accepted := &pb.Result{Outcome: pb.Outcome_OUTCOME_ACCEPTED, Next: 1}
	for name, answer := range map[string]func(id uint64) []*pb.Frame{
		"to another question": func(id uint64) []*pb.Frame { return []*pb.Frame{results(id + 1)} },
		"of another kind": func(id uint64) []*pb.Frame {
			return []*pb.Frame{framed(pb.Kind_KIND_STORED, id, &pb.Stored{Stored: 1})}
		},
		"of the other role": func(id uint64) []*pb.Frame { return []*pb.Frame{{Kind: pb.Kind_KIND_BATCH, Id: id}} },
		"garbage": func(id uint64) []*pb.Frame {
			return []*pb.Frame{{Kind: pb.Kind_KIND_RESULTS, Id: id, Payload: []byte("\xff")}}
		},
		"nothing": func(id uint64) []*pb.Frame { return []*pb.Frame{{Kind: pb.Kind_KIND_RESULTS, Id: id}} },
		"one too many": func(id uint64) []*pb.Frame {
			return []*pb.Frame{framed(pb.Kind_KIND_RESULTS, id, twice(accepted, accepted))}
		},
		"no outcome": func(id uint64) []*pb.Frame { return []*pb.Frame{framed(pb.Kind_KIND_RESULTS, id, twice(&pb.Result{}))} },
		"a later outcome": func(id uint64) []*pb.Frame {
			return []*pb.Frame{framed(pb.Kind_KIND_RESULTS, id, twice(&pb.Result{Outcome: 42}))}
		},
		"a negative number": func(id uint64) []*pb.Frame {
			return []*pb.Frame{framed(pb.Kind_KIND_RESULTS, id, twice(&pb.Result{Outcome: 1, Next: -1}))}
		},
		"a bad grant": func(uint64) []*pb.Frame { return []*pb.Frame{{Kind: pb.Kind_KIND_GRANT, Payload: []byte("\xff")}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := meet(t, &foreignServer{
				hello:  &pb.Hello{LowestVersion: 1, HighestVersion: 1},
				answer: func(question *pb.Frame) []*pb.Frame { return answer(question.GetId()) },
			})
			got, err := l.Deliver(t.Context(), batch(run(1, 0, "a")))
			if got != nil {
				t.Errorf("results %+v", got)
			}
			wantFailure(t, err, transport.FailureOfProtocol)
		})
	}
}

func TestAnAnswerCountsOnce(t *testing.T) {
	t.Parallel()
	l := meet(t, &foreignServer{
		hello: &pb.Hello{LowestVersion: 1, HighestVersion: 1},
		answer: func(question *pb.Frame) []*pb.Frame {
			return []*pb.Frame{results(question.GetId()), results(question.GetId())}
		},
	})
	deliver(t, l, batch(run(1, 0, "a")))
	eventually(t, "the connection is given up", func() bool { return len(l.Connections()) == 0 })
}

func TestAFragmentOfWhichMoreIsStoredThanThereIsIsAnError(t *testing.T) {
	t.Parallel()
	l := meet(t, &foreignServer{
		hello: &pb.Hello{LowestVersion: 1, HighestVersion: 1},
		answer: func(question *pb.Frame) []*pb.Frame {
			return []*pb.Frame{framed(pb.Kind_KIND_STORED, question.GetId(), &pb.Stored{Stored: 101})}
		},
	})
	_, err := l.DeliverFragment(t.Context(), fragment(0, 10, 100), transport.Outset())
	wantFailure(t, err, transport.FailureOfProtocol)
}
