package link

import (
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/broker/transport"
)

// listener makes sockets of what it accepts. Any host can open sockets and be silent, so each host may have so many, and so many whose
// handshake is under way. Of the latter there is a limit for all hosts together, too, and an end. Further sockets are closed at once, and
// cost no handshake.
type listener struct {
	net.Listener

	config  *Config
	most    int64 // sockets of all hosts
	onClose func(*socket)
	refused *refusals

	open, greeting               atomic.Int64
	openOfHosts, greetingOfHosts transport.HostCount
}

// refusals counts and logs the sockets that were closed before a Hello.
type refusals struct {
	total, late atomic.Int64
	lines       transport.LogLimit
	log         *slog.Logger
}

func (r *refusals) report(kind, host string) {
	if withheld, isAllowed := r.lines.Allow(kind, host, time.Now()); isAllowed {
		r.log.Warn("a connection was closed before it said who it is", "reason", kind, "remote", host, "withheld", withheld)
	}
}

// Why a socket is closed.
const (
	tooManySockets  = "there are enough connections"
	tooManyGreeting = "there are enough handshakes under way"
	tooManyOfHost   = "there are enough connections from its address"
	tooManyFromOne  = "there are enough handshakes under way from its address"
	tooLateToGreet  = "its handshake took too long"
)

func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := transport.HostOf(conn.RemoteAddr())
		reason, leave := l.enter(host)
		if reason != "" {
			l.refused.total.Add(1)
			l.refused.report(reason, host)
			_ = conn.Close()
			continue
		}
		s := newSocket(conn, l.config.DeadAfter)
		s.onClose = func(s *socket) {
			leave()
			l.onClose(s)
		}
		l.await(s, host)
		return s, nil
	}
}

// enter takes the places that a socket needs, or reports why there are none.
func (l *listener) enter(host string) (reason string, leave func()) {
	if l.open.Add(1) > l.most {
		l.open.Add(-1)
		return tooManySockets, nil
	}
	if !l.openOfHosts.Enter(host, l.config.SocketsPerHost) {
		l.open.Add(-1)
		return tooManyOfHost, nil
	}
	leave = func() {
		l.openOfHosts.Leave(host)
		l.open.Add(-1)
	}
	if l.greeting.Add(1) > int64(l.config.Handshakes) {
		l.greeting.Add(-1)
		leave()
		return tooManyGreeting, nil
	}
	if !l.greetingOfHosts.Enter(host, l.config.HandshakesPerHost) {
		l.greeting.Add(-1)
		leave()
		return tooManyFromOne, nil
	}
	return "", leave
}

// await closes a socket that does not identify itself in time, and counts its handshake until then.
func (l *listener) await(s *socket, host string) {
	s.onArrival = func() {
		l.greetingOfHosts.Leave(host)
		l.greeting.Add(-1)
	}
	time.AfterFunc(l.config.ConnectTimeout, func() {
		if s.sentHello.Load() || s.isDispatched.Load() || s.isClosed.Load() {
			return
		}
		l.refused.late.Add(1)
		l.refused.report(tooLateToGreet, host)
		_ = s.Close()
	})
}
