package peers_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// certificate writes a certificate of hub.example.org and its key into files.
func certificate(t *testing.T) (certificateFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hub.example.org"},
		DNSNames: []string{"hub.example.org"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificateFile, keyFile = filepath.Join(t.TempDir(), "certificate.pem"), filepath.Join(t.TempDir(), "key.pem")
	write(t, certificateFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})))
	write(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return certificateFile, keyFile
}

func TestSwaksAuthenticatesWithEachMechanismInEachModeOfTLS(t *testing.T) {
	t.Parallel()
	swaks := program(t, "swaks", "PARLEY_TEST_REQUIRE_SWAKS")
	certificateFile, keyFile := certificate(t)
	required, implicit := freeAddress(t), freeAddress(t)
	users := func(address string, isImplicit bool) object {
		return object{
			"usage": "CLIENT", "bindings": address, "remote_ranges": "127.0.0.0/8", "tls": "REQUIRED", "implicit_tls": isImplicit, "tarpit": 0,
			"certificate_file": certificateFile, "certificate_key_file": keyFile, "authentication": []string{"PLAIN", "LOGIN"},
		}
	}
	h := newHub(t, nil, map[string]map[string]object{"receive connector": {"required": users(required, false), "implicit": users(implicit, true)}})
	h.await("the listeners", func() bool { return isListening(t.Context(), required) && isListening(t.Context(), implicit) })
	ann := []string{"--auth-user", "ann", "--auth-password", "secret"}
	for _, test := range []struct {
		name, address string
		arguments     []string
		isRefused     bool
	}{
		{"PLAIN in clear", h.submission, append([]string{"--auth", "PLAIN"}, ann...), false},
		{"LOGIN in clear", h.submission, append([]string{"--auth", "LOGIN"}, ann...), false},
		{"wrong password", h.submission, []string{"--auth", "PLAIN", "--auth-user", "ann", "--auth-password", "guess"}, true},
		{"nobody", h.submission, []string{"--auth", "LOGIN", "--auth-user", "eve", "--auth-password", "guess"}, true},
		{"without authentication", h.submission, nil, true},
		{"PLAIN behind STARTTLS", required, append([]string{"--tls", "--auth", "PLAIN"}, ann...), false},
		{"LOGIN behind STARTTLS", required, append([]string{"--tls", "--auth", "LOGIN"}, ann...), false},
		{"PLAIN without the TLS that is required", required, append([]string{"--auth", "PLAIN"}, ann...), true},
		{"PLAIN in TLS from the first byte", implicit, append([]string{"--tlsc", "--auth", "PLAIN"}, ann...), false},
		{"LOGIN in TLS from the first byte", implicit, append([]string{"--tlsc", "--auth", "LOGIN"}, ann...), false},
	} {
		arguments := slices.Concat([]string{
			"--server", test.address, "--from", "ann@example.org", "--to", "bob@example.org", "--header", "Subject: " + test.name,
		}, test.arguments)
		out, err := exec.CommandContext(t.Context(), swaks, arguments...).CombinedOutput()
		if (err != nil) != test.isRefused {
			t.Errorf("%s: %v: %s", test.name, err, out)
		}
		if err == nil {
			h.awaitMessage("bob", "Subject: "+test.name)
		}
	}
	h.awaitEmpty()
}
