package trust_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/trust"
)

// meetWithAddress lets one broker call another under an address that leads there.
func meetWithAddress(a, b *broker, address string) meeting {
	return meetWith(a.T, b, func(_ string, raw net.Conn) (net.Conn, error) {
		conn, _, err := a.trust.Connect(a.Context(), raw, address)
		return conn, err
	})
}

func TestRevocationClosesRunningLinks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, change string }{
		{"revoked", "select parley.revoke_peer('b')"},
		{"dropped", "select parley.drop_peer('b')"},
		{"expired", "update parley._p_peer_certificate set not_after = now()"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, b := newBroker(t, "a"), newBroker(t, "b")
			a.trusts(b)
			b.trusts(a)
			a.run()
			b.run()
			out, in := a.meet(b), b.meet(a)
			out.requireOpen(t)
			in.requireOpen(t)
			a.exec(test.change)
			// The one that was called and the one that has called: both are closed, at their other ends it shows.
			requireClosed(t, out.server)
			requireClosed(t, in.client)
			if !strings.Contains(a.log.String(), "a link is closed") {
				t.Errorf("the log does not have it: %s", a.log)
			}
		})
	}
}

// While the database is away, links run on: nothing can reach it anyway.
func TestLinksStayWhileTheListCannotBeRead(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	a.trusts(b)
	b.trusts(a)
	m := a.meet(b)
	m.requireOpen(t)
	a.pool.Close()
	a.run()
	a.log.Await(t, "the list of peers cannot be read")
	if !strings.Contains(a.log.String(), "the list of peers cannot be read") {
		t.Errorf("the log does not have it: %s", a.log)
	}
	m = a.meet(b)
	m.requireOpen(t)
}

func TestNewKeySignedByTheOldOneIsTrustedAtOnce(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	a.trusts(b)
	b.trusts(a)
	first := a.source.c
	running := a.meet(b)
	running.requireOpen(t)

	second := certificate(t, identity.Config{Name: "a", Predecessor: first})
	third := certificate(t, identity.Config{Name: "a", Predecessor: second})
	a.source.set(third) // b was away when the second was in use
	m := a.meet(b)
	m.requireOpen(t)
	var succeeds string
	if err := b.pool.QueryRow(t.Context(), "select succeeds from parley.peer_certificates where fingerprint = $1", third.Fingerprint.String()).Scan(&succeeds); err != nil {
		t.Fatal(err)
	}
	if succeeds != first.Fingerprint.String() {
		t.Errorf("the new key succeeds %s", succeeds)
	}
	// Both are good, and what was open stays open.
	if err := greet2(running); err != nil {
		t.Errorf("the link that ran was cut: %v", err)
	}
	a.source.set(first)
	m = a.meet(b)
	m.requireOpen(t)

	// The other way round: the one who is called has a new key.
	a.source.set(certificate(t, identity.Config{Name: "a", Predecessor: third}))
	m = b.meet(a)
	m.requireOpen(t)
}

// greet2 uses both directions of a link.
func greet2(m meeting) error {
	done := make(chan error, 1)
	go func() { done <- greet(m.server) }()
	if err := greet(m.client); err != nil {
		return err
	}
	return <-done
}

func TestNewKeyIsNotTrustedWithoutAGoodSignature(t *testing.T) {
	t.Parallel()
	expired := func(t *testing.T, predecessor *identity.Certificate) *identity.Certificate {
		return certificate(t, identity.Config{Now: time.Now().Add(longAgo), Predecessor: predecessor})
	}
	for _, test := range []struct {
		name string
		next func(t *testing.T, b *broker, first *identity.Certificate) *identity.Certificate
		// number at the called one
		number int
	}{
		{"unsigned", func(t *testing.T, _ *broker, _ *identity.Certificate) *identity.Certificate {
			return certificate(t, identity.Config{})
		}, trust.Unknown},
		{"old certificate put behind it", func(t *testing.T, _ *broker, first *identity.Certificate) *identity.Certificate {
			c := certificate(t, identity.Config{})
			c.Chain = append(c.Chain, first.Chain...)
			return c
		}, trust.Unknown},
		{"signed by an unknown key", func(t *testing.T, _ *broker, _ *identity.Certificate) *identity.Certificate {
			return certificate(t, identity.Config{Predecessor: certificate(t, identity.Config{})})
		}, trust.Unknown},
		{"signed by a key whose successor has expired", func(t *testing.T, _ *broker, first *identity.Certificate) *identity.Certificate {
			return certificate(t, identity.Config{Predecessor: expired(t, first)})
		}, trust.Unknown},
		{"signed by one that is revoked", func(t *testing.T, b *broker, first *identity.Certificate) *identity.Certificate {
			b.exec("select parley.revoke_peer('a')")
			return certificate(t, identity.Config{Predecessor: first})
		}, trust.NotPermitted},
		{"the key of another peer", func(t *testing.T, b *broker, first *identity.Certificate) *identity.Certificate {
			c := certificate(t, identity.Config{Predecessor: first})
			b.exec("select parley.trust_peer($1, 'other')", c.Fingerprint.String())
			b.exec("select parley.revoke_peer('other')")
			return c
		}, trust.NotPermitted},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, b := newBroker(t, "a"), newBroker(t, "b")
			a.trusts(b)
			b.trusts(a)
			a.source.set(test.next(t, b, a.source.c))
			m := a.meet(b)
			requireRefusal(t, m.serverErr, test.number)
			requireRefusal(t, m.clientErr, trust.Rejected)
		})
	}
}

// A new key is no way around what holds for the old one: at the address of another peer it is not trusted, and not recorded either.
func TestNewKeyIsNotTrustedAtTheAddressOfAnotherPeer(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	a.trusts(b)
	b.trusts(a)
	a.exec("select parley.trust_peer(repeat('0', 64), 'c', address => 'tcp://c.example:4022')")
	b.source.set(certificate(t, identity.Config{Predecessor: b.source.c}))
	m := meetWithAddress(a, b, "c.example:4022")
	requireRefusal(t, m.clientErr, trust.WrongPeer)
	m = meetWithAddress(a, b, "b.example:4022")
	m.requireOpen(t)
}

func TestEndOfTheOwnCertificateIsReportedAhead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, want string
		dates      identity.Config
	}{
		{"soon", "expires soon", identity.Config{Validity: trust.WarnBefore - time.Hour}},
		{"over", "has expired at", identity.Config{Now: time.Now().Add(longAgo)}},
		{"in good time", "", identity.Config{Validity: trust.WarnBefore + time.Hour}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, "b", func(c *trust.Config) { c.Name = "host" })
			b.source.set(certificate(t, test.dates))
			b.run()
			// The database receives it too, before the log does.
			for isReported := false; !isReported; {
				err := b.pool.QueryRow(t.Context(), "select count(*) = 1 from parley.broker_certificates where fingerprint = $1",
					b.fingerprint()).Scan(&isReported)
				if err != nil {
					t.Fatal(err)
				}
			}
			if test.want == "" {
				// Two reports show that the daemon has checked.
				b.pool.Close()
				b.log.Await(t, "cannot be read")
				if strings.Contains(b.log.String(), "expire") {
					t.Errorf("warned: %s", b.log)
				}
				return
			}
			b.log.Await(t, test.want)
		})
	}
}
