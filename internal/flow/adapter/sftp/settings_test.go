package sftp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
)

func fingerprint(k hostKey) string { return ssh.FingerprintSHA256(k.key) }

func TestThePageOfAdaptersSaysWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	secrets := []string{passwordSecret, keySecret, passphraseSecret}
	adaptertest.CheckPage(t, Kind, adapter.Receive, receiveDefaults(), secrets...)
	adaptertest.CheckPage(t, Kind, adapter.Send, sendDefaults(), secrets...)
	adaptertest.CheckExamples(t, Kind)
}

func TestDefinitionsThatAreWrongAreSaid(t *testing.T) {
	t.Parallel()
	const known = `"SHA256:` + "4pWfAFHXtmi9ygCQB1cSPyJ2qqC0F4oiKUmqNzPqWXM" + `"`
	const good = `"user": "shop", "host_key": [` + known + `]`
	key := []string{"private_key"}
	for _, c := range []struct {
		direction         adapter.Direction
		address, settings string
		secrets           []string
		want              string
	}{
		{adapter.Receive, "sftp://a.example/in/*.xml", good, key, ""},
		{adapter.Receive, "sftp://a.example:2222/~/in/*", good, []string{"password"}, ""},
		{adapter.Send, "sftp://[::1]/%MessageID%", good, key, ""},
		{adapter.Receive, "sftp://a.example/in/*", `"user": "shop"`, key, "settings host_key: ssh-keygen"},
		{adapter.Receive, "sftp://a.example/in/*", `"user": "shop", "host_key": ["@revoked x ssh-ed25519 AAAA"]`, key, "settings host_key 0: known_hosts"},
		{adapter.Receive, "sftp://a.example/in/*", `"user": "shop", "host_key": "x"`, key, "settings host_key: list"},
		{adapter.Receive, "sftp://a.example/in/*", `"host_key": [` + known + `]`, key, "settings user: log in"},
		{adapter.Receive, "sftp://a.example/in/*", good, nil, "secrets: private_key"},
		{adapter.Receive, "sftp://a.example/in/*", good, []string{"password", "token"}, "secrets token: private_key"},
		{adapter.Receive, "sftp://me@a.example/in/*", good, key, "address: in the settings"},
		{adapter.Receive, "sftp://a.example/in/", good, key, "address: which files"},
		{adapter.Receive, "/in/*", good, key, "address: sftp://host"},
		{adapter.Receive, "sftp://a.example/[a", good, key, "address: cannot be read"},
		{adapter.Receive, "sftp://a.example/a", good + `, "ready": "now"`, key, "settings ready: one of stable"},
		{adapter.Send, "sftp://a.example/a", good + `, "mode": "append"`, key, "settings mode: one of create, overwrite"},
		{adapter.Send, "sftp://a.example/%x%", good, key, "address: There are %MessageID%"},
		{adapter.Send, "sftp://a.example/a", good + `, "timeout": "0 seconds"`, key, "settings timeout: at least"},
	} {
		problems := Kind.Check(c.direction, c.address, json.RawMessage("{"+c.settings+"}"), c.secrets)
		if c.want == "" {
			if problems != nil {
				t.Errorf("%s %s: %+v", c.address, c.settings, problems)
			}
			continue
		}
		path, part, _ := strings.Cut(c.want, ": ")
		if !slices.ContainsFunc(problems, func(p adapter.Problem) bool {
			return strings.Join(p.Path, " ") == path && strings.Contains(p.Message+" "+p.Remedy, part) && p.Remedy != ""
		}) {
			t.Errorf("%s %s: %+v, and not %s", c.address, c.settings, problems, c.want)
		}
	}
}
