package pairing

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/parleytest"
)

// liesOfPossession are proofs of a dialog certificate that a side may send. The first one is the truth.
var liesOfPossession = []struct {
	name  string
	lie   func(bound channel, who string, liar, other *broker, offer *truststore.PairingOffer) proofs
	isLie bool
}{
	{"the proof of this connection", func(bound channel, who string, liar, _ *broker, offer *truststore.PairingOffer) proofs {
		return liar.prove(bound, who, *offer)
	}, false},
	{"none, as an older program", func(channel, string, *broker, *broker, *truststore.PairingOffer) proofs { return nil }, true},
	{"somebody else's certificate", func(bound channel, who string, liar, other *broker, offer *truststore.PairingOffer) proofs {
		proof := liar.prove(bound, who, *offer)
		theirs := other.offer()
		offer.DialogCertificates, offer.Databases[0].Certificates = theirs.DialogCertificates, theirs.Databases[0].Certificates
		return proof
	}, true},
	{"a proof of another connection", func(bound channel, who string, liar, _ *broker, offer *truststore.PairingOffer) proofs {
		bound.material = append([]byte{^bound.material[0]}, bound.material[1:]...)
		return liar.prove(bound, who, *offer)
	}, true},
	{"a proof of the other direction", func(bound channel, who string, liar, _ *broker, offer *truststore.PairingOffer) proofs {
		return liar.prove(bound, map[string]string{"caller": "called", "called": "caller"}[who], *offer)
	}, true},
	{"a proof for another broker instance", func(bound channel, who string, liar, _ *broker, offer *truststore.PairingOffer) proofs {
		proof := liar.prove(bound, who, *offer)
		offer.Databases[0].Instance = parley.UUID{7}
		return proof
	}, true},
	{"a proof by another key of the calling broker", func(bound channel, who string, liar, _ *broker, offer *truststore.PairingOffer) proofs {
		bound.caller[0]++
		return liar.prove(bound, who, *offer)
	}, true},
	{"a proof for another key of the called broker", func(bound channel, who string, liar, _ *broker, offer *truststore.PairingOffer) proofs {
		bound.called[0]++
		return liar.prove(bound, who, *offer)
	}, true},
}

// Where people compare codes the called side asks for the proof too: what both have confirmed is not trusted without it.
func TestCallerIsNotTrustedWithoutProofThoughPeopleHaveConfirmedTheCode(t *testing.T) {
	t.Parallel()
	for _, test := range liesOfPossession {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, b, other := newBroker(t, "a"), newBroker(t, "b"), newBroker(t, "other")
			ofA := a.certify()
			other.certify()
			pairing := b.open()
			conn, bound := speak(t, a.own, b.address)
			offer, number := a.offer(), make([]byte, numberLength)
			possession := test.lie(bound, "caller", a, other, &offer)
			write := func(m message) {
				t.Helper()
				if err := send(conn, m); err != nil {
					t.Fatal(err)
				}
			}
			write(message{Commitment: bound.commitment(number)})
			if _, err := receive(conn); err != nil {
				t.Fatal(err)
			}
			write(message{Number: number, Offer: shown(offer)})
			request := b.request(pairing, truststore.PairingWaiting)
			if err := truststore.ConfirmPairing(t.Context(), b.pool, request.ID, truststore.PairingChoice{Role: "pg_monitor"}); err != nil {
				t.Fatal(err)
			}
			write(message{Verdict: new(true), Offer: &offer, Possession: possession})
			m, err := receive(conn)
			if !test.isLie {
				if err != nil || m.Verdict == nil || !*m.Verdict || len(b.peers()) != 1 {
					t.Fatalf("not paired: %+v, %v", m, err)
				}
				b.requireTaken("pg_monitor", ofA)
				return
			}
			const want = "the other broker refuses: no proof of the private key of a dialog certificate"
			if err == nil || err.Error() != want {
				t.Errorf("got %+v, %v", m, err)
			}
			if len(b.peers()) != 0 {
				t.Error("trusted")
			}
			b.requireTaken("pg_monitor")
		})
	}
}

// answerWith is a called side that keeps to the protocol of comparing codes, confirms, and offers what the test makes of its offer.
func (b *broker) answerWith(possession func(bound channel, offer *truststore.PairingOffer) proofs) (address string) {
	b.Helper()
	listener, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	b.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	go func() {
		defer close(done)
		raw, err := listener.Accept()
		if err != nil {
			return
		}
		conn := tls.Server(raw, &tls.Config{
			Certificates: []tls.Certificate{*b.own.TLS()}, NextProtos: []string{Protocol}, ClientAuth: tls.RequireAnyClientCert,
		})
		defer func() { _ = conn.Close() }()
		if err := b.answer(conn, possession); err != nil {
			b.Errorf("the called side: %v", err)
		}
	}()
	return listener.Addr().String()
}

func (b *broker) answer(conn *tls.Conn, possession func(bound channel, offer *truststore.PairingOffer) proofs) error {
	if err := conn.HandshakeContext(b.Context()); err != nil {
		return err
	}
	_, caller, err := peerOf(conn.ConnectionState())
	if err != nil {
		return err
	}
	bound, err := newChannel(conn.ConnectionState(), caller, b.own.Fingerprint)
	if err != nil {
		return err
	}
	offer := b.offer()
	proof := possession(bound, &offer)
	if _, err := receive(conn); err != nil {
		return err
	}
	if err := send(conn, message{Number: make([]byte, numberLength), Offer: shown(offer)}); err != nil {
		return err
	}
	for range 2 { // the number, then the verdict
		if _, err := receive(conn); err != nil {
			return err
		}
	}
	return send(conn, message{Verdict: new(true), Offer: &offer, Possession: proof})
}

// And so does the caller, of who is called.
func TestCalledBrokerIsNotTrustedWithoutProofThoughPeopleHaveConfirmedTheCode(t *testing.T) {
	t.Parallel()
	for _, test := range liesOfPossession {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, b, other := newBroker(t, "a"), newBroker(t, "b"), newBroker(t, "other")
			b.certify()
			other.certify()
			call := a.ask(b.answerWith(func(bound channel, offer *truststore.PairingOffer) proofs {
				return test.lie(bound, "called", b, other, offer)
			}))
			parleytest.Receive(t, call.found, "the code to compare")
			call.answer <- true
			err := parleytest.Receive(t, call.done, "the end of the call")
			if errors.Is(err, dialogsecurity.ErrNotPossessed) != test.isLie || (err == nil) == test.isLie {
				t.Errorf("got %v", err)
			}
		})
	}
}
