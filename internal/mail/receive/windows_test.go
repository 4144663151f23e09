package receive_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-broker/parley/internal/mail/receive"
	"github.com/parley-broker/parley/internal/mail/spool"
)

// piped is a listener without a network, so that time passes as a test wants.
type piped struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *piped) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *piped) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *piped) Addr() net.Addr { return net.TCPAddrFromAddrPort(binding) }

// addressed is one end of a pipe, with addresses.
type addressed struct{ net.Conn }

func (addressed) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(binding) }
func (addressed) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:50000"))
}

// startPiped starts a server in the bubble of a test. dial connects to it, and stop stops it and says how long that took.
func startPiped(t *testing.T, connector *receive.Connector) (dial func() *client, stop func() time.Duration) {
	t.Helper()
	server := &receive.Server{
		Accepter: &store{}, Spool: spool.New(t.TempDir(), 64<<10, 1<<20), Log: slog.New(slog.DiscardHandler), Credentials: credentials{"ann": "secret"},
		Certificate: certificate(t, "mx.example.com").get, Grace: patience,
	}
	if err := server.Configure(&receive.Configuration{Connectors: []*receive.Connector{connector}, AcceptedDomains: []string{"example.com"}}); err != nil {
		t.Fatal(err)
	}
	listener := &piped{conns: make(chan net.Conn), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = server.Run(ctx, map[netip.AddrPort]net.Listener{binding: listener}) })
	dial = func() *client {
		ours, theirs := net.Pipe()
		listener.conns <- addressed{theirs}
		return &client{t: t, conn: ours, in: bufio.NewReader(ours)}
	}
	return dial, func() time.Duration {
		began := time.Now()
		cancel()
		running.Wait()
		return time.Since(began)
	}
}

// pass lets time pass in the bubble of a test.
func pass(t testing.TB, duration time.Duration) {
	t.Helper()
	select {
	case <-time.After(duration):
	case <-t.Context().Done():
	}
}

// every sends a text again and again until the connection ends.
func (c *client) every(interval time.Duration, text string) {
	go func() {
		for {
			pass(c.t, interval)
			if _, err := io.WriteString(c.conn, text); err != nil {
				return
			}
		}
	}()
}

// How long a peer may take, by default and as the connector says: for a command, for the next piece of a message, and for all of it; and for
// what comes before that, whatever the connector says.
func TestPeerIsWaitedForAsLongAsItMayTake(t *testing.T) {
	t.Parallel()
	const timeout = "421 4.4.2 Timeout"
	greeted := func(c *client) {
		c.expect("220 ")
		c.say("EHLO client.example.net", "250")
	}
	short := func(c *receive.Connector) {
		c.Limits.InactivityTimeout, c.Limits.ConnectionTimeout = time.Minute, 3*time.Minute
	}
	for _, c := range []struct {
		name   string
		change func(*receive.Connector)
		speak  func(*client)
		want   string
		at     time.Duration
	}{
		{name: "it says nothing", speak: greeted, want: timeout, at: 5 * time.Minute},
		{name: "it says nothing, for another time", change: short, speak: greeted, want: timeout, at: time.Minute},
		{
			name: "it never ends its command", want: timeout, at: 5 * time.Minute,
			speak: func(c *client) { greeted(c); c.every(time.Minute-time.Second, "x") },
		},
		{
			name: "it says nothing in its message", want: timeout, at: 5 * time.Minute,
			speak: func(c *client) { greeted(c); c.begin(); c.send("Subject: x\r\n") },
		},
		{
			name: "it goes on with its message", want: timeout, at: 10 * time.Minute,
			speak: func(c *client) { greeted(c); c.begin(); c.every(5*time.Minute-time.Second, "x\r\n") },
		},
		{
			name: "it goes on with its message, for another time", change: short, want: timeout, at: 3 * time.Minute,
			speak: func(c *client) { greeted(c); c.begin(); c.every(time.Minute-time.Second, "x\r\n") },
		},
		{
			name: "it never ends its connection", want: timeout, at: 10 * time.Minute,
			speak: func(c *client) {
				greeted(c)
				for range 9 {
					pass(c.t, time.Minute)
					c.say("NOOP", "250")
				}
			},
		},
		{name: "it does not begin TLS", change: func(c *receive.Connector) { c.Implicit = true }, want: "closed", at: 30 * time.Second},
		{
			name: "it does not go on with TLS", want: "closed", at: 30 * time.Second,
			speak: func(c *client) { greeted(c); c.say("STARTTLS", "220") },
		},
		{
			name: "it says not for whom it is a proxy", want: "closed", at: 10 * time.Second,
			change: func(c *receive.Connector) { c.ProxyRanges = prefixes("192.0.2.0/24") },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				connector := internet()
				if c.change != nil {
					c.change(connector)
				}
				dial, stop := startPiped(t, connector)
				began, peer := time.Now(), dial()
				if c.speak != nil {
					c.speak(peer)
				}
				if got := peer.reply(); !strings.HasPrefix(got, c.want) || time.Since(began) != c.at {
					t.Errorf("after %v: %q, want %q after %v", time.Since(began), got, c.want, c.at)
				}
				peer.expect("closed")
				_ = peer.conn.Close()
				stop()
			})
		})
	}
}

