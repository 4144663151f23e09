package settings_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
)

// requireScram derives the keys of a password as RFC 7677 says, and compares them with those of a verifier.
func requireScram(t *testing.T, verifier, password string) {
	t.Helper()
	parts := strings.FieldsFunc(verifier, func(r rune) bool { return r == '$' || r == ':' })
	if len(parts) != 5 || parts[0] != "SCRAM-SHA-256" || parts[1] != "4096" {
		t.Fatalf("verifier %q", verifier)
	}
	decoded := make([][]byte, 3)
	for i, part := range parts[2:] {
		var err error
		if decoded[i], err = base64.StdEncoding.DecodeString(part); err != nil {
			t.Fatal(err)
		}
	}
	salted, err := pbkdf2.Key(sha256.New, password, decoded[0], 4096, 32)
	if err != nil {
		t.Fatal(err)
	}
	key := func(name string) []byte {
		mac := hmac.New(sha256.New, salted)
		mac.Write([]byte(name))
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(key("Client Key"))
	if !bytes.Equal(stored[:], decoded[1]) || !bytes.Equal(key("Server Key"), decoded[2]) {
		t.Errorf("verifier %q is not that of the password", verifier)
	}
}
