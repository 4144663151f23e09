package link

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
)

// session is one connection that this end has dialled, from the peer's Hello to its end.
type session struct {
	id     parley.UUID
	host   string
	socket *socket
	client *grpc.ClientConn
	stream grpc.BidiStreamingClient[pb.Frame, pb.Frame]
	cancel context.CancelFunc // ends the stream

	authentication, algorithm, identity string

	hello    wire.Hello // the peer's
	agreed   wire.Agreement
	largest  int64 // payload, in bytes
	compress bool
	loggedIn time.Time

	gauge   gauge
	outbox  *outbox
	traffic traffic

	mu        sync.Mutex
	pending   map[uint64]*question
	nextID    uint64
	active    int // calls that use the session
	isClosing bool
	idle      *time.Timer
	idleAfter time.Duration
	patience  time.Duration // with a question that is not answered
	failure   error
	done      chan struct{} // closed when failure is there
	running   sync.WaitGroup
}

// start begins to carry questions and answers.
func (s *session) start() {
	s.idle = time.AfterFunc(s.idleAfter, s.closeIdle)
	s.running.Go(s.write)
	s.running.Go(s.read)
}

// begin reports whether the session may be used; then end must follow.
func (s *session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosing || s.failure != nil {
		return false
	}
	s.active++
	s.idle.Stop()
	return true
}

func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	s.rest()
}

// rest waits for the end of the session when nobody uses it.
func (s *session) rest() {
	switch {
	case s.active > 0 || len(s.pending) > 0 || s.failure != nil:
	case s.isClosing:
		s.idle.Reset(0)
	default:
		s.idle.Reset(s.idleAfter)
	}
}

// closeIdle ends a session that nobody uses.
func (s *session) closeIdle() {
	s.mu.Lock()
	isUsed := s.active > 0 || len(s.pending) > 0
	if !isUsed {
		s.isClosing = true
	}
	s.mu.Unlock()
	if !isUsed {
		s.fail(transport.Fail(transport.ClosedForIdleness, "the connection to %s was not used", s.host))
	}
}

// retire lets nobody new use the session, and ends it when its questions are answered.
func (s *session) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isClosing = true
	s.rest()
}

// fail ends the session; all that wait get the error.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return
	}
	s.failure = err
	s.idle.Stop()
	close(s.done)
	s.cancel()
}

// closed waits until nothing of the session is left.
func (s *session) closed() {
	<-s.done
	s.running.Wait()
	s.client.Close()
	s.socket.Close()
}

func (s *session) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// post sends a question as soon as there is room for it.
func (s *session) post(ctx context.Context, q *question) error {
	if !s.gauge.acquire(ctx, q.class, q.cost, s.done) {
		if err := s.reason(); err != nil {
			return err
		}
		s.doubt()
		return transport.Fail(transport.FailureToSend, "%s takes no more for now: %w", s.host, ctx.Err())
	}
	s.outbox.put(q)
	return nil
}

// answer waits for the answer to a question that was posted.
func (s *session) answer(ctx context.Context, q *question) (*pb.Frame, error) {
	select {
	case frame := <-q.answered:
		return frame, nil
	case <-s.done:
	case <-ctx.Done():
	}
	select {
	case frame := <-q.answered:
		return frame, nil
	default:
	}
	q.abandoned.Store(true)
	if err := s.reason(); err != nil {
		return nil, err
	}
	s.doubt()
	return nil, transport.Fail(transport.FailureToReceive, "no answer from %s yet: %w", s.host, ctx.Err())
}

// doubt ends a session whose peer lives, as its pings show, but leaves a question without even a failure for an answer. A caller that
// gives up waiting has reason to ask. The next call connects anew, perhaps with the mirror.
func (s *session) doubt() {
	s.mu.Lock()
	var oldest time.Time
	for _, q := range s.pending {
		if oldest.IsZero() || q.sent.Before(oldest) {
			oldest = q.sent
		}
	}
	s.mu.Unlock()
	if !oldest.IsZero() && time.Since(oldest) > s.patience {
		s.fail(transport.Fail(transport.FailureToReceive, "%s has not answered for %s", s.host, s.patience))
	}
}

