package trust_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/credentials"

	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/trust"
	"github.com/parley-broker/parley/parleytest"
)

// waiting serves unknown peers by letting them wait, unless it is closed.
type waiting struct {
	came     chan net.Addr
	isClosed bool
}

func (w waiting) Protocol() string { return "waiting" }

func (w waiting) IsOpen(context.Context, net.Addr) bool { return !w.isClosed }

func (w waiting) Serve(_ context.Context, conn *tls.Conn) {
	w.came <- conn.RemoteAddr()
	_, _ = conn.Read(make([]byte, 1))
}

// dialUnknown opens a connection as an unknown peer, from an address of this machine, and lets a broker answer it.
func dialUnknown(t *testing.T, b *broker, from, protocol string) (*tls.Conn, error) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	answered := make(chan error, 1)
	go func() {
		raw, err := listener.Accept()
		if err == nil {
			_, _, err = b.trust.Accept(t.Context(), raw)
		}
		answered <- err
	}()
	raw, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	conn := tls.Client(raw, &tls.Config{
		InsecureSkipVerify: true, NextProtos: []string{protocol},
		Certificates: []tls.Certificate{*certificate(t, identity.Config{Name: "unknown"}).TLS()},
	})
	if conn.HandshakeContext(t.Context()) == nil && protocol == trust.LinkProtocol {
		// A broker that is not let in reads why, and closes.
		_, _ = conn.Read(make([]byte, 1))
		_ = raw.Close()
	}
	return conn, parleytest.Receive(t, answered, "the answer to an unknown peer")
}

// The places for unknown peers are few. One address takes four of them, and leaves them when its connections end.
func TestUnknownPeersOfOneHostTakeAFewPlaces(t *testing.T) {
	t.Parallel()
	guests := waiting{came: make(chan net.Addr, 100)}
	b := newBroker(t, "b", func(c *trust.Config) { c.UnknownPeers = guests })
	b.run()
	dialUnknownAndWait := func(from string) *tls.Conn {
		t.Helper()
		conn, err := dialUnknown(t, b, from, "waiting")
		if !errors.Is(err, credentials.ErrConnDispatched) {
			t.Fatalf("%s: %v", from, err)
		}
		return conn
	}
	var first *tls.Conn
	for range 4 {
		first = dialUnknownAndWait("127.0.0.1")
		parleytest.Receive(t, guests.came, "the unknown peer")
	}
	for range 3 {
		conn, closed := dialUnknownAndWait("127.0.0.1"), make(chan error, 1)
		go func() {
			_, err := conn.Read(make([]byte, 1))
			closed <- err
		}()
		select {
		case err := <-closed:
			t.Logf("closed: %v", err)
		case <-guests.came:
			t.Fatal("a fifth one of one address was let in")
		}
	}
	dialUnknownAndWait("127.0.0.2")
	parleytest.Receive(t, guests.came, "the unknown peer")
	if n := strings.Count(b.log.String(), "enough of those who are not trusted"); n != 1 {
		t.Errorf("the log has %d lines", n)
	}
	_ = first.Close()
	// The place is free when the broker has noticed.
	for len(guests.came) == 0 && t.Context().Err() == nil {
		dialUnknownAndWait("127.0.0.1")
	}
}

// An unknown peer may show another key each time, and fill no log with that.
func TestLogHasOneLineForUnknownPeersOfOneHost(t *testing.T) {
	t.Parallel()
	b := newBroker(t, "b")
	for range 5 {
		_, err := dialUnknown(t, b, "127.0.0.1", trust.LinkProtocol)
		requireRefusal(t, err, trust.Unknown)
	}
	if n := strings.Count(b.log.String(), "a connection was refused"); n != 1 {
		t.Errorf("the log has %d lines:\n%s", n, b.log)
	}
}

// Requests for links are judged as ever while unknown peers are served, and these are served while a pairing is open.
func TestUnknownPeersChangeNothingForLinks(t *testing.T) {
	t.Parallel()
	for name, isClosed := range map[string]bool{"open": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guests := waiting{came: make(chan net.Addr, 100), isClosed: isClosed}
			a, b := newBroker(t, "a"), newBroker(t, "b", func(c *trust.Config) { c.UnknownPeers = guests })
			b.run()
			a.trusts(b)
			b.trusts(a)
			m := a.meet(b)
			m.requireOpen(t)
			_, err := dialUnknown(t, b, "127.0.0.1", trust.LinkProtocol)
			requireRefusal(t, err, trust.Unknown)
			if _, err = dialUnknown(t, b, "127.0.0.1", "waiting"); errors.Is(err, credentials.ErrConnDispatched) == isClosed {
				t.Errorf("an unknown peer was let in: %v, want %v (%v)", isClosed, !isClosed, err)
			}
		})
	}
}
