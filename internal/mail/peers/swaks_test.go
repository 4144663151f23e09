package peers_test

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/mail/mailtest"
)

func TestSwaksAuthenticatesWithEachMechanismInEachModeOfTLS(t *testing.T) {
	t.Parallel()
	swaks := mailtest.Program(t, "swaks", "PARLEY_TEST_REQUIRE_SWAKS")
	certificateFile, keyFile := mailtest.CertificateFiles(t, "hub.example.org")
	required, implicit := mailtest.FreeAddress(t), mailtest.FreeAddress(t)
	users := func(address string, isImplicit bool) object {
		return object{
			"usage": "CLIENT", "bindings": address, "remote_ranges": "127.0.0.0/8", "tls": "REQUIRED", "implicit_tls": isImplicit, "tarpit": 0,
			"certificate_file": certificateFile, "certificate_key_file": keyFile, "authentication": []string{"PLAIN", "LOGIN"},
		}
	}
	h := newHub(t, nil, map[string]map[string]object{"receive connector": {"required": users(required, false), "implicit": users(implicit, true)}})
	h.await("the listeners", func() bool {
		return mailtest.IsListening(t.Context(), required) && mailtest.IsListening(t.Context(), implicit)
	})
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
