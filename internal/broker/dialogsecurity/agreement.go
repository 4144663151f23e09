package dialogsecurity

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// agreement is a secret that the two sides share, and how a header names it.
type agreement struct {
	head   []byte // what goes before the salt
	secret string // 32 bytes, made at random
	// receiver and signer are fingerprints, for looking up whether the certificates still count.
	receiver, signer []byte
}

const (
	agreementInfo  = "parley dialog agreement 1"
	signatureLabel = "parley dialog signature 1"
	keyIDLabel     = "parley dialog key 1"
)

var errForgedAgreement = errors.New("the security header was not made by whom it names, or not for this certificate")

func newSecret() string {
	secret := make([]byte, secretSize)
	rand.Read(secret)
	return string(secret)
}

// keyIDOf names a session key in an anonymous dialog. It reveals nothing about the key.
func keyIDOf(secret string) []byte {
	id, err := hkdf.Expand(sha256.New, []byte(secret), keyIDLabel, sha256.Size)
	if err != nil {
		panic("dialogsecurity: " + err.Error())
	}
	return id
}

// agree makes an agreement: the secret is sealed for the receiver, and signed when there is a signer.
func agree(secret string, receiver Certificate, signer *Certificate, keys keyPair) (*agreement, error) {
	head := append(make([]byte, 0, fullSize), headerVersion, kindAnonymous)
	head = append(head, receiver.Fingerprint[:]...)
	a := &agreement{secret: secret, receiver: receiver.Fingerprint[:]}
	if signer != nil {
		head[1] = kindFull
		head = append(head, signer.Fingerprint[:]...)
		a.signer = signer.Fingerprint[:]
	}
	sealed, err := hpke.Seal(receiver.sealing, hpke.HKDFSHA256(), hpke.AES256GCM(), append([]byte(agreementInfo), head...), []byte(secret))
	if err != nil {
		return nil, fmt.Errorf("seal a key for %q: %w", receiver.Subject, err)
	}
	head = append(head, sealed...)
	if signer != nil {
		head = append(head, ed25519.Sign(keys.signing, append([]byte(signatureLabel), head...))...)
	}
	a.head = head
	return a, nil
}

// openAgreement gives the agreement that a header speaks of, after it has verified the signature.
func openAgreement(h header, signer *Certificate, keys keyPair) (*agreement, error) {
	unsealed := h.agreement[:len(h.agreement)-len(h.signature)-len(h.sealedSecret)]
	if h.kind == kindFull {
		signed := h.agreement[:len(h.agreement)-len(h.signature)]
		if signer == nil || !ed25519.Verify(signer.signing, append([]byte(signatureLabel), signed...), h.signature) {
			return nil, errForgedAgreement
		}
	}
	secret, err := hpke.Open(keys.sealing, hpke.HKDFSHA256(), hpke.AES256GCM(), append([]byte(agreementInfo), unsealed...), h.sealedSecret)
	if err != nil || len(secret) != secretSize {
		return nil, errForgedAgreement
	}
	// The header belongs to the receiver.
	head := append([]byte(nil), h.agreement...)
	a := &agreement{head: head, secret: string(secret), receiver: head[2 : 2+fingerprintSize]}
	if h.kind == kindFull {
		a.signer = head[2+fingerprintSize : 2+2*fingerprintSize]
	}
	return a, nil
}

// known is the agreement of a dialog whose other side has the secret already.
func known(secret string) *agreement {
	return &agreement{head: append([]byte{headerVersion, kindKnown}, keyIDOf(secret)...), secret: secret}
}
