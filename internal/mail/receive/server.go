package receive

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/parley-broker/parley/internal/mail/spool"
)

// Server receives mail. Its fields are set before Run, and the configuration may be replaced later.
type Server struct {
	Accepter    Accepter
	Spool       *spool.Spool
	Log         *slog.Logger
	Credentials Credentials // nothing means that nobody can authenticate
	Directory   Directory   // nothing means that every recipient in an accepted domain is taken
	Governor    Governor    // nothing means no pressure
	Filters     []Filter
	Verifier    authenticityVerifier // nothing means that nothing is verified
	// Certificate chooses the certificate of a TLS handshake, by the name that was asked for. Nothing means that there is no TLS.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	ClientCAs   func(connector string) *tls.Config // nothing means the roots of the system; only ClientCAs of what it returns is used
	// PeerName gives the name of an address by DNS, or nothing. It is called when a message is received, once a connection.
	PeerName func(ctx context.Context, ip netip.Addr) string
	// Grace is how long a message that is under way may take when the server stops.
	Grace time.Duration

	configuration atomic.Pointer[Configuration]
	accounts      *accounts
	secret        []byte
	library       *smtp.Server
	wires         chan net.Conn
	mu            sync.Mutex
	open          map[*connection]struct{}
	wait          sync.WaitGroup
	counters      Counters
}

// Counters are what the server has counted since it was made.
type Counters struct {
	Connections, Refused, Messages, Bytes, Rejected, AuthFailures atomic.Int64
}

// Counters gives the counters.
func (s *Server) Counters() *Counters { return &s.counters }

// Configure validates a configuration, and uses it for the connections that come from now on. Bindings are those of Run.
func (s *Server) Configure(configuration *Configuration) error {
	if err := configuration.Validate(); err != nil {
		return err
	}
	s.configuration.Store(configuration)
	return nil
}

// Listen opens the listeners of all bindings.
func Listen(ctx context.Context, configuration *Configuration) (map[netip.AddrPort]net.Listener, error) {
	listeners := map[netip.AddrPort]net.Listener{}
	for _, connector := range configuration.Connectors {
		for _, binding := range connector.Bindings {
			if listeners[binding] != nil || connector.IsDisabled {
				continue
			}
			listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", binding.String())
			if err != nil {
				for _, opened := range listeners {
					err = errors.Join(err, opened.Close())
				}
				return nil, fmt.Errorf("listen for receive connector %q on %s: %w", connector.Name, binding, err)
			}
			listeners[binding] = listener
		}
	}
	return listeners, nil
}

// Run serves the listeners, by the binding of the configuration that each stands for, until the context is cancelled. Then idle connections
// are closed with 421, and messages under way have Grace to be taken. Configure comes first.
func (s *Server) Run(ctx context.Context, listeners map[netip.AddrPort]net.Listener) error {
	if s.configuration.Load() == nil {
		return errors.New("receiving mail needs a configuration: call Configure first")
	}
	s.accounts, s.open, s.wires = newAccounts(), map[*connection]struct{}{}, make(chan net.Conn)
	s.secret = make([]byte, 32)
	_, _ = rand.Read(s.secret) // never fails
	s.library = smtp.NewServer(smtp.BackendFunc(newLibrarySession))
	s.library.MaxLineLength, s.library.AllowInsecureAuth = 0, true
	s.library.EnableDSN, s.library.EnableSMTPUTF8, s.library.EnableBINARYMIME = true, true, true
	s.library.ErrorLog = libraryLog{s.Log}

	connectionsCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var loops sync.WaitGroup
	loops.Go(func() { _ = s.library.Serve(wireListener{s.wires}) })
	for binding, listener := range listeners {
		loops.Go(func() { s.acceptLoop(ctx, connectionsCtx, binding, listener) })
	}
	<-ctx.Done()
	for _, listener := range listeners {
		_ = listener.Close()
	}
	s.stopConnections(cancel)
	close(s.wires)
	loops.Wait()
	return nil
}

