package peers_test

import (
	"os/exec"
	"testing"
)

func TestSwaksAuthenticatesWithEachMechanism(t *testing.T) {
	t.Parallel()
	swaks := program(t, "swaks", "PARLEY_TEST_REQUIRE_SWAKS")
	h := newHub(t, nil, nil)
	for _, test := range []struct {
		name      string
		arguments []string
		isRefused bool
	}{
		{name: "PLAIN", arguments: []string{"--auth", "PLAIN", "--auth-user", "ann", "--auth-password", "secret"}},
		{name: "LOGIN", arguments: []string{"--auth", "LOGIN", "--auth-user", "ann", "--auth-password", "secret"}},
		{name: "wrong password", arguments: []string{"--auth", "PLAIN", "--auth-user", "ann", "--auth-password", "guess"}, isRefused: true},
		{name: "nobody", arguments: []string{"--auth", "LOGIN", "--auth-user", "eve", "--auth-password", "guess"}, isRefused: true},
		{name: "none", isRefused: true},
	} {
		arguments := append([]string{
			"--server", h.submission, "--from", "ann@example.org", "--to", "bob@example.org", "--header", "Subject: " + test.name,
		}, test.arguments...)
		out, err := exec.CommandContext(t.Context(), swaks, arguments...).CombinedOutput()
		if (err != nil) != test.isRefused {
			t.Errorf("%s: %v: %s", test.name, err, out)
		}
		if !test.isRefused {
			h.awaitMessage("bob", "Subject: "+test.name)
		}
	}
	h.awaitEmpty()
}
