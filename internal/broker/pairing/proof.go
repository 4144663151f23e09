package pairing

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/identity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

const (
	tokenPrefix  = "parley1-"
	secretLength = 16
	numberLength = 32
	// codeLength makes a code of three words.
	codeLength = 6
)

// Token is an invitation as people carry it.
type Token struct {
	Invitation parley.UUID
	secret     []byte
}

// ParseToken reads what parley pair --invite, or parley.invite_peer, has given.
func ParseToken(text string) (t Token, err error) {
	digits, ok := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(t.Invitation)+secretLength {
		return t, errors.New("this is no token: it begins with " + tokenPrefix + " and is given by parley pair --invite at the other side")
	}
	copy(t.Invitation[:], raw)
	t.secret = raw[len(t.Invitation):]
	return t, nil
}

// channel is the secret that both ends of a connection know, and nobody else.
type channel struct {
	material       []byte
	caller, called identity.Fingerprint
}

// newChannel takes it from a connection whose handshake is done.
func newChannel(state tls.ConnectionState, caller, called identity.Fingerprint) (c channel, err error) {
	c = channel{caller: caller, called: called}
	if c.material, err = state.ExportKeyingMaterial("EXPORTER-parley-pairing", nil, 32); err != nil {
		return c, fmt.Errorf("take keying material from the connection: %w", err)
	}
	return c, nil
}

// seal is an HMAC over the connection and what is given.
func (c channel) seal(secret []byte, purpose string, more ...[]byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("parley pairing 1 " + purpose + "\x00"))
	for _, part := range append([][]byte{c.material, c.caller[:], c.called[:]}, more...) {
		h.Write(part) // all parts have fixed lengths
	}
	return h.Sum(nil)
}

// proofOf proves to know a secret; who is caller or called, so that a proof cannot be sent back.
func (c channel) proofOf(secret []byte, who string) []byte { return c.seal(secret, "proof of "+who) }

// commitment binds the caller to its number without showing it.
func (c channel) commitment(number []byte) []byte { return c.seal(number, "commitment") }

// code is the code that people compare.
func (c channel) code(ofCaller, ofCalled []byte) string {
	return identity.Words(c.seal(ofCaller, "code", ofCalled)[:codeLength])
}

// peerOf gives the key at the other end of a connection.
func peerOf(state tls.ConnectionState) (*x509.Certificate, identity.Fingerprint, error) {
	if len(state.PeerCertificates) == 0 {
		return nil, identity.Fingerprint{}, errors.New("the other broker shows no certificate")
	}
	leaf := state.PeerCertificates[0]
	return leaf, identity.FingerprintOf(leaf), nil
}

// keyOf puts together what the database receives about a key.
func keyOf(leaf *x509.Certificate, offer truststore.PairingOffer) truststore.PairedKey {
	return truststore.PairedKey{
		Fingerprint: identity.FingerprintOf(leaf).String(), Certificate: leaf.Raw,
		NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter, Offer: offer,
	}
}
