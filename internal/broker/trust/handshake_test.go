package trust_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/trust"
)

func TestBrokersThatTrustEachOtherAreLinked(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	a.trusts(b)
	b.trusts(a)
	m := a.meet(b)
	m.requireOpen(t)
	if a.trust.Links() != 1 || b.trust.Links() != 1 {
		t.Errorf("%d and %d links are known", a.trust.Links(), b.trust.Links())
	}
	_ = m.client.Close()
	_ = m.server.Close()
	if a.trust.Links() != 0 || b.trust.Links() != 0 {
		t.Errorf("%d and %d links are known after they were closed", a.trust.Links(), b.trust.Links())
	}
}

// Faults of the caller; the called broker logs them, and sends no reason to the caller.
func TestCalledBrokerRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		spoil  func(a, b *broker)
		number int
		login  transport.TraceEvent
	}{
		{"an unknown peer", func(_, b *broker) { b.exec("select parley.drop_peer('a')") }, trust.Unknown, transport.AuthorizationFailure},
		{
			"another key than the one it trusts", func(a, _ *broker) { a.source.set(certificate(a.T, identity.Config{Name: "a"})) },
			trust.Unknown, transport.AuthorizationFailure,
		},
		{
			"a peer that was revoked", func(_, b *broker) { b.exec("select parley.revoke_peer('a')") },
			trust.NotPermitted, transport.AuthorizationFailure,
		},
		{"a key that it trusts no more", func(_, b *broker) {
			b.exec("update parley._p_peer_certificate set not_after = now() - interval '1 s'")
		}, trust.Expired, transport.AuthenticationFailure},
		{"a key that it does not trust yet", func(_, b *broker) {
			b.exec("update parley._p_peer_certificate set not_before = now() + interval '1 h'")
		}, trust.NotYetValid, transport.AuthenticationFailure},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, b := newBroker(t, "a"), newBroker(t, "b")
			a.trusts(b)
			b.trusts(a)
			test.spoil(a, b)
			m := a.meet(b)
			requireRefusal(t, m.serverErr, test.number)
			requireRefusal(t, m.clientErr, trust.Rejected)
			if !strings.Contains(m.clientErr.Error(), "tls: bad certificate") {
				t.Errorf("the caller learns more than that it is not let in: %v", m.clientErr)
			}
			if !strings.Contains(b.log.String(), fmt.Sprintf("%d: ", test.number)) {
				t.Errorf("the log does not have the reason: %s", b.log)
			}
			if want := fmt.Sprintf(`event="Audit Broker Login" event_id=159 event_subclass=%d`, test.login.Subclass); !strings.Contains(b.log.String(), want) {
				t.Errorf("the log has no %s: %s", want, b.log)
			}
		})
	}
}

// A caller that has more to send is not reset before it has read why it is refused: it would wait for its next call to learn it.
func TestCallerThatGoesOnSendingLearnsWhyItIsRefused(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	a.trusts(b)
	m := meetWith(t, b, func(address string, raw net.Conn) (net.Conn, error) {
		conn, _, err := a.trust.Connect(t.Context(), raw, address)
		if err != nil {
			return nil, err
		}
		b.log.Await(t, "28035")
		for range 5 {
			if _, err := conn.Write([]byte{1}); err != nil {
				return nil, err
			}
			<-time.After(time.Millisecond) // in which a reset would come
		}
		_, err = conn.Read(make([]byte, 1))
		return conn, err
	})
	requireRefusal(t, m.clientErr, trust.Rejected)
}

// Faults of the called broker.
func TestCallingBrokerRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		spoil  func(a, b *broker)
		number int
	}{
		{"an unknown peer", func(a, _ *broker) { a.exec("select parley.drop_peer('b')") }, trust.Unknown},
		{"a peer that was revoked", func(a, _ *broker) { a.exec("select parley.revoke_peer('b')") }, trust.NotPermitted},
		{"a key that it trusts no more", func(a, _ *broker) {
			a.exec("update parley._p_peer_certificate set not_after = now() - interval '1 s'")
		}, trust.Expired},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, b := newBroker(t, "a"), newBroker(t, "b")
			a.trusts(b)
			b.trusts(a)
			test.spoil(a, b)
			m := a.meet(b)
			requireRefusal(t, m.clientErr, test.number)
			requireRefusal(t, m.serverErr, trust.Rejected)
		})
	}
}