// stopConnections has idle connections end now, and the others within Grace.
func (s *Server) stopConnections(cancel context.CancelFunc) {
	s.mu.Lock()
	for c := range s.open {
		c.closing()
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { s.wait.Wait(); close(ended) }()
	grace := time.NewTimer(s.Grace)
	defer grace.Stop()
	select {
	case <-ended:
		return
	case <-grace.C:
	}
	cancel()
	s.mu.Lock()
	for c := range s.open {
		_ = c.socket.Close()
	}
	s.mu.Unlock()
	<-ended
}

func (s *Server) acceptLoop(ctx, connectionsCtx context.Context, binding netip.AddrPort, listener net.Listener) {
	for ctx.Err() == nil {
		socket, err := listener.Accept()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				s.Log.Error("accepting a connection failed", "binding", binding.String(), "error", err)
				select { // no more files, most likely
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
				}
				continue
			}
			return
		}
		s.wait.Go(func() { s.serve(connectionsCtx, ctx, binding, socket) })
	}
}

// serve admits a connection and serves it to its end.
func (s *Server) serve(ctx, untilStop context.Context, binding netip.AddrPort, socket net.Conn) {
	defer func() { _ = socket.Close() }()
	configuration := s.configuration.Load()
	remote, local := addrPort(socket.RemoteAddr()), addrPort(socket.LocalAddr())
	connector := configuration.match(binding, remote.Addr())
	if connector == nil {
		return // nobody listens to this peer
	}
	c := &connection{
		server: s, ctx: ctx, untilStop: untilStop, configuration: configuration, connector: connector, socket: socket, binding: binding,
		peer: remote, local: local, began: time.Now(),
	}
	if timeout := connector.Limits.ConnectionTimeout; timeout > 0 {
		c.deadline = c.began.Add(timeout)
	}
	if contains(connector.ProxyRanges, remote.Addr()) {
		if err := c.readProxyHeader(); err != nil {
			s.Log.Warn("a connection without the header of the PROXY protocol was closed", "peer", remote.String(), "error", err)
			return
		}
		if c.connector = configuration.match(binding, c.peer.Addr()); c.connector == nil {
			return
		}
	}
	c.source = sourceOf(c.peer.Addr())
	if refused := s.accounts.connect(c.connector, configuration.MaxConnections, c.source, c.began); refused != "" {
		s.counters.Refused.Add(1)
		_ = socket.SetDeadline(time.Now().Add(time.Second))
		_, _ = socket.Write([]byte("421 4.7.0 " + refused + ", try again later\r\n"))
		return
	}
	defer func() { s.accounts.disconnect(c.connector, c.source) }() // XCLIENT may have moved it
	s.counters.Connections.Add(1)
	s.mu.Lock()
	s.open[c] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.open, c)
		s.mu.Unlock()
	}()
	c.run()
}

func addrPort(address net.Addr) netip.AddrPort {
	if tcp, isTCP := address.(*net.TCPAddr); isTCP {
		ap := tcp.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
	}
	return netip.AddrPort{}
}

// wireListener hands wires to the library as if they were connections that it accepted.
type wireListener struct{ wires chan net.Conn }

func (l wireListener) Accept() (net.Conn, error) {
	if w, isOpen := <-l.wires; isOpen {
		return w, nil
	}
	return nil, io.EOF
}

func (l wireListener) Close() error   { return nil }
func (l wireListener) Addr() net.Addr { return &net.TCPAddr{} }

// newLibrarySession gives the library the session of a wire.
func newLibrarySession(conn *smtp.Conn) (smtp.Session, error) {
	w, isWire := conn.Conn().(*wire)
	if !isWire {
		return nil, NewReply(421, 0, 0, "This connection cannot be served")
	}
	return w.session, nil
}

// libraryLog has what the library logs in our log.
type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Printf(format string, v ...any) {
	l.log.Error("a mail session failed", "error", fmt.Sprintf(format, v...))
}

func (l libraryLog) Println(v ...any) {
	l.log.Error("a mail session failed", "error", fmt.Sprint(v...))
}

const levelProtocol = slog.LevelInfo

func textAttribute(line []byte) slog.Attr {
	return slog.String("line", printableLine(string(line[:min(len(line), 200)])))
}
