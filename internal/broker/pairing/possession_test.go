package pairing

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

// An offer of a dialog certificate is proven with its private key, on this very connection; an offer without the proof ends the pairing.
func TestDialogCertificateIsRefusedWithoutProofOfItsPrivateKey(t *testing.T) {
	t.Parallel()
	for _, test := range liesOfPossession {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, b, other := newBroker(t, "a"), newBroker(t, "b"), newBroker(t, "other")
			ofA := a.certify()
			other.certify()
			token := b.invite(truststore.PairingChoice{Role: "pg_monitor"})
			conn, bound := speak(t, a.own, b.address)
			if err := send(conn, message{Invitation: &token.Invitation, Proof: bound.proofOf(token.secret, "caller")}); err != nil {
				t.Fatal(err)
			}
			if _, err := receive(conn); err != nil {
				t.Fatal(err)
			}
			offer := a.offer()
			possession := test.lie(bound, "caller", a, other, &offer)
			if err := send(conn, message{Offer: &offer, Possession: possession}); err != nil {
				t.Fatal(err)
			}
			_, err := receive(conn)
			if !test.isLie {
				if err != nil || len(b.peers()) != 1 {
					t.Fatalf("not paired: %v", err)
				}
				b.requireTaken("pg_monitor", ofA)
				return
			}
			const want = "the other broker refuses: no proof of the private key of a dialog certificate"
			if err == nil || err.Error() != want {
				t.Errorf("got %v", err)
			}
			if len(b.peers()) != 0 {
				t.Error("trusted")
			}
			b.requireTaken("pg_monitor")
		})
	}
}

func (b *broker) prove(bound channel, who string, offer truststore.PairingOffer) proofs {
	b.Helper()
	all, err := prove(b.Context(), b.pool, b.keys, bound, who, offer)
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// The caller asks for the same proof of who is called.
func TestCallerRefusesADialogCertificateWithoutProof(t *testing.T) {
	t.Parallel()
	b := newBroker(t, "b")
	b.certify()
	offer := b.offer()
	bound := channel{material: make([]byte, 32)}
	last := message{Verdict: new(true), Offer: &offer, Possession: b.prove(bound, "called", offer)}
	if _, err := offerIn(last, nil, bound); err != nil {
		t.Fatal(err)
	}
	last.Possession = b.prove(bound, "caller", offer)
	if _, err := offerIn(last, nil, bound); !errors.Is(err, dialogsecurity.ErrNotPossessed) {
		t.Errorf("got %v", err)
	}
}

// Without the master key nothing can be proven: the pairing goes on, and the certificates are left out.
func TestCertificatesAreNotOfferedWithoutTheMasterKey(t *testing.T) {
	t.Parallel()
	b := newBroker(t, "b")
	b.certify()
	offer, obstacle, err := Offer(t.Context(), b.pool, nil)
	if err != nil || !errors.Is(obstacle, dialogsecurity.ErrNoMasterKey) ||
		len(offer.DialogCertificates)+len(offer.Databases[0].Certificates) != 0 {
		t.Errorf("offered %+v (%v, %v)", offer, obstacle, err)
	}
}

// Proofs of unknown peers change nothing but the verdict.
func FuzzPossession(f *testing.F) {
	f.Add([]byte(`{"offer":{"databases":[{"instance":"11111111-1111-1111-1111-111111111111","certificates":["UEFSTEVZQzE="]}]},` +
		`"possession":["AA=="]}`))
	f.Add([]byte(`{"possession":[null,"",7]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parse(text)
		if err != nil || m.Offer == nil {
			return
		}
		certificates := 0
		for _, d := range m.Offer.Databases {
			certificates += len(d.Certificates)
		}
		if err := m.Possession.verify(channel{}, "caller", *m.Offer); err == nil && certificates > 0 {
			again, _ := json.Marshal(m)
			t.Errorf("believed %s", again)
		}
	})
}