// A program that does not mind its own dates: the other side does.
func TestCertificateOutOfItsDatesIsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		dates  identity.Config
		number int
	}{
		{"expired", identity.Config{Now: time.Now().Add(longAgo)}, trust.Expired},
		{"not yet valid", identity.Config{Now: time.Now().Add(48 * time.Hour)}, trust.NotYetValid},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, b := newBroker(t, "a"), newBroker(t, "b")
			a.source.set(certificate(t, test.dates))
			a.trusts(b)
			b.trusts(a)
			m := meetWith(t, b, plainClient(&tls.Config{Certificates: []tls.Certificate{*a.source.c.TLS()}, NextProtos: []string{"h2"}}))
			requireRefusal(t, m.serverErr, test.number)
			if m.clientErr == nil {
				t.Error("the caller was let in")
			}

			// It does not call with it either, and does not answer.
			m = a.meet(b)
			requireRefusal(t, m.clientErr, test.number)
			m = b.meet(a)
			requireRefusal(t, m.serverErr, test.number)
		})
	}
}

func TestBrokerWithoutCertificateOpensNoLink(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	a.trusts(b)
	a.source.set(nil)
	m := a.meet(b)
	requireRefusal(t, m.clientErr, trust.NoCertify)
}

func TestUnknownPeersAreSentAway(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	b.trusts(a)
	good := []tls.Certificate{*a.source.c.TLS()}
	// A certificate that is trusted, shown without having its key.
	_, otherKey := certificate(t, identity.Config{}), certificate(t, identity.Config{}).TLS().PrivateKey
	stolen := *a.source.c.TLS()
	stolen.PrivateKey = otherKey
	for _, test := range []struct {
		name   string
		config *tls.Config
		number int // 0: whatever
	}{
		{"without a certificate", &tls.Config{NextProtos: []string{"h2"}}, trust.Unknown},
		{"with an old version of TLS", &tls.Config{Certificates: good, NextProtos: []string{"h2"}, MaxVersion: tls.VersionTLS12}, trust.NoAlgorithm},
		{"with a certificate that is not its own", &tls.Config{Certificates: []tls.Certificate{stolen}, NextProtos: []string{"h2"}}, 0},
		{"with another protocol", &tls.Config{Certificates: good, NextProtos: []string{"http/1.1"}}, 0},
		{"without a protocol", &tls.Config{Certificates: good}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := meetWith(t, b, plainClient(test.config))
			if m.clientErr == nil || m.serverErr == nil {
				t.Fatalf("let in: %v, %v", m.clientErr, m.serverErr)
			}
			if test.number != 0 {
				requireRefusal(t, m.serverErr, test.number)
			}
		})
	}
	// The same caller with all in order is let in.
	m := meetWith(t, b, plainClient(&tls.Config{Certificates: good, NextProtos: []string{"h2"}}))
	m.requireOpen(t)
}

// A peer that gets hold of the traffic for another peer's address does not get its messages.
func TestAtTheAddressOfAPeerOnlyThatPeerMayAnswer(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	a.trusts(b)
	b.trusts(a)
	a.exec("select parley.trust_peer(repeat('0', 64), 'c', address => 'tcp://C.example:4022')")
	m := a.meet(b)
	m.requireOpen(t)
	m = meetWithAddress(a, b, "c.example:4022")
	requireRefusal(t, m.clientErr, trust.WrongPeer)
	a.exec("select parley.alter_peer('b', address => 'tcp://b.example:4022')")
	m = meetWithAddress(a, b, "b.example:4022")
	m.requireOpen(t)
	m = meetWithAddress(a, b, "d.example:4022") // where nobody is known to live
	m.requireOpen(t)
	// A peer that was revoked lives nowhere.
	a.exec("select parley.revoke_peer('c')")
	m = meetWithAddress(a, b, "c.example:4022")
	m.requireOpen(t)
}
