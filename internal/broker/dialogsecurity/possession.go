package dialogsecurity

import (
	"crypto/ed25519"
	"errors"
	"fmt"
)

// possessionDomain keeps what proves possession from being anything else that the key signs.
const possessionDomain = "parley possession of a dialog certificate 1\x00"

// ErrNotPossessed: a certificate was offered without proof of its private key.
var ErrNotPossessed = errors.New("the other side has not proven that it has the private key of the dialog certificate that it offers")

// ProvePossession signs a context that the other side knows to be fresh, with the private key of a certificate.
//
// Errors: those of opening what is sealed under the master key.
func ProvePossession(keys *MasterKeys, certificate Certificate, sealedKeys, context []byte) ([]byte, error) {
	pair, err := openKeyPair(keys, certificate.Fingerprint, sealedKeys)
	if err != nil {
		return nil, err
	}
	return ed25519.Sign(pair.signing, possessionOf(certificate, context)), nil
}

// VerifyPossession checks what [ProvePossession] has made for the same context.
//
// Errors: [ErrNotPossessed].
func VerifyPossession(certificate Certificate, context, proof []byte) error {
	if !ed25519.Verify(certificate.signing, possessionOf(certificate, context), proof) {
		return fmt.Errorf("%w: fingerprint %x", ErrNotPossessed, certificate.Fingerprint)
	}
	return nil
}

func possessionOf(certificate Certificate, context []byte) []byte {
	return append(append([]byte(possessionDomain), certificate.Fingerprint[:]...), context...)
}
