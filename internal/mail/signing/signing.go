// Package signing signs messages with DKIM as they leave, and makes the keys for it.
//
// A domain may have several keys under several selectors; a message is signed with each, so that a change of keys or of algorithms leaves
// no gap. From and Subject, and what else may occur once only, are signed once more than they occur, so that nobody adds another.
//
// Sources: RFC 6376, RFC 8463 (Ed25519), spec/hub-transport.md section 11.4.
package signing

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"slices"
	"strings"

	"github.com/emersion/go-msgauth/dkim"
)

// Key is a key of a domain.
type Key struct {
	// Domain signs, and Selector names the key in its zone.
	Domain, Selector string
	Signer           crypto.Signer
}

const (
	// RSABits is the length of the RSA keys that are made.
	RSABits = 2048
	// leastRSABits is the length of the shortest RSA keys whose signatures count (RFC 8301 section 3.2).
	leastRSABits = 1024
	// mostRSABits is the length of the longest RSA keys that every receiver can verify with (RFC 8301 section 3.2).
	mostRSABits = 4096
)

// NewKey makes a key: "ed25519" or "rsa". Private is its PEM form (PKCS #8), and record what stands in the zone under
// SELECTOR._domainkey.DOMAIN.
func NewKey(algorithm string) (private []byte, record string, err error) {
	var signer crypto.Signer
	switch algorithm {
	case "rsa":
		signer, err = rsa.GenerateKey(rand.Reader, RSABits)
	case "ed25519":
		_, signer, err = ed25519.GenerateKey(rand.Reader)
	default:
		return nil, "", fmt.Errorf("%q is no algorithm of keys; they are rsa and ed25519", algorithm)
	}
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		return nil, "", fmt.Errorf("write the key: %w", err)
	}
	record, err = Record(signer)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), record, err
}

// Record is the TXT record by which others know a key.
func Record(signer crypto.Signer) (string, error) {
	switch public := signer.Public().(type) {
	case ed25519.PublicKey:
		return "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public), nil
	case *rsa.PublicKey:
		der, err := x509.MarshalPKIXPublicKey(public)
		if err != nil {
			return "", fmt.Errorf("write the public key: %w", err)
		}
		return "v=DKIM1; k=rsa; p=" + base64.StdEncoding.EncodeToString(der), nil
	default:
		return "", fmt.Errorf("DKIM has no signatures by keys of type %T; use rsa or ed25519", public)
	}
}

// ParseKey reads the PEM form of a key, PKCS #8 or, for RSA, PKCS #1. RSA keys have 1,024 to 4,096 bits.
func ParseKey(private []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(private)
	if block == nil {
		return nil, errors.New("the key is not in PEM form")
	}
	if block.Type == "RSA PRIVATE KEY" {
		key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read the key: %w", err)
		}
		return ofUsualLength(key)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	signer, is := key.(crypto.Signer)
	if !is {
		return nil, fmt.Errorf("a key of type %T cannot sign", key)
	}
	if key, isRSA := key.(*rsa.PrivateKey); isRSA {
		return ofUsualLength(key)
	}
	if _, err := Record(signer); err != nil {
		return nil, err
	}
	return signer, nil
}

func ofUsualLength(key *rsa.PrivateKey) (crypto.Signer, error) {
	if bits := key.N.BitLen(); bits < leastRSABits || bits > mostRSABits {
		return nil, fmt.Errorf("the key has %d bits, and RSA needs %d to %d", bits, leastRSABits, mostRSABits)
	}
	return key, nil
}

// signed are the header fields that a signature covers where they occur; once are those that may occur once only and are signed once more
// than they occur.
var (
	signed = []string{
		"From", "Sender", "Reply-To", "Subject", "Date", "Message-Id", "To", "Cc", "Mime-Version", "Content-Type",
		"Content-Transfer-Encoding", "Content-Disposition", "In-Reply-To", "References", "List-Id", "List-Unsubscribe",
		"List-Unsubscribe-Post", "Auto-Submitted",
	}
	once = []string{"From", "Subject", "Date", "To", "Cc", "Reply-To", "Message-Id", "Content-Type", "Mime-Version"}
)

// Headers signs a message with each key and returns the header fields to put before it, each ended by CRLF. Header has the names of the
// fields that the message has, and body is the whole message.
func Headers(keys []Key, names []string, body func() (io.ReadCloser, error)) ([]byte, error) {
	var fields bytes.Buffer
	signers := make([]*dkim.Signer, 0, len(keys))
	defer func() {
		for _, signer := range signers {
			_ = signer.Close()
		}
	}()
	writers := make([]io.Writer, 0, len(keys))
	for _, key := range keys {
		signer, err := dkim.NewSigner(&dkim.SignOptions{
			Domain: key.Domain, Selector: key.Selector, Signer: key.Signer, HeaderKeys: covered(names),
			HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
		})
		if err != nil {
			return nil, fmt.Errorf("sign for %s with %s: %w", key.Domain, key.Selector, err)
		}
		signers, writers = append(signers, signer), append(writers, signer)
	}
	reader, err := body()
	if err != nil {
		return nil, fmt.Errorf("read the message to sign: %w", err)
	}
	defer func() { _ = reader.Close() }()
	if _, err := io.Copy(io.MultiWriter(writers...), reader); err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	for i, signer := range signers {
		if err := signer.Close(); err != nil {
			return nil, fmt.Errorf("sign for %s with %s: %w", keys[i].Domain, keys[i].Selector, err)
		}
		fields.WriteString(signer.Signature())
	}
	signers = nil
	return fields.Bytes(), nil
}

// covered are the fields to sign, each as often as it is to be.
func covered(names []string) []string {
	counts := make(map[string]int)
	for _, name := range names {
		counts[textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))]++
	}
	var keys []string
	for _, name := range signed {
		times := counts[name]
		if slices.Contains(once, name) {
			times++
		}
		for range times {
			keys = append(keys, name)
		}
	}
	return keys
}
