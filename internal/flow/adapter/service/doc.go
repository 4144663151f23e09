// Package service is the adapter Service: messages of services and of simple queues of Parley are taken in, and messages are sent to
// services and put into simple queues, all in the transactions of the host.
package service

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// namespace is that of the properties that messages of services get.
const namespace = "urn:parley:service#"

// Kind is the adapter.
var Kind = adapter.Kind{
	Name: "Service",
	Guarantee: map[adapter.Direction]string{
		adapter.Receive: "Exactly once, in the order of each conversation or key",
		adapter.Send:    "Exactly once",
	},
	Key: map[adapter.Direction]string{
		adapter.Receive: "needless: received and published in one transaction",
		adapter.Send:    "needless: sent and recorded in one transaction",
	},
	Check: func(direction adapter.Direction, address string, settings json.RawMessage, secrets []string) []adapter.Problem {
		problems := adapter.OnlySecrets(secrets)
		if direction == adapter.Receive {
			_, _, found := readReceive(address, settings)
			return append(problems, found...)
		}
		_, _, found := readSend(address, settings)
		return append(problems, found...)
	},
	NewReceiver: newReceiver,
	NewSender:   newSender,
}

// place is a service, or a simple queue.
type place struct {
	name     string
	isSimple bool
}

// parseAddress reads the name of a service, or queue:name.
func parseAddress(address string) (place, []adapter.Problem) {
	name, isSimple := strings.CutPrefix(address, "queue:")
	if strings.TrimSpace(name) == "" || strings.ContainsRune(name, 0) {
		return place{}, []adapter.Problem{{
			Path: []string{"address"}, Message: "the address names nothing",
			Remedy: "Write the name of a service, or queue:NAME for a simple queue.",
		}}
	}
	return place{name, isSimple}, nil
}

// firstProblem gives a problem as an error.
func firstProblem(problems []adapter.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	p := problems[0]
	return fmt.Errorf("%s: %s. %s", strings.Join(p.Path, "."), p.Message, p.Remedy)
}

func wrong(message, remedy string, path ...string) adapter.Problem {
	return adapter.Problem{Path: append([]string{"settings"}, path...), Message: message, Remedy: remedy}
}
