package pairing

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/transport"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

const (
	// pollInterval is how often the database is asked whether people have confirmed.
	pollInterval = 500 * time.Millisecond
	// pollTimeout bounds the query of a database whether a pairing is open.
	pollTimeout = 3 * time.Second
	// gateInterval is the shortest time between two such queries, however many unknown peers call.
	gateInterval = 250 * time.Millisecond
	// callsMost is how many calls of one address are answered in a callsPeriod.
	callsMost   = 30
	callsPeriod = time.Minute
)

// Host answers calls for pairing, for the databases of a daemon.
type Host struct {
	// Databases are asked in this order for an open pairing.
	Databases []parley.DB
	// Certificate gives the certificate of this broker.
	Certificate func() (*identity.Certificate, error)
	// Keys open the private keys of dialog certificates, which are offered with a proof only. Nil: none is offered.
	Keys *dialogsecurity.MasterKeys
	// Address is where it listens, tcp://host:port, as far as it is known.
	Address string
	Logger  *slog.Logger

	gate  gate
	calls calls
	lines transport.LogLimit
}

// Protocol is the name by which unknown peers ask for pairing.
func (h *Host) Protocol() string { return Protocol }

// IsOpen reports whether a pairing is open in one of the databases. Callers may ask at any rate: the databases are asked a few times a
// second at most, and a host that calls too often is refused.
func (h *Host) IsOpen(ctx context.Context, remote net.Addr) bool {
	if host := transport.HostOf(remote); !h.calls.allow(host, time.Now()) {
		if withheld, isAllowed := h.lines.Allow("calls", host, time.Now()); isAllowed {
			h.Logger.Warn("too many calls for pairing from one address", "remote", host, "withheld", withheld)
		}
		return false
	}
	return h.gate.ask(ctx, h.isOpen)
}

// isOpen asks the databases.
func (h *Host) isOpen(ctx context.Context) bool {
	for _, db := range h.Databases {
		if isOpen, err := truststore.IsPairingOpen(ctx, db); err == nil && isOpen {
			return true
		}
	}
	return false
}

// errNotNow is all that an unknown peer receives when something is wrong here.
var errNotNow = errors.New("not now")

// Serve pairs with a caller.
func (h *Host) Serve(ctx context.Context, conn *tls.Conn) {
	remote := conn.RemoteAddr().String()
	name, err := h.serve(ctx, conn, remote)
	switch {
	case err == nil:
		h.Logger.Info("a peer is trusted: it was paired with", "peer", name, "remote", remote)
	case ctx.Err() == nil:
		isUnproven := errors.Is(err, dialogsecurity.ErrNotPossessed)
		if withheld, isAllowed := h.lines.Allow("failed", transport.HostOf(conn.RemoteAddr()), time.Now()); isAllowed {
			h.Logger.Warn("a pairing has failed", "remote", remote, "reason", err, "withheld", withheld)
		}
		text := errNotNow.Error()
		if errors.Is(err, truststore.ErrPairingOver) {
			text = "the invitation is used or over, or nobody may ask"
		}
		if isUnproven {
			text = "no proof of the private key of a dialog certificate"
		}
		_ = conn.SetDeadline(time.Now().Add(answerTimeout))
		_ = send(conn, message{Failure: text})
	}
}

// guest is a caller.
type guest struct {
	conn   *tls.Conn
	remote string
	key    truststore.PairedKey
	bound  channel
}

func (h *Host) serve(ctx context.Context, conn *tls.Conn, remote string) (name string, err error) {
	if err := conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return "", err
	}
	state := conn.ConnectionState()
	leaf, caller, err := peerOf(state)
	if err == nil {
		err = identity.Check(leaf, time.Now())
	}
	if err != nil {
		return "", err
	}
	own, err := h.Certificate()
	if err != nil {
		return "", err
	}
	bound, err := newChannel(state, caller, own.Fingerprint)
	if err != nil {
		return "", err
	}
	hello, err := receive(conn)
	if err != nil {
		return "", err
	}
	g := guest{conn: conn, remote: remote, key: keyOf(leaf, truststore.PairingOffer{}), bound: bound}
	switch {
	case hello.Invitation != nil:
		return h.redeem(ctx, g, hello)
	case len(hello.Commitment) > 0:
		return h.compare(ctx, g, hello.Commitment)
	}
	return "", errors.New("the caller does not keep to the protocol")
}

// offer is the statement of a database about itself, with the address of this daemon and the proofs of its certificates.
func (h *Host) offer(ctx context.Context, db parley.DB, bound channel) (offer truststore.PairingOffer, possession proofs, err error) {
	if offer, err = h.ownOffer(ctx, db); err != nil {
		return offer, nil, err
	}
	offer.Address = h.Address
	possession, err = prove(ctx, db, h.Keys, bound, "called", offer)
	return offer, possession, err
}

func (h *Host) ownOffer(ctx context.Context, db parley.DB) (truststore.PairingOffer, error) {
	offer, obstacle, err := Offer(ctx, db, h.Keys)
	if obstacle != nil {
		if withheld, isAllowed := h.lines.Allow("certificates", "own", time.Now()); isAllowed {
			h.Logger.Warn("a pairing goes on without the dialog certificates of this broker", "reason", obstacle, "withheld", withheld)
		}
	}
	return offer, err
}

