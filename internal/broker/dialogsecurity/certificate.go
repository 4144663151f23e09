package dialogsecurity

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// The parts of a certificate; see sql/parley/catalog/certificates.sql.
const (
	certificateMagic = "PARLEYC1"
	keySize          = 32
	certificateHead  = len(certificateMagic) + 8 + 8 + keySize + keySize
	// SubjectMax is the length of the longest subject in bytes.
	SubjectMax  = 256
	keyPurpose  = "parley certificate "
	keyPairSize = 2 * keySize
)

var errMalformedCertificate = errors.New("this is no certificate of a dialog")

// Certificate is a pair of public keys, as a database stores it and another one imports it.
type Certificate struct {
	Subject    string
	Start, End time.Time // to the second

	Fingerprint [sha256.Size]byte
	// Bytes is the certificate itself.
	Bytes []byte

	signing ed25519.PublicKey
	sealing hpke.PublicKey
}

// ParseCertificate takes a certificate apart.
func ParseCertificate(data []byte) (Certificate, error) {
	if len(data) <= certificateHead || len(data) > certificateHead+SubjectMax || string(data[:len(certificateMagic)]) != certificateMagic {
		return Certificate{}, errMalformedCertificate
	}
	rest := data[len(certificateMagic):]
	start, end := int64(binary.BigEndian.Uint64(rest)), int64(binary.BigEndian.Uint64(rest[8:]))
	rest = rest[16:]
	subject := string(rest[2*keySize:])
	if start < 0 || start >= end || end > 253402300799 || !utf8.ValidString(subject) {
		return Certificate{}, errMalformedCertificate
	}
	sealing, err := ecdh.X25519().NewPublicKey(rest[keySize : 2*keySize])
	if err != nil {
		return Certificate{}, fmt.Errorf("%w: %w", errMalformedCertificate, err)
	}
	sealingKey, err := hpke.NewDHKEMPublicKey(sealing)
	if err != nil {
		return Certificate{}, fmt.Errorf("%w: %w", errMalformedCertificate, err)
	}
	return Certificate{
		Subject: subject, Start: time.Unix(start, 0), End: time.Unix(end, 0), Fingerprint: sha256.Sum256(data), Bytes: data,
		signing: ed25519.PublicKey(rest[:keySize]), sealing: sealingKey,
	}, nil
}

// NewCertificate makes a certificate and its private keys, sealed under the master key.
func NewCertificate(keys *MasterKeys, subject string, start, end time.Time) (certificate Certificate, sealedKeys []byte, err error) {
	if subject == "" || len(subject) > SubjectMax {
		return Certificate{}, nil, fmt.Errorf("a subject has 1 to %d bytes", SubjectMax)
	}
	signingPublic, signing, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Certificate{}, nil, fmt.Errorf("make a key to sign with: %w", err)
	}
	sealing, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return Certificate{}, nil, fmt.Errorf("make a key to seal for: %w", err)
	}
	data := []byte(certificateMagic)
	data = binary.BigEndian.AppendUint64(data, uint64(start.Unix()))
	data = binary.BigEndian.AppendUint64(data, uint64(end.Unix()))
	data = append(append(append(data, signingPublic...), sealing.PublicKey().Bytes()...), subject...)
	if certificate, err = ParseCertificate(data); err != nil {
		return Certificate{}, nil, err
	}
	sealedKeys, err = keys.Seal(append(signing.Seed(), sealing.Bytes()...), certificate.purpose())
	if err != nil {
		return Certificate{}, nil, err
	}
	return certificate, sealedKeys, nil
}

func (c Certificate) purpose() []byte { return append([]byte(keyPurpose), c.Fingerprint[:]...) }

// keyPair is the private half of a certificate.
type keyPair struct {
	signing ed25519.PrivateKey
	sealing hpke.PrivateKey
}

// openKeyPair opens the private keys of the certificate with a fingerprint.
func openKeyPair(keys *MasterKeys, fingerprint [sha256.Size]byte, sealedKeys []byte) (keyPair, error) {
	secret, err := keys.Open(sealedKeys, Certificate{Fingerprint: fingerprint}.purpose())
	if err != nil {
		return keyPair{}, err
	}
	if len(secret) != keyPairSize {
		return keyPair{}, ErrSpoiled
	}
	sealing, err := ecdh.X25519().NewPrivateKey(secret[keySize:])
	if err != nil {
		return keyPair{}, fmt.Errorf("%w: %w", ErrSpoiled, err)
	}
	sealingKey, err := hpke.NewDHKEMPrivateKey(sealing)
	if err != nil {
		return keyPair{}, fmt.Errorf("%w: %w", ErrSpoiled, err)
	}
	return keyPair{signing: ed25519.NewKeyFromSeed(secret[:keySize]), sealing: sealingKey}, nil
}
