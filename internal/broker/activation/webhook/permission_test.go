package webhook_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/broker/activation/webhook"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
)

func TestNoAddressIsCalledThatTheOperatorHasNotAllowed(t *testing.T) {
	t.Parallel()
	cases := []struct {
		url      string
		prefixes []string
		allowed  bool
	}{
		{"https://example.com/in", nil, false},
		{"https://example.com/in", []string{"https://example.com"}, true},
		{"https://EXAMPLE.com:443/in", []string{"https://example.com/"}, true},
		{"http://example.com/in", []string{"https://example.com"}, false},
		{"https://example.com:8443/in", []string{"https://example.com"}, false},
		{"https://example.com.other.org/in", []string{"https://example.com"}, false},
		{"https://example.com@other.org/in", []string{"https://example.com", "https://*"}, false},
		{"https://example.com/in", []string{"https://example.com/in"}, true},
		{"https://example.com/in/deep?x=1", []string{"https://example.com/in"}, true},
		{"https://example.com/inside", []string{"https://example.com/in"}, false},
		{"https://example.com/in/../admin", []string{"https://example.com/in"}, false},
		{"https://example.com/in/%2e%2e/admin", []string{"https://example.com/in"}, false},
		{"https://anywhere.org/x", []string{"https://*"}, true},
		{"http://anywhere.org/x", []string{"https://*"}, false},
		{"gopher://example.com/", []string{"https://*", "http://*"}, false},
	}
	for _, c := range cases {
		permission, err := webhook.ParsePermission(c.prefixes)
		if err != nil {
			t.Fatal(err)
		}
		starter := webhook.NewStarter(nil, 1, permission, dialogsecurity.WebhookSecrets{}, nil)
		external, _ := json.Marshal(map[string]any{"url": c.url, "secret": "s", "timeout_ms": 1000, "batch_size": 1})
		_, err = starter.NewReader(activation.Queue{External: external}, 1)
		if c.allowed && err != nil || !c.allowed && !errors.Is(err, webhook.ErrNotAllowed) {
			t.Errorf("%s with %q: got %v", c.url, c.prefixes, err)
		}
	}
}

func TestMalformedPermissionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "example.com", "ftp://example.com", "https://", "https://*.example.com", "https://a@b", "https://a?x", "https://a#x", ":"} {
		if _, err := webhook.ParsePermission([]string{text}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// Allowing every host allows no private network; a host that is named may be anywhere.
func TestPrivateAddressesAreForHostsThatAreNamed(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", accept)
	b.dialog("x")
	permission, err := webhook.ParsePermission([]string{"http://*"})
	b.require(err)
	named := b.starter
	b.starter = webhook.NewStarter(b.pool, 20, permission, dialogsecurity.WebhookSecrets{}, nil)
	defer b.starter.Close()
	if err := b.reader(1).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no public address") {
		t.Errorf("got %v", err)
	}
	if len(b.seen()) > 0 {
		t.Error("it was called")
	}
	b.starter = named
	b.run(1)
	b.requireWaiting(0)
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	b := newFixture(t, ", max_attempts => 1", func(w http.ResponseWriter, _ request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	b.dialog("x")
	b.run(1)
	if got := len(b.seen()); got != 1 {
		t.Errorf("%d requests came", got)
	}
}
