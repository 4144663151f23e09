package link

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
)

// Counters count the events of a [Server] since it began, by peers and by others.
type Counters struct {
	// Accepted connections sent a Hello and were taken; Rejected ones ended before that: wrong certificates, no TLS, not this protocol.
	Accepted, Rejected int64
	// Refused sockets were closed at once, because there were enough, of their host or of all; Late ones did not identify themselves in time.
	Refused, Late int64
	// Corrupted connections were closed because the peer did not keep to the protocol: malformed or oversized frames, a window
	// exceeded. RefusedVersions had no version in common with this end, RefusedPeers came when there were enough.
	Corrupted, RefusedVersions, RefusedPeers int64
}

// Server takes what peers send and hands it to a transport.Deliverer.
type Server struct {
	pb.UnimplementedBrokerServer

	deliverer transport.Deliverer
	config    Config
	grpc      *grpc.Server

	mu         sync.Mutex
	receptions map[*reception]struct{}
	past       Totals // of connections that are over
	isClosing  bool
	goodbye    chan struct{} // closed when it takes nothing new
	closed     chan struct{} // closed when nothing is to be delivered any more

	accepted, rejected, corrupted, refusedVersions, refusedPeers atomic.Int64

	refusals refusals
}

// NewServer makes a server that hands what comes to deliverer.
func NewServer(deliverer transport.Deliverer, config Config) (*Server, error) {
	config, err := config.completed()
	if err != nil {
		return nil, err
	}
	s := &Server{
		deliverer:  deliverer,
		config:     config,
		receptions: map[*reception]struct{}{},
		goodbye:    make(chan struct{}),
		closed:     make(chan struct{}),
	}
	s.refusals.log = config.Log
	s.grpc = grpc.NewServer(
		grpc.Creds(acceptor{security: config.Security, timeout: config.ConnectTimeout}),
		grpc.ConnectionTimeout(config.ConnectTimeout),
		grpc.MaxConcurrentStreams(1),
		grpc.MaxRecvMsgSize(int(config.LargestPayload+wire.FrameOverhead)),
		grpc.MaxSendMsgSize(1<<30),
		grpc.MaxHeaderListSize(1<<14),
		grpc.InitialWindowSize(httpWindow),
		grpc.InitialConnWindowSize(httpWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time:              config.DeadAfter / 3,
			Timeout:           config.DeadAfter,
			MaxConnectionIdle: config.ConnectTimeout, // without a stream
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingLeast / 2, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
	)
	pb.RegisterBrokerServer(s.grpc, s)
	return s, nil
}

// Serve accepts connections until Shutdown or Close, and closes the listener. It may be called for several listeners.
func (s *Server) Serve(l net.Listener) error {
	// Some are still in their handshake or on their way out.
	socketsMost := int64(2*s.config.Peers + 16)
	err := s.grpc.Serve(&listener{Listener: l, config: &s.config, most: socketsMost, refused: &s.refusals, onClose: func(conn *socket) {
		if !conn.sentHello.Load() && !conn.isDispatched.Load() {
			s.rejected.Add(1)
			s.config.Log.Debug("connection rejected", "address", conn.RemoteAddr())
		}
	}})
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Shutdown takes nothing new, answers what is there, and closes; when ctx ends before, it closes at once.
func (s *Server) Shutdown(ctx context.Context) {
	s.mu.Lock()
	if !s.isClosing {
		s.isClosing = true
		close(s.goodbye)
	}
	s.mu.Unlock()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.grpc.GracefulStop()
	}()
	select {
	case <-finished:
	case <-ctx.Done():
	}
	s.Close()
	<-finished
}

// Close ends all connections at once and waits for what they had begun.
func (s *Server) Close() {
	s.mu.Lock()
	s.isClosing = true
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	s.mu.Unlock()
	s.grpc.Stop()
}

// Connections lists the connections that were accepted.
func (s *Server) Connections() []ConnectionState {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make([]ConnectionState, 0, len(s.receptions))
	for r := range s.receptions {
		states = append(states, r.state())
	}
	return states
}

// Totals count what all connections have carried so far.
func (s *Server) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	totals := s.past
	for r := range s.receptions {
		totals.add(r.traffic.totals(r.socket))
	}
	return totals
}

// Disconnect ends the connections that match: those of a peer whose key was revoked, say.
func (s *Server) Disconnect(matches func(ConnectionState) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.receptions {
		if matches(r.state()) {
			r.fail(errDisconnected)
		}
	}
}

// Counters returns what has happened so far.
func (s *Server) Counters() Counters {
	return Counters{
		Accepted:        s.accepted.Load(),
		Rejected:        s.rejected.Load(),
		Refused:         s.refusals.total.Load(),
		Late:            s.refusals.late.Load(),
		Corrupted:       s.corrupted.Load(),
		RefusedVersions: s.refusedVersions.Load(),
		RefusedPeers:    s.refusedPeers.Load(),
	}
}

// enter takes a peer in, and gives all of them their part of the memory.
func (s *Server) enter(r *reception) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosing || len(s.receptions) >= s.config.Peers {
		return false
	}
	s.receptions[r] = struct{}{}
	s.share(r)
	return true
}

// leave forgets a peer, if it was taken in. Until then what it has sent still takes memory.
func (s *Server) leave(r *reception) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.receptions[r]; !found {
		return
	}
	delete(s.receptions, r)
	s.past.add(r.traffic.totals(r.socket))
	s.share(nil)
}

// share grants each peer its part. The one that enters reads it in the Hello.
func (s *Server) share(entering *reception) {
	if len(s.receptions) == 0 {
		return
	}
	window := max(min(s.config.Window, s.config.Memory/int64(len(s.receptions))), smallestWindow)
	for r := range s.receptions {
		r.grant(window, r != entering)
	}
}
