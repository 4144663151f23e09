package identity

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	// Validity is how long a certificate is good that Parley makes.
	Validity = 365 * 24 * time.Hour
	// backdated lets a certificate be good at once for peers whose clocks are late.
	backdated = 24 * time.Hour
	// ChainMax is how many certificates a broker shows: its own, and those of the keys that led to it.
	ChainMax = 4
)

// Certificate is a certificate of this broker with its key.
type Certificate struct {
	Fingerprint Fingerprint
	Leaf        *x509.Certificate
	// Chain is the chain that peers are shown, in DER: the certificate itself, then those that vouch for it.
	Chain [][]byte

	key crypto.Signer
}

// ErrNotYetValid and ErrExpired are the reasons why a certificate cannot be used now.
var (
	ErrNotYetValid = errors.New("not yet valid")
	ErrExpired     = errors.New("expired")
)

// Check reports whether the dates of a certificate allow to use it.
func Check(certificate *x509.Certificate, now time.Time) error {
	switch {
	case now.Before(certificate.NotBefore):
		return fmt.Errorf("the certificate is %w before %s", ErrNotYetValid, certificate.NotBefore.Format(time.RFC3339))
	case now.After(certificate.NotAfter):
		return fmt.Errorf("the certificate has %w at %s", ErrExpired, certificate.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// TLS gives the certificate as connections need it.
func (c *Certificate) TLS() *tls.Certificate {
	return &tls.Certificate{Certificate: c.Chain, PrivateKey: c.key, Leaf: c.Leaf}
}

// Config describes a new certificate.
type Config struct {
	// Name is the common name, for people; nobody checks it.
	Name string
	// Validity is how long it is good from now on; 0 means a year.
	Validity time.Duration
	// Predecessor signs the new certificate, so that trust in its key extends to the new one; nil makes one that is unknown to all peers.
	Predecessor *Certificate
	// Now is the time; zero means that it is read off the clock.
	Now time.Time
}

// New makes a key and its certificate.
func New(config Config) (*Certificate, error) {
	if config.Validity <= 0 {
		config.Validity = Validity
	}
	if config.Now.IsZero() {
		config.Now = time.Now()
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: config.Name, OrganizationalUnit: []string{"Parley"}},
		NotBefore:    config.Now.Add(-backdated).UTC().Truncate(time.Second),
		NotAfter:     config.Now.Add(config.Validity).UTC().Truncate(time.Second),
		// It may sign the certificate of its successor.
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	parent, signer := template, crypto.Signer(key)
	var rest [][]byte
	if p := config.Predecessor; p != nil {
		parent, signer = p.Leaf, p.key
		rest = p.Chain[:min(len(p.Chain), ChainMax-1)]
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate: %w", err)
	}
	return assemble(append([][]byte{der}, rest...), key)
}

// assemble puts a certificate together with its key, which has to be its own.
func assemble(chain [][]byte, key crypto.Signer) (*Certificate, error) {
	if len(chain) == 0 {
		return nil, errors.New("there is no certificate")
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(leaf.PublicKey) {
		return nil, errors.New("the key is not that of the certificate")
	}
	return &Certificate{Fingerprint: FingerprintOf(leaf), Leaf: leaf, Chain: chain, key: key}, nil
}

const (
	keyBlock         = "PRIVATE KEY"
	certificateBlock = "CERTIFICATE"
)

// encode writes key and chain as PEM.
func (c *Certificate) encode() ([]byte, error) {
	key, err := x509.MarshalPKCS8PrivateKey(c.key)
	if err != nil {
		return nil, fmt.Errorf("write the key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: key})
	for _, der := range c.Chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})...)
	}
	return text, nil
}

// decode reads PEM with a chain, the certificate itself first, and a key, which may stand in a text of its own.
func decode(chainText, keyText []byte) (*Certificate, error) {
	var chain [][]byte
	for block, rest := pem.Decode(chainText); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == certificateBlock {
			chain = append(chain, block.Bytes)
		}
	}
	for block, rest := pem.Decode(keyText); block != nil; block, rest = pem.Decode(rest) {
		key, err := parseKey(block)
		if err != nil {
			return nil, err
		}
		if key != nil {
			return assemble(chain, key)
		}
	}
	return nil, errors.New("there is no private key in PEM")
}

// parseKey reads a private key; nil for a block that is something else.
func parseKey(block *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch block.Type {
	case keyBlock:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("the private key is encrypted with a password: decrypt it first")
	default:
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the private key: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the private key cannot sign: it is a %T", key)
	}
	return signer, nil
}
