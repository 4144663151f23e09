package pairing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/identity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/parleytest"
)

// asking is a call in the background, whose people wait for an answer of the test.
type asking struct {
	found  chan Found
	answer chan bool
	done   chan error
	key    truststore.PairedKey
}

func (b *broker) ask(address string) *asking {
	b.Helper()
	a := &asking{found: make(chan Found, 1), answer: make(chan bool, 1), done: make(chan error, 1)}
	call := Call{Address: address, Own: b.own, Offer: b.offer(), Keys: b.keys, DB: b.pool}
	call.Confirm = func(ctx context.Context, found Found) (bool, error) {
		a.found <- found
		select {
		case answer := <-a.answer:
			return answer, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	ctx, cancel := context.WithCancel(b.Context())
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		var err error
		a.key, err = call.Do(ctx)
		a.done <- err
	}()
	b.Cleanup(func() {
		cancel()
		<-finished
	})
	return a
}

func TestPeopleOnBothSidesConfirmACode(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	pairing := b.open()
	call := a.ask(b.address)
	found := parleytest.Receive(t, call.found, "the code to compare")
	request := b.request(pairing, truststore.PairingWaiting)
	if found.Code != request.Code || len(found.Code) != 17 {
		t.Errorf("the codes are %q and %q", found.Code, request.Code)
	}
	if found.Fingerprint != b.own.Fingerprint || request.Fingerprint != a.own.Fingerprint.String() {
		t.Errorf("the keys are %s and %s", found.Fingerprint, request.Fingerprint)
	}
	if found.Offer.Name != b.offer().Name || request.Offer.Name != a.offer().Name {
		t.Errorf("the names are %q and %q", found.Offer.Name, request.Offer.Name)
	}
	if len(found.Offer.Databases)+len(request.Offer.Databases) != 0 {
		t.Error("what is there is sent to unknown peers")
	}
	if err := truststore.ConfirmPairing(t.Context(), b.pool, request.ID, truststore.PairingChoice{Name: "a", Role: "pg_monitor"}); err != nil {
		t.Fatal(err)
	}
	if len(b.peers()) != 0 {
		t.Error("trusted before the other side has confirmed")
	}
	call.answer <- true
	if err := parleytest.Receive(t, call.done, "the end of the call"); err != nil {
		t.Fatal(err)
	}
	b.request(pairing, truststore.PairingDone)
	if call.key.Fingerprint != b.own.Fingerprint.String() || len(call.key.Offer.Databases) != 1 {
		t.Errorf("paired with %+v", call.key)
	}
	if _, err := truststore.PairPeer(t.Context(), a.pool, call.key, truststore.PairingChoice{}); err != nil {
		t.Fatal(err)
	}
	a.requireLetIn(b, true)
	b.requireLetIn(a, true)
	if peers := b.peers(); len(peers) != 1 || peers[0].Name != "a" || *peers[0].Role != "pg_monitor" || len(peers[0].BrokerInstances) != 1 {
		t.Errorf("peers of b: %+v", peers)
	}
	// The window was for one.
	if err := parleytest.Receive(t, a.ask(b.address).done, "the end of the call"); err == nil || !strings.Contains(err.Error(), "does not let anybody pair") {
		t.Errorf("got %v", err)
	}
}

func TestNobodyIsTrustedUnlessBothSidesConfirm(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		do    func(b *broker, call *asking, pairing parley.UUID, request truststore.PairingRequest)
		state string
	}{
		{"the caller does not", func(_ *broker, call *asking, _ parley.UUID, _ truststore.PairingRequest) { call.answer <- false }, truststore.PairingGone},
		{"the called one does not", func(b *broker, call *asking, _ parley.UUID, request truststore.PairingRequest) {
			call.answer <- true
			if err := truststore.RefusePairing(b.Context(), b.pool, request.ID); err != nil {
				b.Error(err)
			}
		}, truststore.PairingRefused},
		{"the window is closed", func(b *broker, call *asking, pairing parley.UUID, _ truststore.PairingRequest) {
			call.answer <- true
			if err := truststore.ClosePairing(b.Context(), b.pool, pairing); err != nil {
				b.Error(err)
			}
		}, truststore.PairingGone},
		{"the window is over, though it was confirmed", func(b *broker, call *asking, _ parley.UUID, request truststore.PairingRequest) {
			if err := truststore.ConfirmPairing(b.Context(), b.pool, request.ID, truststore.PairingChoice{}); err != nil {
				b.Error(err)
			}
			b.exec("update parley._p_pairing set expires_at = now()")
			call.answer <- true
		}, truststore.PairingGone},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, b := newBroker(t, "a"), newBroker(t, "b")
			pairing := b.open()
			call := a.ask(b.address)
			parleytest.Receive(t, call.found, "the code to compare")
			request := b.request(pairing, truststore.PairingWaiting)
			test.do(b, call, pairing, request)
			if err := parleytest.Receive(t, call.done, "the end of the call"); err == nil {
				t.Error("paired")
			}
			b.request(pairing, test.state)
			if len(b.peers()) != 0 {
				t.Error("trusted")
			}
			if err := truststore.ConfirmPairing(t.Context(), b.pool, request.ID, truststore.PairingChoice{}); err == nil {
				t.Error("what is over can be confirmed")
			}
		})
	}
}

