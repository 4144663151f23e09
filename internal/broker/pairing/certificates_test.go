package pairing

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/identity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/parleytest"
)

// certify gives the owner of a service a dialog certificate, and returns its fingerprint.
func (b *broker) certify() (fingerprint string) {
	b.Helper()
	b.exec("select parley.create_queue('q')")
	b.exec("select parley.create_service('//' || current_database(), 'q')")
	certificate, sealed, err := dialogsecurity.NewCertificate(b.keys, "own", time.Now().Add(-time.Hour), time.Now().AddDate(1, 0, 0))
	if err != nil {
		b.Fatal(err)
	}
	b.exec("select parley.create_certificate('own', certificate => $1, private_key => $2)", certificate.Bytes, sealed)
	return fmt.Sprintf("%x", certificate.Fingerprint)
}

// requireTaken reports whether exactly these certificates came with peers, for this role.
func (b *broker) requireTaken(role string, want ...string) {
	b.Helper()
	var got []string
	err := b.pool.QueryRow(b.Context(), `
		select array(select fingerprint || ' ' || role_name || ' ' || state from parley.peer_dialog_certificates order by 1)`).Scan(&got)
	if err != nil {
		b.Fatal(err)
	}
	for i := range want {
		want[i] += " " + role + " VALID"
	}
	if !slices.Equal(got, want) {
		b.Errorf("the dialog certificates of peers are %q, want %q", got, want)
	}
}

