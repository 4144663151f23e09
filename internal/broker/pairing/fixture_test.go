package pairing

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
	"google.golang.org/grpc/credentials"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/trust"
	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/parleytest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The server of the tests, when this is the package that starts it.
		goleak.IgnoreAnyFunction("github.com/parley-broker/parley/internal/postgres.(*Server).launch.func1"))
}

// broker is a daemon with one database, as far as pairing goes.
type broker struct {
	*testing.T
	pool    *pgxpool.Pool
	own     *identity.Certificate
	keys    *dialogsecurity.MasterKeys
	trust   *trust.Trust
	address string // where it listens, host:port
}

func (b *broker) Certificate() (*identity.Certificate, error) { return b.own, nil }

// newBroker starts a broker that listens until the test ends.
func newBroker(t *testing.T, name string) *broker {
	t.Helper()
	b := &broker{T: t, pool: parleytest.Database(t)}
	path := filepath.Join(t.TempDir(), "master.key")
	err := dialogsecurity.CreateMasterKey(path)
	if err == nil {
		b.keys, err = dialogsecurity.OpenMasterKeys(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if b.own, err = identity.New(identity.Config{Name: name}); err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.address = listener.Addr().String()
	logger := slog.New(slog.NewTextHandler(t.Output(), nil)).With("broker", name)
	b.trust = trust.New(trust.Config{
		Source: b, Databases: []trust.Database{{Name: name, DB: b.pool}}, Logger: logger,
		UnknownPeers: &Host{Databases: []parley.DB{b.pool}, Certificate: b.Certificate, Keys: b.keys, Address: "tcp://" + b.address, Logger: logger},
	})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = b.trust.Run(ctx) })
	running.Go(func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { b.accept(ctx, raw) })
		}
	})
	t.Cleanup(func() {
		stop()
		_ = listener.Close()
		running.Wait()
	})
	return b
}

// accept answers one byte on a link.
func (b *broker) accept(ctx context.Context, raw net.Conn) {
	conn, _, err := b.trust.Accept(ctx, raw)
	if err != nil {
		if !errors.Is(err, credentials.ErrConnDispatched) {
			_ = raw.Close()
		}
		return
	}
	_, _ = conn.Write([]byte{1})
	_ = conn.Close()
}

// isLetIn reports whether another broker accepts links from this one.
func (b *broker) isLetIn(other *broker) bool {
	b.Helper()
	raw, err := new(net.Dialer).DialContext(b.Context(), "tcp", other.address)
	if err != nil {
		b.Fatal(err)
	}
	conn, _, err := b.trust.Connect(b.Context(), raw, other.address)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Read(make([]byte, 1))
	return err == nil
}

func (b *broker) requireLetIn(other *broker, want bool) {
	b.Helper()
	// The lists are read again soon after the change.
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for ; b.isLetIn(other) != want; <-poll.C {
		if b.Context().Err() != nil {
			b.Fatalf("let in: %v, want %v", !want, want)
		}
	}
}

func (b *broker) exec(statement string, arguments ...any) {
	b.Helper()
	if _, err := b.pool.Exec(b.Context(), statement, arguments...); err != nil {
		b.Fatalf("%s: %v", statement, err)
	}
}

func (b *broker) peers() []truststore.Peer {
	b.Helper()
	peers, err := truststore.ReadPeers(b.Context(), b.pool)
	if err != nil {
		b.Fatal(err)
	}
	return peers
}

func (b *broker) offer() truststore.PairingOffer {
	b.Helper()
	offer, err := truststore.OwnPairingOffer(b.Context(), b.pool)
	if err != nil {
		b.Fatal(err)
	}
	offer.Address = "tcp://" + b.address
	return offer
}

func (b *broker) invite(choice truststore.PairingChoice) Token {
	b.Helper()
	text, err := truststore.InvitePeer(b.Context(), b.pool, time.Hour, choice)
	if err != nil {
		b.Fatal(err)
	}
	token, err := ParseToken(text)
	if err != nil {
		b.Fatal(err)
	}
	return token
}

// call makes a call to an address with an invitation.
func (b *broker) call(address string, token Token) (truststore.PairedKey, error) {
	b.Helper()
	return Call{Address: address, Own: b.own, Offer: b.offer(), Keys: b.keys, DB: b.pool, Token: &token}.Do(b.Context())
}

// open opens a pairing window.
func (b *broker) open() parley.UUID {
	b.Helper()
	pairing, err := truststore.OpenPairing(b.Context(), b.pool, time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	return pairing
}

// request waits until a request is in a state.
func (b *broker) request(pairing parley.UUID, state string) truststore.PairingRequest {
	b.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for ; ; <-poll.C {
		requests, err := truststore.ReadPairingRequests(b.Context(), b.pool, pairing)
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range requests {
			if r.State == state {
				return r
			}
		}
	}
}
