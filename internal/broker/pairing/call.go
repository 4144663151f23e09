package pairing

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/identity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

// answerTimeout bounds each step for which no people are needed.
const answerTimeout = 30 * time.Second

// Call describes a broker to pair with.
type Call struct {
	Address string // host:port
	Own     *identity.Certificate
	// Offer is sent to the other side once it is trusted.
	Offer truststore.PairingOffer
	// Keys and DB have the private keys of the dialog certificates in Offer.
	Keys *dialogsecurity.MasterKeys
	DB   parley.DB
	// Token is that of an invitation; nil: people compare codes.
	Token *Token
	// Confirm shows people who answers, and what to compare; with a token it is not called. True: it is the right one.
	Confirm func(ctx context.Context, found Found) (bool, error)
}

// Found is the broker that has answered.
type Found struct {
	Fingerprint identity.Fingerprint
	Code        string                  // "" with an invitation
	Offer       truststore.PairingOffer // without services as long as nobody has confirmed
}

// ErrRefused: people on one of the sides have not confirmed.
var ErrRefused = errors.New("not confirmed: nobody is trusted")

// Do pairs, and gives the key of the other side, which already trusts this one.
func (c Call) Do(ctx context.Context) (k truststore.PairedKey, err error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return k, err
	}
	defer func() { _ = conn.Close() }()
	end := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer end()
	state := conn.ConnectionState()
	leaf, called, err := peerOf(state)
	if err != nil {
		return k, err
	}
	bound, err := newChannel(state, c.Own.Fingerprint, called)
	if err != nil {
		return k, err
	}
	possession, err := prove(ctx, c.DB, c.Keys, bound, "caller", c.Offer)
	if err != nil {
		return k, err
	}
	var offer truststore.PairingOffer
	if c.Token != nil {
		offer, err = c.useInvitation(conn, bound, possession)
	} else {
		offer, err = c.compare(ctx, conn, bound, possession)
	}
	if ctx.Err() != nil {
		return k, ctx.Err()
	}
	return keyOf(leaf, offer), err
}

func (c Call) connect(ctx context.Context) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", c.Address)
	if err != nil {
		return nil, fmt.Errorf("connect to the other broker: %w", err)
	}
	conn := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{Protocol}, Certificates: []tls.Certificate{*c.Own.TLS()},
		// Pairing finds out whose key it is.
		InsecureSkipVerify: true, //nolint:gosec // as stated above
		VerifyConnection: func(state tls.ConnectionState) error {
			leaf, _, err := peerOf(state)
			if err != nil {
				return err
			}
			return identity.Check(leaf, time.Now())
		},
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		if strings.Contains(err.Error(), "no application protocol") {
			return nil, fmt.Errorf("%s does not let anybody pair just now: parley pair --invite or --accept there (%w)", c.Address, err)
		}
		return nil, fmt.Errorf("connect to the other broker: %w", err)
	}
	if conn.ConnectionState().NegotiatedProtocol != Protocol {
		_ = conn.Close()
		return nil, fmt.Errorf("%s is no broker that can be paired with", c.Address)
	}
	return conn, nil
}

// useInvitation proves to know the secret, and trusts an end that proves it too.
func (c Call) useInvitation(conn *tls.Conn, bound channel, possession proofs) (offer truststore.PairingOffer, err error) {
	if err := conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return offer, err
	}
	hello := message{Invitation: &c.Token.Invitation, Proof: bound.proofOf(c.Token.secret, "caller")}
	if err := send(conn, hello); err != nil {
		return offer, err
	}
	answer, err := receive(conn)
	if err != nil {
		return offer, err
	}
	if !hmac.Equal(answer.Proof, bound.proofOf(c.Token.secret, "called")) {
		return offer, errors.New("what answers does not know the invitation: a third party is in the middle, or the address is wrong")
	}
	if err := send(conn, message{Offer: &c.Offer, Possession: possession}); err != nil {
		return offer, err
	}
	last, err := receive(conn)
	return offerIn(last, err, bound)
}

// compare lets people compare codes.
func (c Call) compare(ctx context.Context, conn *tls.Conn, bound channel, possession proofs) (offer truststore.PairingOffer, err error) {
	if err := conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return offer, err
	}
	number := make([]byte, numberLength)
	if _, err := rand.Read(number); err != nil {
		return offer, fmt.Errorf("draw a random number: %w", err)
	}
	if err := send(conn, message{Commitment: bound.commitment(number)}); err != nil {
		return offer, err
	}
	answer, err := receive(conn)
	if err != nil {
		return offer, err
	}
	if len(answer.Number) != numberLength || answer.Offer == nil {
		return offer, errors.New("the other broker does not keep to the protocol")
	}
	if err := send(conn, message{Number: number, Offer: shown(c.Offer)}); err != nil {
		return offer, err
	}
	// From here on people take their time; the other side has a limit.
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return offer, err
	}
	// The other side may leave meanwhile.
	asking, left := context.WithCancelCause(ctx)
	defer left(nil)
	type word struct {
		message message
		err     error
	}
	last := make(chan word, 1)
	go func() {
		m, err := receive(conn) // ends at the latest when Do closes the connection
		if err != nil {
			left(err)
		}
		last <- word{m, err}
	}()
	found := Found{Fingerprint: bound.called, Code: bound.code(number, answer.Number), Offer: *answer.Offer}
	isConfirmed, err := c.Confirm(asking, found)
	if cause := context.Cause(asking); cause != nil {
		return offer, cause
	}
	if err != nil {
		return offer, err
	}
	verdict := message{Verdict: &isConfirmed}
	if isConfirmed {
		verdict.Offer, verdict.Possession = &c.Offer, possession
	}
	if err := send(conn, verdict); err != nil {
		return offer, err
	}
	if !isConfirmed {
		return offer, ErrRefused
	}
	w := <-last
	offer, err = offerIn(w.message, w.err, bound)
	offer.DialogCertificates = answer.Offer.DialogCertificates // which people have seen
	return offer, err
}

// shown is the part of an offer that people see before they confirm.
func shown(offer truststore.PairingOffer) *truststore.PairingOffer {
	return &truststore.PairingOffer{Name: offer.Name, DialogCertificates: offer.DialogCertificates}
}

// offerIn reads the last message of the other side, which trusts this one now.
func offerIn(last message, err error, bound channel) (offer truststore.PairingOffer, _ error) {
	switch {
	case err != nil:
		return offer, err
	case last.Verdict == nil || !*last.Verdict || last.Offer == nil:
		return offer, ErrRefused
	}
	return *last.Offer, last.Possession.verify(bound, "called", *last.Offer)
}
