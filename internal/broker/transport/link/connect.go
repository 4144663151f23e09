package link

import (
	"context"
	"errors"
	"slices"

	"github.com/parley-broker/parley/internal/broker/transport"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// use returns the session, made if there is none, until its end is called.
func (l *Link) use(ctx context.Context) (*session, error) {
	for {
		l.mu.Lock()
		if l.isClosed {
			l.mu.Unlock()
			return nil, errClosed
		}
		if l.current != nil && l.current.begin() {
			s := l.current
			l.mu.Unlock()
			return s, nil
		}
		l.current = nil
		a := l.attempt
		if a == nil {
			a = &attempt{done: make(chan struct{})}
			l.attempt = a
			l.begin(func(ctx context.Context) { l.connect(ctx, a) })
		}
		l.mu.Unlock()
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, transport.Fail(transport.FailureToConnect, "connect to %s: %w", l.hosts[0], ctx.Err())
		}
		if a.err != nil {
			return nil, a.err
		}
		if a.session.begin() {
			return a.session, nil
		}
	}
}

// connect makes a session for all that wait for the attempt.
func (l *Link) connect(ctx context.Context, a *attempt) {
	l.mu.Lock()
	preferred := l.preferred
	l.mu.Unlock()
	s, host, err := l.dialAny(ctx, preferred)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempt = nil
	log := l.config.Log
	if err == nil && l.isClosed {
		s.fail(errClosed)
		err = errClosed
	}
	if s != nil {
		l.live = append(l.live, s)
		l.begin(func(context.Context) { l.bury(s) })
	}
	if err == nil {
		l.current, l.preferred = s, host
		transport.Connected.In(log).Info("connected", "address", s.host, "connection_id", s.id, "peer", s.identity,
			"software", s.hello.Software)
		transport.LoginSuccess.In(log).Debug("logged in", "address", s.host, "peer", s.identity, "authentication", s.authentication)
		if host != preferred {
			transport.MirroredRouteChanged.In(log).Info("a mirrored route goes to the other host", "address", s.host,
				"before", l.hosts[preferred])
		}
	} else {
		transport.ConnectFailed.In(log).Info("no connection", "address", l.hosts[preferred], "reason", err)
		if event, isLogin := loginFailure(err); isLogin {
			event.In(log).Info("no login", "address", l.hosts[preferred], "reason", err)
		}
	}
	a.session, a.err = s, err
	close(a.done)
}

// bury clears up when a session is over.
func (l *Link) bury(s *session) {
	s.closed()
	l.mu.Lock()
	l.live = slices.DeleteFunc(l.live, func(other *session) bool { return other == s })
	l.past.add(s.traffic.totals(s.socket))
	if l.current == s {
		l.current = nil
	}
	l.mu.Unlock()
	eventOfEnd(s.reason()).In(l.config.Log).Info("connection closed", "address", s.host, "connection_id", s.id, "reason", s.reason())
}

// eventOfEnd reports how a connection has ended.
func eventOfEnd(reason error) transport.TraceEvent {
	if failure := (*transport.TransmissionError)(nil); errors.As(reason, &failure) {
		switch failure.Number {
		case transport.FailureToSend:
			return transport.SendIOError
		case transport.FailureToReceive:
			return transport.ReceiveIOError
		}
	}
	return transport.ConnectionGone
}

// loginFailure reports whether a connection has failed because the two ends did not come to know each other, and how.
func loginFailure(err error) (event transport.TraceEvent, isLogin bool) {
	failure := (*transport.TransmissionError)(nil)
	if !errors.As(err, &failure) {
		return event, false
	}
	switch failure.Number {
	case transport.FailureToAuthenticate:
		var refusal interface{ LoginEvent() transport.TraceEvent }
		if errors.As(err, &refusal) {
			return refusal.LoginEvent(), true
		}
		return transport.AuthenticationFailure, true
	case transport.FailureOfProtocol:
		return transport.LoginProtocolError, true
	}
	return event, false
}

// dialAny tries the hosts of the address, beginning with the preferred one. A server that serves no broker, as the one of a standby
// does, is used only when the other does not serve any either.
func (l *Link) dialAny(ctx context.Context, preferred int) (found *session, host int, err error) {
	var failures []error
	for i := range l.hosts {
		candidate := (preferred + i) % len(l.hosts)
		transport.Connecting.In(l.config.Log).Debug("connecting", "address", l.hosts[candidate])
		s, err := dial(ctx, l.hosts[candidate], &l.config)
		switch {
		case err != nil:
			failures = append(failures, err)
		case len(s.hello.Brokers) > 0 || len(l.hosts) == 1:
			if found != nil {
				l.discard(found)
			}
			return s, candidate, nil
		case found == nil:
			found, host = s, candidate
		default:
			l.discard(s)
		}
	}
	if found != nil {
		return found, host, nil
	}
	if len(failures) == 1 {
		return nil, 0, failures[0]
	}
	return nil, 0, transport.Fail(transport.FailureToConnect, "%w", errors.Join(failures...))
}

func (l *Link) discard(s *session) {
	s.fail(transport.Fail(transport.ClosedForIdleness, "the mirror of %s is used", s.host))
	s.closed()
}

// consider tries the mirror next time when this server knows none of what it was sent: it has handed over, perhaps.
func (l *Link) consider(s *session, results []transportstore.Result) {
	if len(l.hosts) == 1 || slices.ContainsFunc(results, func(r transportstore.Result) bool {
		return r.Outcome != transportstore.Unroutable
	}) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == s {
		l.preferred = (l.preferred + 1) % len(l.hosts)
		s.retire()
	}
}
