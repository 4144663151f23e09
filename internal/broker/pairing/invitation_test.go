package pairing

import (
	"crypto/rand"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/broker/identity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

func TestInvitationPairsTwoBrokers(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	b.exec("select parley.create_queue('shop')")
	b.exec("select parley.create_service('//b/shop', queue => 'shop', contracts => array['DEFAULT'])")
	a.requireLetIn(b, false)
	k, err := a.call(b.address, b.invite(truststore.PairingChoice{Name: "the other", Role: "pg_monitor"}))
	if err != nil {
		t.Fatal(err)
	}
	offered := k.Offer.Databases
	if k.Fingerprint != b.own.Fingerprint.String() || k.Offer.Address != "tcp://"+b.address || len(offered) != 1 ||
		!slices.Equal(offered[0].Services, []string{"//b/shop"}) {
		t.Errorf("paired with %+v", k)
	}
	name, err := truststore.PairPeer(t.Context(), a.pool, k, truststore.PairingChoice{Name: "b"})
	if err != nil || name != "b" {
		t.Fatalf("trusted as %q: %v", name, err)
	}
	a.requireLetIn(b, true)
	b.requireLetIn(a, true)

	peers := b.peers()
	if len(peers) != 1 || peers[0].Name != "the other" || *peers[0].Role != "pg_monitor" || peers[0].Fingerprints[0] != a.own.Fingerprint.String() ||
		*peers[0].Address != "tcp://"+a.address || peers[0].BrokerInstances[0] != a.offer().Databases[0].Instance || peers[0].NotAfter == nil {
		t.Errorf("peers of b: %+v", peers)
	}
}

func TestInvitationIsGoodOnce(t *testing.T) {
	t.Parallel()
	a, b, c := newBroker(t, "a"), newBroker(t, "b"), newBroker(t, "c")
	b.open() // so that callers are answered at all
	token := b.invite(truststore.PairingChoice{})
	if _, err := a.call(b.address, token); err != nil {
		t.Fatal(err)
	}
	for _, again := range []*broker{a, c} {
		if _, err := again.call(b.address, token); err == nil || !strings.Contains(err.Error(), "used or over") {
			t.Errorf("got %v", err)
		}
	}
	if peers := b.peers(); len(peers) != 1 {
		t.Errorf("peers of b: %+v", peers)
	}
}

func TestInvitationEnds(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	token := b.invite(truststore.PairingChoice{})
	b.exec("update parley._p_pairing set expires_at = now()")
	if _, err := a.call(b.address, token); err == nil || !strings.Contains(err.Error(), "does not let anybody pair") {
		t.Errorf("got %v", err)
	}
}

func TestWrongTokenIsRefusedAndEndsTheInvitation(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	b.open()
	token := b.invite(truststore.PairingChoice{})
	wrong := token
	wrong.secret = make([]byte, secretLength)
	for range 5 {
		if _, err := a.call(b.address, wrong); err == nil || !strings.Contains(err.Error(), "the other broker refuses") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := a.call(b.address, token); err == nil {
		t.Error("an invitation can be guessed at as often as one likes")
	}
	if peers := b.peers(); len(peers) != 0 {
		t.Errorf("peers of b: %+v", peers)
	}
}

// patience is how long a test waits for an answer that has to come at once.
const patience = time.Minute

// speak opens a connection for pairing, to send what a proper caller would not.
func speak(t *testing.T, own *identity.Certificate, address string) (*tls.Conn, channel) {
	t.Helper()
	conn, err := Call{Address: address, Own: own}.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, called, err := peerOf(conn.ConnectionState())
	if err != nil {
		t.Fatal(err)
	}
	bound, err := newChannel(conn.ConnectionState(), own.Fingerprint, called)
	if err != nil {
		t.Fatal(err)
	}
	return conn, bound
}

func TestProofIsGoodForNoOtherConnection(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	token := b.invite(truststore.PairingChoice{})
	_, first := speak(t, a.own, b.address)
	conn, second := speak(t, a.own, b.address)
	thief := newBroker(t, "thief")
	stolen, _ := speak(t, thief.own, b.address)
	for name, replay := range map[string]struct {
		conn  *tls.Conn
		proof []byte
	}{
		"of the same caller":         {conn, first.proofOf(token.secret, "caller")},
		"by another caller":          {stolen, second.proofOf(token.secret, "caller")},
		"sent back to who has it":    {func() *tls.Conn { c, _ := speak(t, a.own, b.address); return c }(), second.proofOf(token.secret, "called")},
		"that is none":               {func() *tls.Conn { c, _ := speak(t, a.own, b.address); return c }(), nil},
		"that is the secret, hidden": {func() *tls.Conn { c, _ := speak(t, a.own, b.address); return c }(), token.secret},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "that is the secret, hidden" {
				b.exec("update parley._p_pairing set failures = 0")
			}
			if err := send(replay.conn, message{Invitation: &token.Invitation, Proof: replay.proof}); err != nil {
				t.Fatal(err)
			}
			if m, err := receive(replay.conn); err == nil {
				t.Errorf("answered %+v", m)
			}
		})
	}
	if peers := b.peers(); len(peers) != 0 {
		t.Errorf("peers of b: %+v", peers)
	}
}

