package settings_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A key with which no daemon could sign is refused when it is given, not found out by the daemon that reads it.
func TestSigningKeyThatCannotSignIsRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	written := func(kind string, der []byte, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	pkcs8 := func(key any) string {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return written("PRIVATE KEY", der, err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// The library makes no key that is too short, and takes long for one that is too long.
	ofLength := func(bits int) string {
		factor := func() *big.Int {
			p, err := rand.Prime(rand.Reader, bits/2)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		n := new(big.Int).Mul(factor(), factor())
		key, err := asn1.Marshal(struct {
			Version                int
			N, E, D, P, Q, A, B, C *big.Int
		}{0, n, big.NewInt(65537), n, n, n, n, n, n})
		return written("RSA PRIVATE KEY", key, err)
	}
	good := pkcs8(rsaKey)
	const create = `select parley_mail.apply(jsonb_build_object('signing key', jsonb_build_object('k', jsonb_build_object(
		'domain', 'example.org', 'selector', $1::text, 'algorithm', $2::text, 'private_key', $3::text))))`
	for name, c := range map[string]struct {
		selector, algorithm, key string
		takes                    bool
	}{
		"RSA":                            {"s1", "RSA-SHA256", good, true},
		"RSA, PKCS 1":                    {"s1", "RSA-SHA256", written("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey), nil), true},
		"Ed25519":                        {"a.b-c", "ED25519-SHA256", pkcs8(edKey), true},
		"lines that end with CRLF":       {"s1", "RSA-SHA256", strings.ReplaceAll(good, "\n", "\r\n"), true},
		"RSA of 768 bits":                {"s1", "RSA-SHA256", ofLength(768), false},
		"RSA of 4,096 bits":              {"s1", "RSA-SHA256", ofLength(4096), true},
		"RSA of 4,104 bits":              {"s1", "RSA-SHA256", ofLength(4104), false},
		"no PEM":                         {"s1", "RSA-SHA256", "chalk", false},
		"no base64":                      {"s1", "RSA-SHA256", "-----BEGIN PRIVATE KEY-----\nAAA\n-----END PRIVATE KEY-----\n", false},
		"something else in PEM":          {"s1", "RSA-SHA256", "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n-----END PRIVATE KEY-----\n", false},
		"cut off":                        {"s1", "RSA-SHA256", good[:400] + good[len(good)-27:], false},
		"without its end":                {"s1", "RSA-SHA256", good[:len(good)-27], false},
		"a key of another kind":          {"s1", "RSA-SHA256", pkcs8(other), false},
		"a public key":                   {"s1", "RSA-SHA256", written("PUBLIC KEY", x509.MarshalPKCS1PublicKey(&rsaKey.PublicKey), nil), false},
		"of another algorithm":           {"s1", "ED25519-SHA256", good, false},
		"of another algorithm, Ed25519":  {"s1", "RSA-SHA256", pkcs8(edKey), false},
		"a selector that is no name":     {"s 1", "RSA-SHA256", good, false},
		"a selector with an empty label": {"a..b", "RSA-SHA256", good, false},
	} {
		if c.takes {
			b.Exec(create, c.selector, c.algorithm, c.key)
			continue
		}
		if refusal := b.RefusesMail(3, create, c.selector, c.algorithm, c.key); strings.Contains(refusal.Message+refusal.Detail+refusal.Hint, "MII") {
			t.Errorf("%s: the refusal says the key: %+v", name, refusal)
		}
	}
}