// A peer that takes no reply is not waited for longer than one that says nothing; one that is refused, for a second.
func TestPeerThatTakesNoReplyIsLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most int
		want time.Duration
	}{"of its greeting": {0, 5 * time.Minute}, "of the refusal of its connection": {1, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			connector := internet()
			connector.Limits.ConnectionsPerSource = c.most
			dial, stop := startPiped(t, connector)
			if c.most > 0 {
				dial().expect("220 ")
			}
			peer := dial()
			pass(t, c.want-1)
			read := make(chan error, 1)
			go func() { _, err := peer.conn.Write([]byte("x")); read <- err }() // The other end is there, and reads nothing.
			synctest.Wait()
			select {
			case err := <-read:
				t.Errorf("%s: left too early: %v", name, err)
			default:
			}
			pass(t, 1)
			synctest.Wait()
			select {
			case err := <-read:
				if err == nil {
					t.Errorf("%s: read on", name)
				}
			default:
				t.Errorf("%s: not left after %v", name, c.want)
			}
			stop()
		})
	}
}

// Refusals of unknown peers come five seconds late by default, and other replies at once; so do those of users.
func TestRefusalsComeLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		connector := internet()
		connector.Limits.Tarpit = receive.DefaultLimits().Tarpit
		connector.Groups = append(connector.Groups, receive.Users)
		connector.Mechanisms, connector.IsClearAuth = []string{"PLAIN"}, true
		dial, stop := startPiped(t, connector)
		peer := dial()
		for _, c := range []struct {
			line, want string
			took       time.Duration
		}{
			{"", "220", 0},
			{"EHLO client.example.net", "250", 0},
			{"MAIL FROM:<ann@example.net>", "250", 0},
			{"RCPT TO:<bob@example.com>", "250", 0},
			{"RCPT TO:<bob@example.net>", "550 5.7.1", 5 * time.Second},
			{"BLAH", "500", 5 * time.Second},
			{"RSET", "250", 0},
			{"AUTH PLAIN AGFubgBzZWNyZXQ=", "235", 0},
			{"BLAH", "500", 0},
		} {
			began := time.Now()
			if c.line != "" {
				peer.send(c.line + "\r\n")
			}
			if got := peer.reply(); !strings.HasPrefix(got, c.want) || time.Since(began) != c.took {
				t.Errorf("%q: %q after %v, want %q after %v", c.line, got, time.Since(began), c.want, c.took)
			}
		}
		_ = peer.conn.Close()
		stop()
	})
}

// When the server stops, peers without a message end at once, and those that have begun one have as long as they are given.
func TestMessageUnderWayHasItsGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dial, stop := startPiped(t, internet())
		began := time.Now()
		idle, busy := dial(), dial()
		for _, peer := range []*client{idle, busy} {
			peer.expect("220 ")
			peer.say("EHLO client.example.net", "250")
		}
		busy.begin()
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if got := idle.reply(); !strings.HasPrefix(got, "421 4.3.2") || time.Since(began) != 0 {
				t.Errorf("without a message: %q after %v", got, time.Since(began))
			}
		})
		busy.every(time.Second, "x\r\n")
		if took := stop(); took != patience {
			t.Errorf("it took %v to stop", took)
		}
		waiting.Wait()
		busy.expect("closed")
	})
}
