package trust

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/transport"
)

const (
	// handshakeTimeout bounds how long an unknown peer may take to identify itself.
	handshakeTimeout = 10 * time.Second
	// lingering and lingeredMax bound how long a peer that was refused is listened to, and how much is read of it.
	lingering   = time.Second
	lingeredMax = 64 << 10
	// guestsMax bounds how many unknown peers are served at once.
	guestsMax = 16
	// guestsOfHostMax bounds how many of them may come from one address.
	guestsOfHostMax = 4
)

var errTooManyGuests = errors.New("enough of those who are not trusted are being served, of this address or altogether")

// link is a connection whose other end is trusted, as far as is known.
type link struct {
	net.Conn
	trust   *Trust
	shown   []*x509.Certificate
	address string // "" for one that was accepted
	own     identity.Fingerprint
}

// Read returns what the other side has refused: it does so after its handshake, when for this side the connection is open.
func (l *link) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if err != nil {
		err = explain(err, l.own)
	}
	return n, err
}

func (l *link) Close() error {
	l.trust.mu.Lock()
	delete(l.trust.links, l)
	l.trust.mu.Unlock()
	return l.Conn.Close()
}

// review closes the links of those that are trusted no more.
func (t *Trust) review() {
	t.mu.Lock()
	links := make([]*link, 0, len(t.links))
	for l := range t.links {
		links = append(links, l)
	}
	t.mu.Unlock()
	for _, l := range links {
		err := t.judge(t.serving(), l.shown, l.address)
		if _, isRefused := errors.AsType[*RefusedError](err); isRefused {
			t.logger.Warn("a link is closed: its other end is not trusted any more",
				"remote", l.RemoteAddr().String(), "key", identity.FingerprintOf(l.shown[0]).String(), "reason", err)
			_ = l.Close()
		}
	}
}

// Links is how many links are open.
func (t *Trust) Links() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.links)
}

// Connect opens a link to address, host:port, over a connection. The link is closed when its other end is trusted no more.
func (t *Trust) Connect(ctx context.Context, raw net.Conn, address string) (net.Conn, tls.ConnectionState, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn := tls.Client(raw, t.ClientConfig(address))
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, tls.ConnectionState{}, explain(err, t.ownFingerprint())
	}
	return t.keep(conn, normal(address))
}

// Accept accepts a link over a connection, or serves an unknown peer in a goroutine of its own; then the error is
// [credentials.ErrConnDispatched].
func (t *Trust) Accept(ctx context.Context, raw net.Conn) (net.Conn, tls.ConnectionState, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn := tls.Server(raw, t.server)
	if err := conn.HandshakeContext(ctx); err != nil {
		err = explain(err, t.ownFingerprint())
		t.logRefusal(raw.RemoteAddr(), err)
		linger(raw)
		_ = raw.Close()
		return nil, tls.ConnectionState{}, err
	}
	if t.unknownPeers != nil && conn.ConnectionState().NegotiatedProtocol == t.unknownPeers.Protocol() {
		t.receive(conn)
		return nil, tls.ConnectionState{}, credentials.ErrConnDispatched
	}
	secured, state, err := t.keep(conn, "")
	if err == nil && t.isAuthorizedAlone(ctx, state.PeerCertificates) {
		// This is how the layers above learn of it.
		state.VerifiedChains = [][]*x509.Certificate{state.PeerCertificates}
	}
	return secured, state, err
}

// linger takes what the other side goes on to send until it closes, which it does once it has read the reason, for a moment at most. To
// close with bytes unread would reset the connection, and who writes into it then learns of that instead of the reason.
func linger(raw net.Conn) {
	if raw.SetReadDeadline(time.Now().Add(lingering)) == nil {
		_, _ = io.CopyN(io.Discard, raw, lingeredMax)
	}
}

// isAuthorizedAlone marks a peer that is in no list, and was accepted because an authority vouches for it.
func (t *Trust) isAuthorizedAlone(ctx context.Context, shown []*x509.Certificate) bool {
	if t.authorities == nil || len(shown) == 0 {
		return false
	}
	l, err := t.snapshot(ctx)
	if err != nil {
		return false
	}
	now := time.Now()
	known, _ := l.trusts(identity.FingerprintOf(shown[0]), "", now)
	return !known && t.authorized(shown, "", now)
}

// receive serves an unknown peer in a goroutine of its own, when there is a place.
func (t *Trust) receive(conn *tls.Conn) {
	host := transport.HostOf(conn.RemoteAddr())
	if !t.guestsOf.Enter(host, guestsOfHostMax) {
		_ = conn.Close()
		t.logRefusal(conn.RemoteAddr(), errTooManyGuests)
		return
	}
	select {
	case t.places <- struct{}{}:
	default:
		t.guestsOf.Leave(host)
		_ = conn.Close()
		t.logRefusal(conn.RemoteAddr(), errTooManyGuests)
		return
	}
	t.mu.Lock()
	isOver := t.serving().Err() != nil
	if !isOver {
		t.guests.Add(1) // under the lock, so that Run waits for it
	}
	t.mu.Unlock()
	if isOver {
		t.guestsOf.Leave(host)
		_ = conn.Close()
		return
	}
	go func() {
		defer t.guestsOf.Leave(host)
		defer t.guests.Done()
		defer func() { <-t.places }()
		defer func() { _ = conn.Close() }()
		end := context.AfterFunc(t.serving(), func() { _ = conn.Close() })
		defer end()
		t.unknownPeers.Serve(t.serving(), conn)
	}()
}

// keep makes a link of a connection whose handshake is done.
func (t *Trust) keep(conn *tls.Conn, address string) (net.Conn, tls.ConnectionState, error) {
	state := conn.ConnectionState()
	if state.NegotiatedProtocol != LinkProtocol || len(state.PeerCertificates) == 0 {
		_ = conn.Close()
		return nil, state, errors.New("the other side does not speak the protocol of links")
	}
	l := &link{Conn: conn, trust: t, shown: state.PeerCertificates, address: address, own: t.ownFingerprint()}
	t.mu.Lock()
	t.links[l] = true
	t.mu.Unlock()
	return l, state, nil
}

// logRefusal logs why a peer was sent away: a line a minute for each number and host. Others could vary the rest of the text.
func (t *Trust) logRefusal(remote net.Addr, err error) {
	kind, event := "handshake", transport.AuthenticationFailure
	if r, isRefused := errors.AsType[*RefusedError](err); isRefused {
		kind, event = strconv.Itoa(r.Number), r.LoginEvent()
	}
	if withheld, isAllowed := t.refused.Allow(kind, transport.HostOf(remote), time.Now()); isAllowed {
		event.In(t.logger).Warn("a connection was refused", "remote", remote.String(), "reason", err, "withheld", withheld)
	}
}

func (t *Trust) ownFingerprint() identity.Fingerprint {
	c, err := t.source.Certificate()
	if err != nil {
		return identity.Fingerprint{}
	}
	return c.Fingerprint
}
