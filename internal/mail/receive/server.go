package receive

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/parley-broker/parley/internal/mail/message"
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
	Verifier    originVerifier // nothing means that nothing is verified
	// Certificate chooses the certificate of a TLS handshake, by the name that was asked for. Nothing means that there is no TLS.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	ClientCAs   func(connector string) *tls.Config // nothing means the roots of the system; only ClientCAs of what it returns is used
	// PeerName gives the name of an address by DNS, or nothing. It is called when a message is received, once a connection.
	PeerName func(ctx context.Context, ip netip.Addr) string
	// IsOwnName reports whether a host that Received fields name, in lower case, is one of the organization. Nothing means that none is
	// but the connector itself.
	IsOwnName func(name string) bool
	// Discarded learns of messages that were taken and that a filter wants dropped, with their size; nothing means that nobody does.
	Discarded func(ctx context.Context, envelope message.Envelope, size int64)
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
	listening     listening
}

// Counters are the counts of the server since it was made.
type Counters struct {
	Connections, Messages, Bytes, Rejected, AuthFailures atomic.Int64
	// Encrypted are connections on which TLS has begun, Authenticated those on which a user has, and Tarpitted refusals that were delayed.
	Encrypted, Authenticated, Tarpitted atomic.Int64
	refused                             refusals
}

// Counters gives the counters.
func (s *Server) Counters() *Counters { return &s.counters }

// Configure validates a configuration, and uses it for the connections that come from now on. Bindings are used by Rebind.
func (s *Server) Configure(configuration *Configuration) error {
	if err := configuration.Validate(); err != nil {
		return err
	}
	if s.configuration.Swap(configuration) == nil {
		s.accounts = newAccounts()
	}
	return nil
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
	if limit := s.accounts.connect(c.connector, configuration.Node, c.source, c.began); limit != noLimit {
		s.refuse(socket, limit)
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

// libraryLog writes the log of the library to our log.
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
