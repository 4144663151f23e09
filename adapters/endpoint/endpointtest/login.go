// Package endpointtest holds the rules of adapters that log in at a server, as tests that all of them pass.
package endpointtest

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/adapters/endpoint"
	"github.com/parley-broker/parley/flow/adapter"
	"github.com/parley-broker/parley/flow/adaptertest"
	"github.com/parley-broker/parley/internal/mail/mailtest"
)

// Host is the name of the server in its certificate.
const Host = "localhost"

// Server gives the configuration of a server with TLS, and the authority of its certificate in PEM.
func Server(t testing.TB) (config *tls.Config, authority string) {
	t.Helper()
	certificate := mailtest.Certificate(t, Host, "127.0.0.1")
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}}, pemOf(certificate)
}

// authorityOfOthers gives an authority that has signed nothing.
func authorityOfOthers(t testing.TB) string {
	t.Helper()
	return pemOf(mailtest.Certificate(t, Host))
}

func pemOf(c *tls.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))
}

// Login is a server with TLS at which callers log in.
type Login struct {
	Kind adapter.Kind
	// Send and Receive are endpoints at the server, without secrets.
	Send, Receive adapter.Endpoint
	// Good are the secrets that it takes, with the authority of its certificate; Wrong is the name of the one by which callers log in.
	Good  map[string]string
	Wrong string
	// User is whose name errors may show though it is the password, too, as that of a broker that was just installed.
	User string
	// Plain is the address of the server for a port without TLS; empty where none is written.
	Plain string
}

// Check requires that messages are sent with the right secrets alone. With a wrong password, a certificate of an authority that is not
// trusted, or without TLS the port waits, the location reports why, and neither shows a secret.
func Check(t *testing.T, l Login) {
	t.Helper()
	with := func(e adapter.Endpoint, secrets map[string]string) adapter.Endpoint {
		e.Secret = func(_ context.Context, name string) (string, bool, error) {
			value, found := secrets[name]
			return value, found, nil
		}
		return e
	}
	changed := func(name, value string) map[string]string {
		secrets := maps.Clone(l.Good)
		if secrets[name] = value; value == "" {
			delete(secrets, name)
		}
		return secrets
	}
	if err := send(t, l.Kind, with(l.Send, l.Good)); err != nil {
		t.Errorf("with the right secrets: %v", err)
	}
	for name, secrets := range map[string]map[string]string{
		"a wrong password":                changed(l.Wrong, "a-wrong-password"),
		"an authority of others":          changed(endpoint.AuthoritySecret, authorityOfOthers(t)),
		"the authorities of this machine": changed(endpoint.AuthoritySecret, ""),
	} {
		err := send(t, l.Kind, with(l.Send, secrets))
		if f, is := errors.AsType[*adapter.Failure](err); !is || !f.Unreachable {
			t.Errorf("%s: a port gets %v, and does not wait", name, err)
		}
		received := receive(t, l.Kind, with(l.Receive, secrets))
		if received == nil {
			t.Errorf("%s: a location takes in", name)
		}
		for _, said := range []error{err, received} {
			if said != nil && secrets[l.Wrong] != l.User && strings.Contains(said.Error(), secrets[l.Wrong]) {
				t.Errorf("%s: the error shows a secret: %v", name, said)
			}
		}
	}
	if l.Plain != "" {
		plain := with(l.Send, changed(endpoint.AuthoritySecret, ""))
		plain.Address = l.Plain
		if err := send(t, l.Kind, plain); err == nil {
			t.Error("a port without TLS has sent")
		}
	}
}

// send sends a message.
func send(t *testing.T, kind adapter.Kind, e adapter.Endpoint) error {
	t.Helper()
	sender, err := kind.NewSender(e)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sender.Close() }()
	ctx, stop := context.WithTimeout(t.Context(), adaptertest.Patience)
	defer stop()
	return sender.Send(ctx, []*adapter.Message{adaptertest.Message(1, "one")})[0].Err
}

// receive runs a location until it reports that it cannot work.
func receive(t *testing.T, kind adapter.Kind, e adapter.Endpoint) error {
	t.Helper()
	receiver, err := kind.NewReceiver(e)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 15*time.Second)
	defer stop()
	return receiver.Run(ctx, &adaptertest.Intake{})
}
