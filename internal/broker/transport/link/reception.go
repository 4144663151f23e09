package link

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
)

// reception is one connection that this end has accepted.
type reception struct {
	id     parley.UUID
	server *Server
	socket *socket
	stream grpc.BidiStreamingServer[pb.Frame, pb.Frame]

	authentication, algorithm, identity, name string

	hello    wire.Hello
	agreed   wire.Agreement
	compress bool
	loggedIn time.Time
	traffic  traffic
	isOver   atomic.Bool // but for what is still being delivered

	// slots bound what is delivered at once, in each class.
	slots [classes]chan struct{}

	// deliver calls a function with the context of deliveries.
	deliver func(func(context.Context))

	sending sync.Mutex // one frame after the other

	mu         sync.Mutex
	lastID     uint64
	open       int   // questions
	openBytes  int64 // what they count in the window
	window     int64
	windowMost int64         // the largest that was granted: the peer may not have received a smaller grant yet
	regrant    chan struct{} // has room for one
	failure    error
	failed     chan struct{} // closed when failure is there
	handlers   sync.WaitGroup
}

// The ends of a reception.
var (
	errDisconnected = status.Error(codes.PermissionDenied, "disconnected")
	errEnoughPeers  = status.Error(codes.Unavailable, "enough peers are connected, or the server stops")
	errNoHello      = status.Error(codes.DeadlineExceeded, "no hello in time")
	errStopped      = status.Error(codes.Unavailable, "the server has stopped")
)

// Exchange serves one connection of a peer. gRPC calls it.
func (s *Server) Exchange(stream grpc.BidiStreamingServer[pb.Frame, pb.Frame]) error {
	from, ok := peer.FromContext(stream.Context())
	if !ok {
		return status.Error(codes.Internal, "no peer")
	}
	info, ok := from.AuthInfo.(accepted)
	if !ok {
		return status.Error(codes.Internal, "no socket")
	}
	r := &reception{
		id:      newID(),
		server:  s,
		socket:  info.socket,
		stream:  stream,
		regrant: make(chan struct{}, 1),
		failed:  make(chan struct{}),
	}
	r.slots[forBatches] = make(chan struct{}, s.config.Parallel)
	r.slots[forFragments] = make(chan struct{}, s.config.ParallelFragments)
	r.authentication, r.algorithm, r.identity = encryption(info.tls)
	r.name = vouchedName(info.tls)

	// A batch that has begun is not given up when the connection breaks: it is under way in the database, and the sender learns of it when
	// it asks again. Only the end of the server cuts it short.
	deliver, giveUp := context.WithCancel(context.WithoutCancel(stream.Context()))
	defer giveUp()
	r.deliver = func(f func(context.Context)) { f(deliver) }
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		select {
		case <-s.closed:
			giveUp()
		case <-finished:
		}
	}()

	ctx, cancel := context.WithCancel(stream.Context())
	frames := make(chan *pb.Frame)
	broken := make(chan error, 1)
	go receive(ctx, stream, frames, broken)
	err := r.serve(ctx, frames, broken)
	s.count(err)
	r.isOver.Store(true)
	cancel()
	r.handlers.Wait()
	s.leave(r)
	transport.ConnectionGone.In(s.config.Log).Info("accepted connection closed", "address", info.socket.RemoteAddr().String(),
		"connection_id", r.id, "peer", r.identity, "reason", reasonOf(err))
	return err
}

// receive reads frames until the stream ends.
func receive(ctx context.Context, stream grpc.BidiStreamingServer[pb.Frame, pb.Frame], frames chan<- *pb.Frame, broken chan<- error) {
	for {
		frame, err := stream.Recv()
		if err != nil {
			broken <- err
			return
		}
		select {
		case frames <- frame:
		case <-ctx.Done():
			return
		}
	}
}

// serve greets the peer and takes its frames. The error is nil when the peer has finished.
func (r *reception) serve(ctx context.Context, frames <-chan *pb.Frame, broken <-chan error) error {
	timeout := time.NewTimer(r.server.config.ConnectTimeout)
	defer timeout.Stop()
	select {
	case frame := <-frames:
		if err := r.greet(frame); err != nil {
			r.refused(err)
			return err
		}
	case err := <-broken:
		// The peer has gone, or the listener has closed a socket that stayed silent: its timer began a little earlier.
		r.refused(errNoHello)
		return ended(err)
	case <-timeout.C:
		r.refused(errNoHello)
		return errNoHello
	case <-r.server.closed:
		return errStopped
	}
	goodbye := r.server.goodbye
	for {
		select {
		case frame := <-frames:
			if err := r.take(ctx, frame); err != nil {
				return err
			}
		case err := <-broken:
			return ended(err)
		case <-r.regrant:
			if err := r.sendGrant(); err != nil {
				return err
			}
		case <-goodbye:
			goodbye = nil
			if err := r.sendGoodbye(); err != nil {
				return err
			}
		case <-r.failed:
			return r.failure
		case <-r.server.closed:
			return errStopped
		}
	}
}

