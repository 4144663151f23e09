package dialogsecurity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// The security header of a run or a fragment:
//
//	version (1), kind (1)
//	kind anonymous: receiver (32), secret sealed by HPKE (80)
//	kind full:      receiver (32), signer (32), secret sealed by HPKE (80), signature (64)
//	kind known:     id of the session key (32)
//	salt (24): 16 bytes at random, then when it was sealed, in microseconds since 1970;
//	then in a run without bodies of its own a tag: 16 bytes, or 48 with the sealed digest of a large body
//
// The bytes before the salt are the agreement; it is the same for many runs.
const (
	headerVersion = 1

	kindAnonymous = 1
	kindFull      = 2
	kindKnown     = 3

	fingerprintSize  = sha256.Size
	secretSize       = 32
	sealedSecretSize = 32 + secretSize + gcmTagSize // encapsulated key, then the sealed secret
	saltSize         = saltRandomSize + 8
	saltRandomSize   = 16
	digestSize       = sha256.Size

	// timeMost is the end of the year 9999.
	timeMost = 253_402_300_799_000_000

	anonymousSize = 2 + fingerprintSize + sealedSecretSize
	signedSize    = 2 + 2*fingerprintSize + sealedSecretSize
	fullSize      = signedSize + ed25519.SignatureSize
	knownSize     = 2 + sha256.Size
)

var errMalformedHeader = errors.New("the security header is malformed")

// header is a security header taken apart; its parts are slices of it.
type header struct {
	kind      byte
	agreement []byte
	// receiver and signer are fingerprints; signer only in full security.
	receiver, signer []byte
	sealedSecret     []byte
	signature        []byte
	keyID            []byte
	salt, tag        []byte
}

func parseHeader(data []byte) (header, error) {
	if len(data) < 2 || data[0] != headerVersion {
		return header{}, errMalformedHeader
	}
	h := header{kind: data[1]}
	size := map[byte]int{kindAnonymous: anonymousSize, kindFull: fullSize, kindKnown: knownSize}[h.kind]
	if size == 0 || len(data) < size+saltSize {
		return header{}, errMalformedHeader
	}
	switch len(data) - size - saltSize {
	case 0, gcmTagSize, digestSize + gcmTagSize:
	default:
		return header{}, errMalformedHeader
	}
	h.agreement, h.salt, h.tag = data[:size], data[size:size+saltSize], data[size+saltSize:]
	parts := h.agreement[2:]
	switch h.kind {
	case kindAnonymous:
		h.receiver, h.sealedSecret = parts[:fingerprintSize], parts[fingerprintSize:]
	case kindFull:
		h.receiver, h.signer = parts[:fingerprintSize], parts[fingerprintSize:2*fingerprintSize]
		h.sealedSecret, h.signature = data[signedSize-sealedSecretSize:signedSize], data[signedSize:size]
	case kindKnown:
		h.keyID = parts
	}
	return h, nil
}

// newSalt makes what no other sealing has, with its time. Keys are derived from it, so nobody else can change the time.
func newSalt(sealedAt time.Time) []byte {
	salt := make([]byte, saltRandomSize, saltSize)
	rand.Read(salt)
	return binary.BigEndian.AppendUint64(salt, uint64(sealedAt.UnixMicro()))
}

// sealedAt is the time of a salt. A time that PostgreSQL has no value for is as far from now as any.
func (h *header) sealedAt() time.Time {
	microseconds := int64(binary.BigEndian.Uint64(h.salt[saltRandomSize:]))
	return time.UnixMicro(min(max(microseconds, 0), timeMost))
}

// linkOnly is the header of what is to be encrypted and is not sealed: only the link protects it, so it is for the broker at the other
// end of that link alone.
const linkOnly = 0

// isSealed reports whether a header is one of something that was sealed.
func isSealed(security []byte) bool { return len(security) > 0 && security[0] != linkOnly }

// MayBeForwarded reports whether a forwarder may pass on what has such a security header: not when only the link protects it.
func MayBeForwarded(security []byte, isEncrypted bool) bool {
	if len(security) == 0 {
		return !isEncrypted
	}
	return security[0] != linkOnly
}

// unsealed is a run that leaves as it is.
func unsealed(run transportstore.Run) transportstore.Run {
	if run.IsEncrypted {
		run.Security = []byte{linkOnly}
	}
	return run
}