// between holds both ends of two connections, with a key of its own, and passes on what it reads.
func between(t *testing.T, called *broker) (address string, own *identity.Certificate) {
	t.Helper()
	own, err := identity.New(identity.Config{Name: "in the middle"})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		raw, err := listener.Accept()
		if err != nil {
			return
		}
		near := tls.Server(raw, &tls.Config{
			Certificates: []tls.Certificate{*own.TLS()}, NextProtos: []string{Protocol}, ClientAuth: tls.RequireAnyClientCert,
		})
		far, err := Call{Address: called.address, Own: own}.connect(t.Context())
		if err != nil {
			_ = raw.Close()
			return
		}
		pass := func(to, from net.Conn) {
			defer func() { _, _ = near.Close(), far.Close() }()
			for {
				m, err := receive(from)
				if err != nil || send(to, m) != nil {
					return
				}
			}
		}
		running.Go(func() { pass(far, near) })
		pass(near, far)
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return listener.Addr().String(), own
}

func TestNobodyInTheMiddleCanUseAnInvitation(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	token := b.invite(truststore.PairingChoice{})
	address, _ := between(t, b)
	if _, err := a.call(address, token); err == nil {
		t.Error("paired with who is in the middle")
	}
	if peers := b.peers(); len(peers) != 0 {
		t.Errorf("peers of b: %+v", peers)
	}
}

// A broker that answers without knowing the invitation is not trusted, whatever it offers.
func TestCallerBelievesOnlyWhoKnowsTheInvitation(t *testing.T) {
	t.Parallel()
	a := newBroker(t, "a")
	impostor, err := identity.New(identity.Config{Name: "impostor"})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	done := make(chan message, 1)
	go func() {
		defer close(done)
		raw, err := listener.Accept()
		if err != nil {
			return
		}
		conn := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{*impostor.TLS()}, NextProtos: []string{Protocol}})
		defer func() { _ = conn.Close() }()
		hello, err := receive(conn)
		if err != nil || send(conn, message{Proof: hello.Proof}) != nil { // the caller's own
			return
		}
		if m, err := receive(conn); err == nil {
			done <- m
		}
	}()
	token := Token{secret: make([]byte, secretLength)}
	_, _ = rand.Read(token.secret)
	if _, err := a.call(listener.Addr().String(), token); err == nil || !strings.Contains(err.Error(), "does not know the invitation") {
		t.Errorf("got %v", err)
	}
	if m, isSent := <-done; isSent {
		t.Errorf("the caller went on with %+v", m)
	}
}

// An offer reaches no further than the peer that makes it.
func TestOfferCannotTakeTheNameTheBrokerOrTheAddressOfAnother(t *testing.T) {
	t.Parallel()
	a, b, c := newBroker(t, "a"), newBroker(t, "b"), newBroker(t, "c")
	if _, err := a.call(b.address, b.invite(truststore.PairingChoice{Role: "pg_monitor"})); err != nil {
		t.Fatal(err)
	}
	offer := a.offer()
	token := b.invite(truststore.PairingChoice{})
	if _, err := (Call{Address: b.address, Own: c.own, Offer: offer, Token: &token}).Do(t.Context()); err == nil {
		t.Error("a second broker says that it is the first one, and is believed")
	}
	offer.Databases = c.offer().Databases
	if _, err := (Call{Address: b.address, Own: c.own, Offer: offer, Token: &token}).Do(t.Context()); err == nil {
		t.Error("a second broker says that it is reached where the first one is, and would be let in there")
	}
	offer.Address = c.offer().Address
	if _, err := (Call{Address: b.address, Own: c.own, Offer: offer, Token: &token}).Do(t.Context()); err != nil {
		t.Fatal(err) // the invitation was not used up
	}
	peers := b.peers()
	if len(peers) != 2 || peers[0].Name == peers[1].Name || peers[1].Role != nil || len(peers[0].Fingerprints) != 1 {
		t.Errorf("peers of b: %+v", peers)
	}
	// With the word of the operator it is another key of the same peer.
	token = b.invite(truststore.PairingChoice{Name: peers[0].Name})
	renewed, err := identity.New(identity.Config{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Call{Address: b.address, Own: renewed, Offer: a.offer(), Token: &token}).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if peers := b.peers(); len(peers) != 2 || len(peers[0].Fingerprints) != 2 || *peers[0].Role != "pg_monitor" {
		t.Errorf("peers of b: %+v", peers)
	}
}
