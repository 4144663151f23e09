package trust_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/trust"
	"github.com/parley-broker/parley/internal/logtest"
	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/parleytest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The server of the tests, when this is the package that starts it.
		goleak.IgnoreAnyFunction("github.com/parley-broker/parley/internal/postgres.(*Server).launch.func1"))
}

// one is a Source that can be given another certificate.
type one struct {
	mu sync.Mutex
	c  *identity.Certificate
}

func (o *one) Certificate() (*identity.Certificate, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.c == nil {
		return nil, identity.ErrNoCertificate
	}
	return o.c, nil
}

func (o *one) set(c *identity.Certificate) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.c = c
}

// broker is a daemon with one database, as far as links go.
type broker struct {
	*testing.T
	name   string
	pool   *pgxpool.Pool
	source *one
	trust  *trust.Trust
	log    *logtest.Log
}

func certificate(t *testing.T, config identity.Config) *identity.Certificate {
	t.Helper()
	c, err := identity.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newBroker makes a broker that shows a certificate, with the changes that the test wants.
func newBroker(t *testing.T, name string, changes ...func(*trust.Config)) *broker {
	t.Helper()
	b := &broker{T: t, name: name, pool: parleytest.Database(t), source: &one{c: certificate(t, identity.Config{Name: name})}, log: &logtest.Log{}}
	config := trust.Config{
		Source: b.source, Databases: []trust.Database{{Name: name, DB: b.pool}},
		Logger: slog.New(slog.NewTextHandler(io.MultiWriter(b.log, t.Output()), nil)),
	}
	for _, change := range changes {
		change(&config)
	}
	b.trust = trust.New(config)
	return b
}

// run keeps the lists fresh until the test ends.
func (b *broker) run() {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.trust.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
}

func (b *broker) fingerprint() string { return b.source.c.Fingerprint.String() }

func (b *broker) exec(statement string, arguments ...any) {
	b.Helper()
	if _, err := b.pool.Exec(b.Context(), statement, arguments...); err != nil {
		b.Fatalf("%s: %v", statement, err)
	}
	b.trust.Forget()
}

// trusts puts the key of another broker into the list.
func (b *broker) trusts(other *broker) {
	b.Helper()
	if err := truststore.TrustPeer(b.Context(), b.pool, truststore.NewPeer{Fingerprint: other.fingerprint(), Name: other.name}); err != nil {
		b.Fatal(err)
	}
	b.trust.Forget()
}

// meeting is a connection between two brokers, or why there is none.
type meeting struct {
	client, server       net.Conn
	clientErr, serverErr error
	address              string
}

// meet lets one broker call another. A fault that only shows when the connection is used shows here: each side sends a byte.
func (b *broker) meet(other *broker) meeting {
	b.Helper()
	return meetWith(b.T, other, func(address string, raw net.Conn) (net.Conn, error) {
		conn, _, err := b.trust.Connect(b.Context(), raw, address)
		return conn, err
	})
}

func meetWith(t *testing.T, server *broker, client func(address string, raw net.Conn) (net.Conn, error)) (m meeting) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	m.address = listener.Addr().String()
	var accepting sync.WaitGroup
	accepting.Go(func() {
		raw, err := listener.Accept()
		if err != nil {
			m.serverErr = err
			return
		}
		m.server, _, m.serverErr = server.trust.Accept(t.Context(), raw)
		if m.serverErr == nil {
			m.serverErr = greet(m.server)
		}
	})
	raw, err := new(net.Dialer).DialContext(t.Context(), "tcp", m.address)
	if err != nil {
		t.Fatal(err)
	}
	m.client, m.clientErr = client(m.address, raw)
	if m.clientErr == nil {
		m.clientErr = greet(m.client)
	}
	if m.clientErr != nil {
		_ = raw.Close()
	}
	accepting.Wait()
	t.Cleanup(m.close)
	return m
}

// patience is how long a test waits for the other end of a connection before it reports what did not come.
const patience = time.Minute

func greet(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	defer func() { _ = conn.SetDeadline(time.Time{}) }()
	if _, err := conn.Write([]byte{1}); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

func (m *meeting) close() {
	for _, conn := range []net.Conn{m.client, m.server} {
		if conn != nil {
			_ = conn.Close()
		}
	}
}

func (m *meeting) requireOpen(t *testing.T) {
	t.Helper()
	if m.clientErr != nil || m.serverErr != nil {
		t.Fatalf("no link: at the caller %v, at the called one %v", m.clientErr, m.serverErr)
	}
}

// requireRefusal requires that an error has a number of Service Broker.
func requireRefusal(t *testing.T, err error, number int) {
	t.Helper()
	r, ok := errors.AsType[*trust.RefusedError](err)
	if !ok || r.Number != number {
		t.Errorf("got %v, want a refusal with %d", err, number)
	}
}

// requireClosed waits until the other end of a connection has closed it.
func requireClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return // it is closed
	}
	_, err := conn.Read(make([]byte, 1))
	if err == nil {
		t.Error("something came over a link that was to be closed")
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the link is open %v after it was to be closed", patience)
	}
}

// plainClient calls as any program with a TLS library might.
func plainClient(config *tls.Config) func(string, net.Conn) (net.Conn, error) {
	config.InsecureSkipVerify = true
	return func(_ string, raw net.Conn) (net.Conn, error) {
		conn := tls.Client(raw, config)
		return conn, conn.HandshakeContext(context.Background())
	}
}

const longAgo = -1000 * 24 * time.Hour
