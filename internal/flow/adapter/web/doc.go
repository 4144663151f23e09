// Package web is the adapter HTTP: requests are taken in, and messages are sent as requests.
//
// A location is a path of a listener, which all locations of its address share. A request is answered when its messages are committed; so
// a client that has no answer tries again, and its idempotency key keeps the message from coming twice. A port sends a message as one
// request, with the number of the message as idempotency key.
//
// Bodies and secrets are never logged.
package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// namespace is that of the properties that requests get.
const namespace = "urn:parley:http#"

// Kind is the adapter of this process, whose locations share listeners.
var Kind = New()

// New makes the adapter with listeners of its own, for tests.
func New() adapter.Kind {
	shared := &listeners{byAddress: map[string]*listener{}}
	return adapter.Kind{
		Name: "HTTP",
		Guarantee: map[adapter.Direction]string{
			adapter.Receive: "At least once: an answer comes after the commit. Exactly once where clients repeat with their idempotency key.",
			adapter.Send:    "At least once; a receiver that remembers the idempotency key has it once.",
		},
		Key: map[adapter.Direction]string{
			adapter.Receive: "the caller and the header Idempotency-Key, hashed",
			adapter.Send:    "the header Idempotency-Key, the number of the message",
		},
		Answers: map[adapter.Direction]bool{adapter.Receive: true, adapter.Send: true},
		Check: func(direction adapter.Direction, address string, settings json.RawMessage, secrets []string) []adapter.Problem {
			has := func(secret string) bool { return slices.Contains(secrets, secret) }
			if direction == adapter.Receive {
				_, _, problems := readReceive(address, settings, has)
				return problems
			}
			_, _, problems := readSend(address, settings, has)
			return append(problems, adapter.OnlySecrets(secrets, secretToken, secretPassword, secretKey, secretCertificate, secretKeyOfTLS,
				secretAuthorities)...)
		},
		Listens: func(address string) *adapter.Listening {
			u, err := parseAddress(address)
			if err != nil {
				return nil
			}
			return &adapter.Listening{Address: hostPort(u), Protocol: u.Scheme, Path: u.Path}
		},
		NewReceiver: func(e adapter.Endpoint) (adapter.Receiver, error) { return newLocation(e, shared) },
		NewSender:   func(e adapter.Endpoint) (adapter.Sender, error) { return newSender(e) },
	}
}

// anySecret stands for the secrets of a definition that was checked when it was applied.
func anySecret(string) bool { return true }

// firstProblem gives a problem as an error.
func firstProblem(problems []adapter.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	p := problems[0]
	return fmt.Errorf("%s: %s. %s", strings.Join(p.Path, "."), p.Message, p.Remedy)
}
