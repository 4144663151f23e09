package identity

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"strings"
)

// Fingerprint is the SHA-256 of a public key as SubjectPublicKeyInfo.
type Fingerprint [sha256.Size]byte

// FingerprintOf gives the fingerprint of the key in a certificate.
func FingerprintOf(certificate *x509.Certificate) Fingerprint {
	return sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
}

// String gives the 64 hexadecimal digits that the database stores.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// wordsShown is how many words show a fingerprint: 128 bits, which nobody meets by trying.
const wordsShown = 8

// Words gives the first half of the fingerprint in eight words that can be read out.
func (f Fingerprint) Words() string { return Words(f[:2*wordsShown]) }

// ParseFingerprint reads 64 hexadecimal digits, with colons or blanks between them if need be, and with SHA256: in front.
func ParseFingerprint(text string) (Fingerprint, error) {
	var f Fingerprint
	digits := strings.TrimSpace(text)
	if len(digits) >= 7 && strings.EqualFold(digits[:7], "sha256:") {
		digits = digits[7:]
	}
	digits = strings.NewReplacer(":", "", " ", "").Replace(digits)
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) != len(f) {
		return f, errors.New("a fingerprint has 64 hexadecimal digits: see parley certificate list")
	}
	copy(f[:], raw)
	return f, nil
}

const (
	consonants = "bdfghjklmnprstvz"
	vowels     = "aiou"
)

// Words spells bytes in words of five letters, each of which stands for two bytes, that sound different. The last
// byte of an odd number is left out.
func Words(raw []byte) string {
	words := make([]string, 0, len(raw)/2)
	for ; len(raw) >= 2; raw = raw[2:] {
		n := int(raw[0])<<8 | int(raw[1])
		words = append(words, string([]byte{
			consonants[n>>12], vowels[n>>10&3], consonants[n>>6&15], vowels[n>>4&3], consonants[n&15],
		}))
	}
	return strings.Join(words, "-")
}