// redeem trusts a caller that proves to have an invitation.
func (h *Host) redeem(ctx context.Context, g guest, hello message) (name string, err error) {
	var db parley.DB
	var secret []byte
	err = truststore.ErrPairingOver
	for _, db = range h.Databases {
		if secret, err = truststore.FindInvitation(ctx, db, *hello.Invitation); err == nil {
			break
		}
	}
	if err != nil {
		return "", err
	}
	if !hmac.Equal(hello.Proof, g.bound.proofOf(secret, "caller")) {
		err := errors.New("the caller names an invitation and does not have it")
		return "", errors.Join(err, truststore.RecordPairingFailure(ctx, db, *hello.Invitation))
	}
	if err := send(g.conn, message{Proof: g.bound.proofOf(secret, "called")}); err != nil {
		return "", err
	}
	answer, err := receive(g.conn)
	if err != nil {
		return "", err
	}
	if answer.Offer == nil {
		return "", errors.New("the caller does not keep to the protocol")
	}
	if err := answer.Possession.verify(g.bound, "caller", *answer.Offer); err != nil {
		return "", err
	}
	offer, possession, err := h.offer(ctx, db, g.bound)
	if err != nil {
		return "", err
	}
	g.key.Offer = *answer.Offer
	if name, err = truststore.RedeemInvitation(ctx, db, *hello.Invitation, g.key); err != nil {
		return "", err
	}
	return name, send(g.conn, message{Verdict: new(true), Offer: &offer, Possession: possession})
}

// compare lets people at both sides compare codes.
func (h *Host) compare(ctx context.Context, g guest, commitment []byte) (name string, err error) {
	number := make([]byte, numberLength)
	if _, err := rand.Read(number); err != nil {
		return "", fmt.Errorf("draw a random number: %w", err)
	}
	// Before people have confirmed the caller learns no more than what an operator has to see.
	if err := send(g.conn, message{Number: number, Offer: h.shown(ctx)}); err != nil {
		return "", err
	}
	answer, err := receive(g.conn)
	if err != nil {
		return "", err
	}
	if answer.Offer == nil || len(answer.Number) != numberLength || !hmac.Equal(commitment, g.bound.commitment(answer.Number)) {
		return "", errors.New("the caller does not keep to the number that it was bound to")
	}
	g.key.Offer = *shown(*answer.Offer)
	var db parley.DB
	var request parley.UUID
	err = truststore.ErrPairingOver
	for _, db = range h.Databases {
		if request, err = truststore.RequestPairing(ctx, db, g.key, g.bound.code(answer.Number, number), g.remote); err == nil {
			break
		}
	}
	if err != nil {
		return "", err
	}
	defer func() {
		_ = truststore.LeavePairing(context.WithoutCancel(ctx), db, request)
	}()
	return h.await(ctx, g, db, request)
}

// shown describes to people the database that the caller is going to be paired with: the first one with an open window.
func (h *Host) shown(ctx context.Context) *truststore.PairingOffer {
	for _, db := range h.Databases {
		if isOpen, err := truststore.IsPairingWindowOpen(ctx, db); err != nil || !isOpen {
			continue
		}
		if offer, err := h.ownOffer(ctx, db); err == nil {
			return shown(offer)
		}
	}
	return &truststore.PairingOffer{}
}

// await waits until people at both sides have confirmed.
func (h *Host) await(ctx context.Context, g guest, db parley.DB, request parley.UUID) (name string, err error) {
	if err := g.conn.SetDeadline(time.Time{}); err != nil { // the window closes
		return "", err
	}
	type verdict struct {
		message message
		err     error
	}
	received := make(chan verdict, 1)
	go func() {
		m, err := receive(g.conn) // ends when Serve does, which closes the connection
		received <- verdict{m, err}
	}()
	var theirs *message
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case v := <-received:
			switch {
			case v.err != nil:
				return "", v.err
			case v.message.Verdict == nil || !*v.message.Verdict || v.message.Offer == nil:
				return "", fmt.Errorf("at the caller: %w", ErrRefused)
			}
			theirs = &v.message
		case <-poll.C:
		}
		state, err := truststore.PairingRequestState(ctx, db, request)
		switch {
		case err != nil:
			return "", err
		case state == truststore.PairingRefused:
			return "", ErrRefused
		case state == truststore.PairingGone:
			return "", truststore.ErrPairingOver
		case state == truststore.PairingConfirmed && theirs != nil:
			if err := theirs.Possession.verify(g.bound, "caller", *theirs.Offer); err != nil {
				return "", err
			}
			return h.complete(ctx, g, db, request, *theirs.Offer)
		}
	}
}

func (h *Host) complete(
	ctx context.Context, g guest, db parley.DB, request parley.UUID, offer truststore.PairingOffer,
) (name string, err error) {
	own, possession, err := h.offer(ctx, db, g.bound)
	if err != nil {
		return "", err
	}
	g.key.Offer = offer
	if name, err = truststore.CompletePairing(ctx, db, request, g.key); err != nil {
		return "", err
	}
	if err := g.conn.SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		return name, err
	}
	return name, send(g.conn, message{Verdict: new(true), Offer: &own, Possession: possession})
}