// write puts questions on the stream.
func (s *session) write() {
	for {
		q := s.outbox.take()
		if q == nil {
			select {
			case <-s.outbox.wake:
				continue
			case <-s.done:
				return
			}
		}
		if q.abandoned.Load() {
			s.gauge.release(q.class, q.cost)
			continue
		}
		s.mu.Lock()
		s.nextID++
		q.frame.Id, q.sent = s.nextID, time.Now()
		s.pending[q.frame.GetId()] = q
		s.mu.Unlock()
		if err := s.stream.Send(q.frame); err != nil {
			// Read returns the error that has broken the stream; it comes at once.
			if !errors.Is(err, io.EOF) {
				s.fail(transport.Fail(transport.FailureToSend, "send to %s: %w", s.host, err))
			}
			<-s.done
			return
		}
		s.traffic.sends.Add(1)
		s.traffic.fragmentsSent.Add(q.messages)
	}
}

// read takes answers from the stream.
func (s *session) read() {
	for {
		frame, err := s.stream.Recv()
		if err != nil {
			s.fail(s.broken(err))
			return
		}
		s.traffic.receives.Add(1)
		if err := s.take(frame); err != nil {
			s.fail(transport.Fail(transport.FailureOfProtocol, "%s does not keep to the protocol: %w", s.host, err))
			return
		}
	}
}

// take processes a frame of the peer. Kinds that a newer peer may send are left alone.
func (s *session) take(frame *pb.Frame) error {
	switch frame.GetKind() {
	case pb.Kind_KIND_RESULTS, pb.Kind_KIND_STORED, pb.Kind_KIND_FAILURE:
		s.mu.Lock()
		q := s.pending[frame.GetId()]
		delete(s.pending, frame.GetId())
		s.rest()
		s.mu.Unlock()
		if q == nil {
			return errAnswer
		}
		q.answered <- frame
		s.gauge.release(q.class, q.cost)
		return nil
	case pb.Kind_KIND_GRANT:
		payload, err := wire.Unpack(frame, wire.LargestHello)
		if err != nil {
			return err
		}
		window, err := wire.DecodeGrant(payload)
		if err != nil {
			return err
		}
		s.gauge.grant(window)
		return nil
	case pb.Kind_KIND_GOODBYE:
		s.retire()
		return nil
	case pb.Kind_KIND_HELLO, pb.Kind_KIND_BATCH, pb.Kind_KIND_FRAGMENT:
		return errRole
	default:
		return nil
	}
}

var (
	errAnswer = errors.New("an answer to what was not asked, or was answered before")
	errRole   = errors.New("a frame of the other role")
)

// broken reports why the stream has ended.
func (s *session) broken(err error) error {
	received := status.Convert(err)
	switch {
	case errors.Is(err, io.EOF):
		return transport.Fail(transport.ClosedByFarEnd, "%s has closed the connection", s.host)
	case received.Code() == codes.InvalidArgument, received.Code() == codes.ResourceExhausted, received.Code() == codes.FailedPrecondition,
		received.Code() == codes.Internal:
		return transport.Fail(transport.FailureOfProtocol, "%s: %s", s.host, received.Message())
	default:
		return transport.Fail(transport.FailureToReceive, "the connection to %s is broken: %s", s.host, received.Message())
	}
}

func (s *session) state() ConnectionState {
	state := ConnectionState{
		ConnectionID:         s.id,
		State:                LoggedIn,
		LoginTime:            s.loggedIn,
		AuthenticationMethod: s.authentication,
		EncryptionAlgorithm:  s.algorithm,
		Identity:             s.identity,
		Brokers:              s.hello.Brokers,
		Software:             s.hello.Software,
		Version:              s.agreed.Version,
	}
	s.traffic.fill(&state, s.socket)
	state.Address = s.host
	state.OpenBytes, state.Window, state.IsSendFlowControlled = s.gauge.state()
	s.mu.Lock()
	defer s.mu.Unlock()
	state.SendsPosted = len(s.pending)
	if s.failure != nil {
		state.State = Closed
	}
	return state
}
