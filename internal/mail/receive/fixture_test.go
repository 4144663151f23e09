package receive_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/receive"
	"github.com/parley-broker/parley/internal/mail/spool"
)

const patience = 30 * time.Second

// store takes messages and keeps them.
type store struct {
	mu       sync.Mutex
	messages []taken
	err      error
	entered  chan struct{} // if set, learns of each message, which then waits for release
	release  chan struct{}
}

type taken struct {
	envelope message.Envelope
	text     string
}

func (s *store) Accept(envelope message.Envelope, body *spool.Body) (int64, error) {
	if s.entered != nil {
		s.entered <- struct{}{}
		<-s.release
	}
	text, err := io.ReadAll(body.Reader())
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.messages) > 1000 { // of a benchmark
		text = nil
	}
	if err = errors.Join(err, s.err); err != nil {
		return 0, err
	}
	s.messages = append(s.messages, taken{envelope, string(text)})
	return int64(len(s.messages)), nil
}

func (s *store) all() []taken {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages
}

// only gives the only message that was taken.
func (s *store) only(t *testing.T) taken {
	t.Helper()
	all := s.all()
	if len(all) != 1 {
		t.Fatalf("%d messages were taken, want one", len(all))
	}
	return all[0]
}

// credentials are users and their passwords.
type credentials map[string]string

func (c credentials) MaySubmit(_ context.Context, user string) (bool, error) {
	return c[user] != "", nil
}

func (c credentials) Verifier(_ context.Context, user string) (receive.Verifier, error) {
	if user == "broken" {
		return receive.Verifier{}, errors.New("no connection")
	}
	password, isKnown := c[user]
	if !isKnown {
		return receive.Verifier{}, receive.ErrUnknownUser
	}
	return receive.NewVerifier(password, []byte("0123456789abcdef"), 4096)
}

var binding = netip.MustParseAddrPort("127.0.0.1:25")

// internet gives a connector without tarpit.
func internet() *receive.Connector {
	c := receive.NewConnector("in", receive.Internet)
	c.Bindings, c.FQDN, c.Limits.Tarpit = []netip.AddrPort{binding}, "mx.example.com", 0
	return c
}

// submission gives a connector for users, who may authenticate in the clear.
func submission() *receive.Connector {
	c := receive.NewConnector("submission", receive.Client)
	c.Bindings, c.FQDN, c.Limits.Tarpit = []netip.AddrPort{binding}, "mx.example.com", 0
	c.TLS, c.IsClearAuth = receive.TLSOpportunistic, true
	return c
}

// fixture is a server on a port of this machine.
type fixture struct {
	t       testing.TB
	server  *receive.Server
	store   *store
	address string
	spool   *spool.Spool
	stop    func()
}

func start(t testing.TB, change func(*receive.Server), connectors ...*receive.Connector) *fixture {
	t.Helper()
	s := &store{}
	log := slog.New(slog.DiscardHandler)
	kept := spool.New(t.TempDir(), 64<<10, 1<<20)
	server := &receive.Server{
		Accepter: s, Spool: kept, Log: log, Credentials: credentials{"ann": "secret", "bob": "pass=,word"}, Certificate: certificate(t, "mx.example.com").get,
		Grace: patience,
	}
	if change != nil {
		change(server)
	}
	configuration := &receive.Configuration{Connectors: connectors, AcceptedDomains: []string{"example.com", "*.example.org"}, Names: []string{"other.example.com"}}
	if err := server.Configure(configuration); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, map[netip.AddrPort]net.Listener{binding: listener}) }()
	f := &fixture{t: t, server: server, store: s, address: listener.Addr().String(), spool: kept}
	f.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the server does not stop")
		}
		if kept.InMemory() != 0 {
			t.Errorf("%d bytes of bodies were not given back", kept.InMemory())
		}
	})
	t.Cleanup(f.stop)
	return f
}

// client speaks to a server in raw lines.
type client struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func (f *fixture) dial() *client {
	f.t.Helper()
	return f.dialFrom("127.0.0.1")
}

// dialFrom connects from an address of this machine.
func (f *fixture) dialFrom(source string) *client {
	f.t.Helper()
	dialer := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	conn, err := dialer.DialContext(f.t.Context(), "tcp", f.address)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &client{t: f.t, conn: conn, in: bufio.NewReader(conn)}
}

// greeted gives a client that has said EHLO.
func (f *fixture) greeted() *client {
	f.t.Helper()
	c := f.dial()
	c.expect("220 ")
	c.say("EHLO client.example.net", "250")
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatalf("send %.60q: %v", text, err)
	}
}

// reply gives the next reply, all its lines.
func (c *client) reply() string {
	c.t.Helper()
	var all strings.Builder
	for {
		line, err := c.in.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			if all.Len() == 0 {
				return "closed"
			}
			return all.String()
		}
		if len(line) < 4 || line[3] != '-' {
			return all.String()
		}
	}
}

func (c *client) expect(begin string) {
	c.t.Helper()
	got := c.reply()
	if !strings.HasPrefix(got, begin) {
		c.t.Fatalf("the reply is %q, want %q", got, begin)
	}
}

// say sends a line and expects how the reply begins.
func (c *client) say(line, begin string) string {
	c.t.Helper()
	c.send(line + "\r\n")
	got := c.reply()
	if !strings.HasPrefix(got, begin) {
		c.t.Fatalf("the reply to %.80q is %q, want %q", line, got, begin)
	}
	return got
}

// begin sends an envelope up to the reply to DATA.
func (c *client) begin() {
	c.t.Helper()
	c.say("MAIL FROM:<ann@example.net>", "250 2.1.0")
	c.say("RCPT TO:<bob@example.com>", "250 2.1.5")
	c.say("DATA", "354")
}

// key is a certificate and who signed it.
type key struct {
	tls  tls.Certificate
	pool *x509.CertPool
}

func (k key) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &k.tls, nil }

func certificate(t testing.TB, names ...string) key {
	t.Helper()
	made := mailtest.Certificate(t, names...)
	pool := x509.NewCertPool()
	pool.AddCert(made.Leaf)
	return key{tls: *made, pool: pool}
}

// startTLS has the client go on over TLS.
func (c *client) startTLS(configuration *tls.Config) {
	c.t.Helper()
	secured := tls.Client(c.conn, configuration)
	if err := secured.HandshakeContext(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.conn, c.in = secured, bufio.NewReader(secured)
}

var trusting = &tls.Config{InsecureSkipVerify: true, ServerName: "mx.example.com"}