func TestCallerThatLeavesIsForgotten(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	pairing := b.open()
	conn, bound := speak(t, a.own, b.address)
	number := make([]byte, numberLength)
	for _, m := range []message{{Commitment: bound.commitment(number)}, {Number: number, Offer: &truststore.PairingOffer{Name: "a"}}} {
		if err := send(conn, m); err != nil {
			t.Fatal(err)
		}
	}
	b.request(pairing, truststore.PairingWaiting)
	_ = conn.Close()
	b.request(pairing, truststore.PairingGone)
}

func TestCodesDifferWhenSomebodyIsInTheMiddle(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	pairing := b.open()
	address, own := between(t, b)
	call := a.ask(address)
	// Passed on as it is, the number does not fit what the other connection is bound to.
	select {
	case err := <-call.done:
		if err == nil {
			t.Error("paired")
		}
	case <-time.After(patience):
		t.Error("people are asked to compare codes")
	}
	// So a man in the middle has to have numbers of his own, on both sides.
	conn, bound := speak(t, own, b.address)
	number := make([]byte, numberLength)
	if err := send(conn, message{Commitment: bound.commitment(number)}); err != nil {
		t.Fatal(err)
	}
	answer, err := receive(conn)
	if err != nil {
		t.Fatal(err)
	}
	other := append([]byte{1}, number[1:]...)
	if err := send(conn, message{Number: other, Offer: &truststore.PairingOffer{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := receive(conn); err == nil {
		t.Error("the number is another than the one that the caller was bound to")
	}
	if requests, err := truststore.ReadPairingRequests(t.Context(), b.pool, pairing); err != nil || len(requests) != 0 {
		t.Errorf("asked: %v (%v)", requests, err)
	}
	// The code depends on the connection, and so on the keys at its ends.
	_, elsewhere := speak(t, a.own, b.address)
	if bound.code(number, answer.Number) == elsewhere.code(number, answer.Number) || bound.code(number, answer.Number) == bound.code(other, answer.Number) {
		t.Error("two connections have the same code")
	}
}

func TestOperatorIsNotFloodedByCallers(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	pairing := b.open()
	b.exec(`insert into parley._p_pairing_request (pairing_id, fingerprint, certificate, offer, code, remote, state)
		select $1, 'x', '', '{}', '', '', 'GONE' from generate_series(1, 20)`, pairing)
	if err := parleytest.Receive(t, a.ask(b.address).done, "the end of the call"); err != nil && !errors.Is(err, ErrRefused) && !strings.Contains(err.Error(), "used or over") {
		t.Errorf("got %v", err)
	} else if err == nil {
		t.Error("paired")
	}
}

// The side that is called trusts no key before both have confirmed, whatever else the caller's program sends, and in whichever order.
func TestCalledBrokerTrustsNoKeyBeforeBothSidesHaveConfirmed(t *testing.T) {
	t.Parallel()
	for name, isConfirmed := range map[string]bool{"the caller says no": false, "the caller says yes first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := newBroker(t, "a"), newBroker(t, "b")
			pairing := b.open()
			conn, bound := speak(t, a.own, b.address)
			number, offer := make([]byte, numberLength), a.offer()
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
			write(message{Number: number, Offer: &offer})
			request := b.request(pairing, truststore.PairingWaiting)
			if isConfirmed {
				write(message{Verdict: new(true), Offer: &offer})
				// It goes on waiting for its own people: a poll or two later it still does.
				b.exec("select pg_sleep(1.2)")
				requests, err := truststore.ReadPairingRequests(t.Context(), b.pool, pairing)
				if err != nil || len(requests) != 1 || requests[0].State != truststore.PairingWaiting || len(b.peers()) != 0 {
					t.Fatalf("requests %+v (%v), peers %+v", requests, err, b.peers())
				}
			}
			if err := truststore.ConfirmPairing(t.Context(), b.pool, request.ID, truststore.PairingChoice{}); err != nil {
				t.Fatal(err)
			}
			if !isConfirmed {
				write(message{Verdict: new(false), Offer: &offer})
			}
			m, err := receive(conn)
			if isTrusted := err == nil && m.Verdict != nil && *m.Verdict; isTrusted != isConfirmed || len(b.peers()) > 0 != isConfirmed {
				t.Errorf("trusted: %v, peers %+v, %v", isTrusted, b.peers(), err)
			}
		})
	}
}

// A caller keeps to the protocol, with a certificate that is valid now; people are shown what they are to compare, and no more.
func TestCalledBrokerShowsPeopleWhatTheyCompare(t *testing.T) {
	t.Parallel()
	b := newBroker(t, "b")
	pairing := b.open()
	for _, test := range []struct {
		name   string
		number int // bytes
		dates  identity.Config
		isSeen bool
	}{
		{"a short number", 1, identity.Config{}, false},
		{"no number", 0, identity.Config{}, false},
		{"a certificate that has expired", numberLength, identity.Config{Now: time.Now().Add(-2 * identity.Validity)}, false},
		{"a certificate that is not yet valid", numberLength, identity.Config{Now: time.Now().Add(48 * time.Hour)}, false},
		{"all in order", numberLength, identity.Config{}, true},
	} {
		own, err := identity.New(test.dates)
		if err != nil {
			t.Fatal(err)
		}
		conn, bound := speak(t, own, b.address)
		number := make([]byte, test.number)
		offer := truststore.PairingOffer{Name: "a", Address: "tcp://a.test:4022", DialogCertificates: []string{strings.Repeat("ab", 32)}}
		if err := send(conn, message{Commitment: bound.commitment(number)}); err != nil {
			t.Fatal(err)
		}
		if _, err := receive(conn); err == nil {
			err = send(conn, message{Number: number, Offer: &offer})
			if err != nil {
				t.Fatal(err)
			}
		}
		if test.isSeen {
			request := b.request(pairing, truststore.PairingWaiting)
			if request.Offer.Address != "" || request.Offer.Name != "a" || len(request.Offer.DialogCertificates) != 1 {
				t.Errorf("people are shown %+v", request.Offer)
			}
			continue
		}
		if m, err := receive(conn); err == nil && m.Failure == "" {
			t.Errorf("%s: answered %+v", test.name, m)
		}
		if requests, err := truststore.ReadPairingRequests(t.Context(), b.pool, pairing); err != nil || len(requests) != 0 {
			t.Errorf("%s: people are asked about %+v (%v)", test.name, requests, err)
		}
	}
}
