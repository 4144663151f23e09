package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
)

// pingLeast is how often gRPC lets the dialling end ping at most.
const pingLeast = 10 * time.Second

// dial makes a session with one server: socket, TLS, stream, Hello.
func dial(ctx context.Context, host string, config *Config) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, config.ConnectTimeout)
	defer cancel()
	conn, err := (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: false}}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, connectFailure(host, err)
	}
	s := &session{
		id:        newID(),
		host:      host,
		socket:    newSocket(conn, config.DeadAfter),
		outbox:    newOutbox(),
		pending:   map[uint64]*question{},
		idleAfter: config.IdleAfter,
		patience:  2 * config.DeliverTimeout,
		done:      make(chan struct{}),
	}
	if err := s.open(ctx, config); err != nil {
		s.socket.Close()
		return nil, err
	}
	s.loggedIn = time.Now()
	s.start()
	return s, nil
}

func connectFailure(host string, err error) error {
	if failed := (*net.DNSError)(nil); errors.As(err, &failed) {
		return transport.Fail(transport.FailureToResolve, "find %s: %w", host, err)
	}
	return transport.Fail(transport.FailureToConnect, "connect to %s: %w", host, err)
}

// open makes TLS, the stream and the agreement.
func (s *session) open(ctx context.Context, config *Config) error {
	secured, err := s.secure(ctx, config)
	if err != nil {
		return transport.Fail(transport.FailureToAuthenticate, "connect to %s: %w", s.host, err)
	}
	s.client, err = grpc.NewClient("passthrough:///"+s.host, clientOptions(config, secured)...)
	if err != nil {
		return transport.Fail(transport.FailureToConnect, "connect to %s: %w", s.host, err)
	}
	// The stream outlives the dialling, but not a dialling that has failed or taken too long.
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	defer context.AfterFunc(ctx, cancel)()
	if err := s.greet(streaming, config); err != nil {
		cancel()
		s.client.Close()
		return s.unopened(ctx, config, err)
	}
	return nil
}

// unopened reports why a connection did not come about. With TLS 1.3 a server that refuses the certificate of this end does so after the
// handshake, as this end sees it, and its reason may be lost on the way.
func (s *session) unopened(ctx context.Context, config *Config, err error) error {
	failure := (*transport.TransmissionError)(nil)
	switch {
	case ctx.Err() != nil:
		return transport.Fail(transport.FailureToConnect, "connect to %s: %w", s.host, ctx.Err())
	case config.Security != nil && errors.As(err, &failure) && failure.Number == transport.FailureToReceive:
		return transport.Fail(transport.FailureToAuthenticate, "%w, as a server does that does not let this one in", failure.Err)
	default:
		return err
	}
}

func (s *session) secure(ctx context.Context, config *Config) (net.Conn, error) {
	if config.Security == nil {
		s.authentication, s.algorithm, s.identity = encryption(nil)
		return s.socket, nil
	}
	secured, state, err := config.Security.Connect(ctx, s.socket, s.host)
	if err != nil {
		return nil, err
	}
	if state.NegotiatedProtocol != http2 || len(state.PeerCertificates) == 0 {
		return nil, errors.New("the server does not speak HTTP/2, or gave no certificate")
	}
	s.authentication, s.algorithm, s.identity = encryption(&state)
	return secured, nil
}

// clientOptions uses the connection that is there: a second one is never made behind the session's back.
func clientOptions(config *Config, conn net.Conn) []grpc.DialOption {
	var isTaken atomic.Bool
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if isTaken.Swap(true) {
				return nil, errors.New("the connection is lost")
			}
			return conn, nil
		}),
		grpc.WithNoProxy(),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:                max(pingLeast, config.DeadAfter/3),
			Timeout:             config.DeadAfter,
			PermitWithoutStream: true,
		}),
		grpc.WithInitialWindowSize(httpWindow),
		grpc.WithInitialConnWindowSize(httpWindow),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(wire.LargestAnswer+wire.FrameOverhead),
			grpc.MaxCallSendMsgSize(1<<30)),
	}
}

// httpWindow is how many bytes HTTP/2 lets be on the way before the stream's reader has taken them. It is below the window of the
// protocol, and enough for a gigabit over 30 milliseconds.
const httpWindow = 4 << 20

// greet exchanges Hello.
func (s *session) greet(ctx context.Context, config *Config) (err error) {
	if s.stream, err = pb.NewBrokerClient(s.client).Exchange(ctx); err != nil {
		return s.broken(err)
	}
	ours := config.hello()
	payload, err := wire.EncodeHello(ours)
	if err != nil {
		return fmt.Errorf("say hello: %w", err)
	}
	if err := s.stream.Send(wire.Pack(pb.Kind_KIND_HELLO, 0, payload, false)); err != nil {
		if _, err := s.stream.Recv(); err != nil { // which has the reason
			return s.broken(err)
		}
		return s.broken(err)
	}
	frame, err := s.stream.Recv()
	if err != nil {
		return s.broken(err)
	}
	s.traffic.sends.Add(1)
	s.traffic.receives.Add(1)
	if frame.GetKind() != pb.Kind_KIND_HELLO {
		return transport.Fail(transport.FailureOfProtocol, "%s does not say hello", s.host)
	}
	if payload, err = wire.Unpack(frame, wire.LargestHello); err == nil {
		s.hello, err = wire.DecodeHello(payload)
	}
	if err == nil {
		s.agreed, err = wire.Agree(ours, s.hello)
	}
	if err != nil {
		return transport.Fail(transport.FailureOfProtocol, "%s: %w", s.host, err)
	}
	s.gauge.window = max(s.hello.Window, smallestWindow)
	s.largest = min(s.hello.LargestPayload, s.gauge.window-wire.FrameOverhead)
	s.compress = config.Compress && s.agreed.Has(wire.FeatureDeflate)
	return nil
}