// ended distinguishes a peer that has finished from one that was lost.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// malformed reports to the peer that it does not keep to the protocol.
func malformed(err error) error { return status.Error(codes.InvalidArgument, err.Error()) }

// greet answers the peer's Hello.
func (r *reception) greet(frame *pb.Frame) error {
	r.traffic.receives.Add(1)
	if frame.GetKind() != pb.Kind_KIND_HELLO {
		return status.Error(codes.InvalidArgument, "hello comes first")
	}
	payload, err := wire.Unpack(frame, wire.LargestHello)
	if err != nil {
		return malformed(err)
	}
	if r.hello, err = wire.DecodeHello(payload); err != nil {
		return malformed(err)
	}
	ours := r.server.config.hello()
	agreed, disagreement := wire.Agree(ours, r.hello)
	r.agreed, r.loggedIn = agreed, time.Now()
	r.compress = r.server.config.Compress && agreed.Has(wire.FeatureDeflate)
	if disagreement == nil && !r.server.enter(r) {
		return errEnoughPeers
	}
	r.mu.Lock()
	ours.Window = r.window
	r.mu.Unlock()
	// A peer of another version is answered with those there are.
	if payload, err = wire.EncodeHello(ours); err == nil {
		err = r.send(pb.Kind_KIND_HELLO, 0, payload)
	}
	switch {
	case disagreement != nil:
		return status.Error(codes.FailedPrecondition, disagreement.Error())
	case err != nil:
		return err
	}
	r.socket.sentHello.Store(true)
	r.socket.arrive()
	r.server.accepted.Add(1)
	log, address := r.server.config.Log, r.socket.RemoteAddr().String()
	transport.ConnectionMade.In(log).Info("connection accepted", "address", address, "connection_id", r.id, "peer", r.identity,
		"software", r.hello.Software)
	transport.LoginSuccess.In(log).Debug("logged in", "address", address, "peer", r.identity, "authentication", r.authentication)
	return nil
}

// refused logs why a peer, whose key is trusted, was not taken all the same.
func (r *reception) refused(err error) {
	event := transport.LoginProtocolError
	if code := status.Code(err); code == codes.InvalidArgument || code == codes.ResourceExhausted {
		event = transport.MessageFormatError
	} else if code == codes.FailedPrecondition {
		event = transport.NegotiateFailure
	}
	event.In(r.server.config.Log).Info("no login", "address", r.socket.RemoteAddr().String(), "peer", r.identity, "reason", reasonOf(err))
}

// take processes a frame of the peer. Kinds that a newer peer may send are left alone.
func (r *reception) take(ctx context.Context, frame *pb.Frame) error {
	r.traffic.receives.Add(1)
	c := forBatches
	switch frame.GetKind() {
	case pb.Kind_KIND_BATCH:
	case pb.Kind_KIND_FRAGMENT:
		c = forFragments
	case pb.Kind_KIND_HELLO, pb.Kind_KIND_RESULTS, pb.Kind_KIND_STORED, pb.Kind_KIND_FAILURE, pb.Kind_KIND_GRANT:
		return malformed(errRole)
	default:
		return nil
	}
	cost := costOf(wire.Length(frame))
	if err := r.charge(frame.GetId(), cost); err != nil {
		return malformed(err)
	}
	r.handlers.Go(func() {
		defer r.credit(cost)
		select {
		case r.slots[c] <- struct{}{}:
			defer func() { <-r.slots[c] }()
		case <-ctx.Done():
			return
		}
		r.deliver(func(ctx context.Context) {
			if err := r.answer(ctx, c, frame); err != nil {
				r.fail(err)
			}
		})
	})
	return nil
}

var (
	errNumber = errors.New("the numbers of frames must grow")
	errWindow = errors.New("more is open than the window allows")
	errLength = errors.New("the frame is longer than this end takes")
)

// charge counts a question in the window.
func (r *reception) charge(id uint64, cost int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case id <= r.lastID:
		return errNumber
	case cost > costOf(r.server.config.LargestPayload):
		return errLength
	case r.open > 0 && r.openBytes+cost > r.windowMost:
		return errWindow
	}
	r.lastID = id
	r.open++
	r.openBytes += cost
	return nil
}

func (r *reception) credit(cost int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
	r.openBytes -= cost
}

// fail ends the reception.
func (r *reception) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		r.failure = err
		close(r.failed)
	}
}