func TestInvitationCarriesDialogCertificates(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	ofA, ofB := a.certify(), b.certify()
	key, err := a.call(b.address, b.invite(truststore.PairingChoice{Role: "pg_monitor"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := truststore.PairPeer(t.Context(), a.pool, key, truststore.PairingChoice{Role: "pg_read_all_data"}); err != nil {
		t.Fatal(err)
	}
	b.requireTaken("pg_monitor", ofA)
	a.requireTaken("pg_read_all_data", ofB)
}

func TestDialogCertificatesAreLeftOutOnDemand(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	a.certify()
	b.certify()
	choice := truststore.PairingChoice{Role: "pg_monitor", IsWithoutCertificates: true}
	key, err := a.call(b.address, b.invite(choice))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := truststore.PairPeer(t.Context(), a.pool, key, choice); err != nil {
		t.Fatal(err)
	}
	b.requireTaken("pg_monitor")
	a.requireTaken("pg_monitor")
}

func TestPeopleSeeTheDialogCertificatesThatTheyConfirm(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	ofA, ofB := a.certify(), b.certify()
	pairing := b.open()
	call := a.ask(b.address)
	found := parleytest.Receive(t, call.found, "the code to compare")
	request := b.request(pairing, truststore.PairingWaiting)
	if !slices.Equal(found.Offer.DialogCertificates, []string{ofB}) || !slices.Equal(request.Offer.DialogCertificates, []string{ofA}) {
		t.Errorf("shown are %q and %q", found.Offer.DialogCertificates, request.Offer.DialogCertificates)
	}
	if len(found.Offer.Databases)+len(request.Offer.Databases) != 0 {
		t.Error("more than the fingerprints is sent to unknown peers")
	}
	if err := truststore.ConfirmPairing(t.Context(), b.pool, request.ID, truststore.PairingChoice{Role: "pg_monitor"}); err != nil {
		t.Fatal(err)
	}
	b.requireTaken("pg_monitor")
	call.answer <- true
	if err := parleytest.Receive(t, call.done, "the end of the call"); err != nil {
		t.Fatal(err)
	}
	if _, err := truststore.PairPeer(t.Context(), a.pool, call.key, truststore.PairingChoice{Role: "pg_monitor"}); err != nil {
		t.Fatal(err)
	}
	b.requireTaken("pg_monitor", ofA)
	a.requireTaken("pg_monitor", ofB)
}

// A caller that shows one certificate and sends another is found out, at either end.
func TestDialogCertificateThatWasNotShownIsRefused(t *testing.T) {
	t.Parallel()
	a, b, other := newBroker(t, "a"), newBroker(t, "b"), newBroker(t, "other")
	a.certify()
	other.certify()
	pairing := b.open()
	call := Call{Address: b.address, Own: a.own, Offer: a.offer(), Confirm: nil}
	conn, bound := speak(t, a.own, b.address)
	number := make([]byte, numberLength)
	_, _ = rand.Read(number)
	if err := send(conn, message{Commitment: bound.commitment(number)}); err != nil {
		t.Fatal(err)
	}
	if _, err := receive(conn); err != nil {
		t.Fatal(err)
	}
	if err := send(conn, message{Number: number, Offer: shown(call.Offer)}); err != nil {
		t.Fatal(err)
	}
	request := b.request(pairing, truststore.PairingWaiting)
	if err := truststore.ConfirmPairing(t.Context(), b.pool, request.ID, truststore.PairingChoice{Role: "pg_monitor"}); err != nil {
		t.Fatal(err)
	}
	lie := other.offer()
	lie.Address = ""
	// The proof of the other certificate is in order: that it was not shown is what counts.
	possession := other.prove(bound, "caller", lie)
	if err := send(conn, message{Verdict: new(true), Offer: &lie, Possession: possession}); err != nil {
		t.Fatal(err)
	}
	if m, err := receive(conn); err == nil || strings.Contains(err.Error(), "proof") {
		t.Errorf("answered %+v, %v", m, err)
	}
	if len(b.peers()) != 0 {
		t.Error("trusted")
	}
	b.requireTaken("pg_monitor")

	key := keyOf(a.own.Leaf, other.offer())
	key.Offer.DialogCertificates = a.offer().DialogCertificates
	_, err := truststore.PairPeer(t.Context(), b.pool, key, truststore.PairingChoice{Role: "pg_monitor"})
	if number, _ := parley.ErrorNumber(err); number != 28055 {
		t.Errorf("got %v", err)
	}
}

// swap holds both ends of two connections, keeps to the protocol on each, and puts its own certificate in the place of those that pass.
func swap(t *testing.T, called *broker, own truststore.PairingOffer) (address string) {
	t.Helper()
	key, err := identity.New(identity.Config{Name: "in the middle"})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	conn, bound := speak(t, key, called.address)
	go func() {
		defer close(done)
		raw, err := listener.Accept()
		if err != nil {
			return
		}
		near := tls.Server(raw, &tls.Config{
			Certificates: []tls.Certificate{*key.TLS()}, NextProtos: []string{Protocol}, ClientAuth: tls.RequireAnyClientCert,
		})
		defer func() { _ = near.Close() }()
		number := make([]byte, numberLength)
		if _, err := receive(near); err != nil || send(conn, message{Commitment: bound.commitment(number)}) != nil {
			return
		}
		theirs, err := receive(conn)
		if err != nil || theirs.Offer == nil {
			return
		}
		theirs.Offer.DialogCertificates = own.DialogCertificates
		if send(near, theirs) != nil {
			return
		}
		mine, err := receive(near)
		if err != nil || mine.Offer == nil {
			return
		}
		mine.Offer.DialogCertificates, mine.Number = own.DialogCertificates, number
		if send(conn, mine) != nil {
			return
		}
		_, _ = receive(near)
	}()
	return listener.Addr().String()
}

func TestCodesDifferWhenACertificateWasChangedOnTheWay(t *testing.T) {
	t.Parallel()
	a, b, middle := newBroker(t, "a"), newBroker(t, "b"), newBroker(t, "middle")
	a.certify()
	b.certify()
	foreign := middle.certify()
	pairing := b.open()
	call := a.ask(swap(t, b, middle.offer()))
	found := parleytest.Receive(t, call.found, "the code to compare")
	request := b.request(pairing, truststore.PairingWaiting)
	if !slices.Equal(found.Offer.DialogCertificates, []string{foreign}) || !slices.Equal(request.Offer.DialogCertificates, []string{foreign}) {
		t.Fatalf("nothing was changed: %q and %q", found.Offer.DialogCertificates, request.Offer.DialogCertificates)
	}
	if found.Code == request.Code {
		t.Error("people see the same code on both sides")
	}
	call.answer <- false
	if err := parleytest.Receive(t, call.done, "the end of the call"); err == nil {
		t.Error("paired")
	}
}

// Programs that know nothing of dialog certificates do not send them, and do not read them.
func TestBrokersThatOfferNoDialogCertificatesArePairedWith(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	a.certify()
	b.certify()
	offer := a.offer().WithoutDialogCertificates()
	text, err := json.Marshal(offer)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("certificate")) {
		t.Errorf("says %s", text)
	}
	token := b.invite(truststore.PairingChoice{Role: "pg_monitor"})
	key, err := Call{Address: b.address, Own: a.own, Offer: offer, Token: &token}.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.requireTaken("pg_monitor")
	key.Offer = key.Offer.WithoutDialogCertificates() // nor does the other one
	if _, err := truststore.PairPeer(t.Context(), a.pool, key, truststore.PairingChoice{Role: "pg_monitor"}); err != nil {
		t.Fatal(err)
	}
	a.requireTaken("pg_monitor")
	if len(a.peers()) != 1 || len(b.peers()) != 1 {
		t.Error("not paired")
	}
}

// Messages for a role are sealed for one certificate, so a peer must not change which.
func TestDialogCertificateIsLeftOutWhereItWouldChangeSomething(t *testing.T) {
	t.Parallel()
	a, b, c := newBroker(t, "a"), newBroker(t, "b"), newBroker(t, "c")
	a.certify()
	c.certify()
	for _, test := range []struct {
		from         *broker
		role, reason string
	}{
		{a, "", "acts as no role"},
		{a, "pg_monitor", ""},
		{c, "pg_monitor", "has another one already"},
		{c, "pg_read_all_data", ""},
	} {
		if _, err := test.from.call(b.address, b.invite(truststore.PairingChoice{Role: test.role})); err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(b.peers(), func(p truststore.Peer) bool { return p.Fingerprints[0] == test.from.own.Fingerprint.String() })
		fingerprints := test.from.offer().DialogCertificates
		_, reason, err := truststore.ReadPeerDialogCertificates(t.Context(), b.pool, b.peers()[at].Name, fingerprints)
		if err != nil || test.reason == "" && reason != "" || !strings.Contains(reason, test.reason) {
			t.Errorf("as %q: %q (%v)", test.role, reason, err)
		}
	}
}

// It is the peer's, for better or worse: what it may do no longer over its link, it may not do with its signature either.
func TestDialogCertificateSharesTheFateOfItsPeer(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	ofA := a.certify()
	name, err := truststore.PairPeer(t.Context(), b.pool, keyOf(a.own.Leaf, a.offer()), truststore.PairingChoice{Role: "pg_monitor"})
	if err != nil {
		t.Fatal(err)
	}
	b.requireTaken("pg_monitor", ofA)
	b.exec("select parley.alter_peer($1, role => 'pg_read_all_data')", name)
	b.requireTaken("pg_read_all_data", ofA)
	b.exec("select parley.revoke_peer($1)", name)
	var state string
	if err := b.pool.QueryRow(t.Context(), "select state from parley.certificates").Scan(&state); err != nil || state != "REVOKED" {
		t.Fatalf("it is %s (%v)", state, err)
	}
	b.exec("select parley.drop_peer($1)", name)
	b.requireTaken("")
	if _, err := truststore.PairPeer(t.Context(), b.pool, keyOf(a.own.Leaf, a.offer()), truststore.PairingChoice{Role: "pg_monitor"}); err != nil {
		t.Fatal(err)
	}
	b.requireTaken("pg_monitor", ofA)
	b.exec("select parley.alter_peer($1, role => 'public')", name)
	b.requireTaken("")
}
