package signing_test

import (
	"crypto"
	_ "embed"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/parley-broker/parley/internal/mail/signing"
)

const letter = "From: a@a.example\r\nTo: b@b.example\r\nSubject: hello\r\n\r\nbody\r\n\r\n\r\n"

// keys makes a key of each algorithm, and the zone in which they stand.
func keys(t *testing.T) (made []signing.Key, zone func(string) ([]string, error)) {
	t.Helper()
	records := make(map[string]string)
	for _, algorithm := range []string{"rsa", "ed25519"} {
		private, record, err := signing.NewKey(algorithm)
		if err != nil {
			t.Fatal(err)
		}
		signer, err := signing.ParseKey(private)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, signing.Key{Domain: "a.example", Selector: algorithm, Signer: signer})
		records[algorithm+"._domainkey.a.example"] = record
	}
	return made, func(name string) ([]string, error) {
		record, known := records[name]
		if !known {
			return nil, errors.New("no such name")
		}
		return []string{record}, nil
	}
}

func open(text string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
}

func verify(t *testing.T, text string, zone func(string) ([]string, error)) []*dkim.Verification {
	t.Helper()
	found, err := dkim.VerifyWithOptions(strings.NewReader(text), &dkim.VerifyOptions{LookupTXT: zone})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestMessageIsSignedWithEachKey(t *testing.T) {
	t.Parallel()
	made, zone := keys(t)
	fields, err := signing.Headers(made, []string{"From", "To", "Subject"}, open(letter))
	if err != nil {
		t.Fatal(err)
	}
	found := verify(t, string(fields)+letter, zone)
	if len(found) != 2 {
		t.Fatalf("%d signatures in %s", len(found), fields)
	}
	for _, signature := range found {
		if signature.Err != nil || signature.Domain != "a.example" {
			t.Errorf("signature of %s: %v", signature.Domain, signature.Err)
		}
	}
}

func TestChangedMessageIsNotBelieved(t *testing.T) {
	t.Parallel()
	made, zone := keys(t)
	fields, err := signing.Headers(made, []string{"From", "To", "Subject"}, open(letter))
	if err != nil {
		t.Fatal(err)
	}
	for name, changed := range map[string]string{
		"another subject":  strings.Replace(letter, "hello", "other", 1),
		"another body":     strings.Replace(letter, "body", "other", 1),
		"a second From":    "From: mallory@c.example\r\n" + letter,
		"a second Subject": strings.Replace(letter, "Subject: hello", "Subject: hello\r\nSubject: other", 1),
		"a Reply-To":       "Reply-To: mallory@c.example\r\n" + letter,
	} {
		for _, signature := range verify(t, string(fields)+changed, zone) {
			if signature.Err == nil {
				t.Errorf("%s: the signature holds", name)
			}
		}
	}
}

var (
	//go:embed testdata/rsa512.pem
	shortKey []byte
	//go:embed testdata/rsa4104.pem
	longKey []byte
)

func TestKeysThatCannotSign(t *testing.T) {
	t.Parallel()
	if _, _, err := signing.NewKey("dsa"); err == nil {
		t.Error("a key of an unknown algorithm was made")
	}
	for _, private := range []string{"", "secret", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if _, err := signing.ParseKey([]byte(private)); err == nil {
			t.Errorf("%q was read as a key", private)
		}
	}
	// A receiver ignores a signature by a key of 512 bits, and need not verify one of more than 4,096 (RFC 8301 section 3.2).
	for bits, key := range map[string][]byte{"512 bits": shortKey, "4104 bits": longKey} {
		if _, err := signing.ParseKey(key); err == nil || !strings.Contains(err.Error(), bits) {
			t.Errorf("a key of %s gives %v", bits, err)
		}
	}
	if _, err := signing.Record(crypto.Signer(noKey{})); err == nil {
		t.Error("a record was made for no key")
	}
	made, _ := keys(t)
	failing := func() (io.ReadCloser, error) { return nil, errors.New("the body is gone") }
	if _, err := signing.Headers(made, []string{"From"}, failing); err == nil {
		t.Error("a message that cannot be read was signed")
	}
}

type noKey struct{ crypto.Signer }

func (noKey) Public() crypto.PublicKey { return "none" }
