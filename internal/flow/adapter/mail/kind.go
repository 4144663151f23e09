// Package mail is the adapter Mail: messages sent by the mail transport of the same database, and mail taken in from a service to which
// it delivers, all in the transactions of the host.
package mail

import (
	"encoding/json"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// namespace is that of the properties that messages have which came as mail.
const namespace = "urn:parley:mail#"

// Kind is the adapter.
var Kind = adapter.Kind{
	Name: "Mail",
	Guarantee: map[adapter.Direction]string{
		adapter.Receive: "Exactly once, from the mail transport of the same database",
		adapter.Send:    "Exactly once, to the mail transport of the same database",
	},
	Key: map[adapter.Direction]string{
		adapter.Receive: "needless: received and published in one transaction",
		adapter.Send:    "needless: submitted and recorded in one transaction",
	},
	Check: func(direction adapter.Direction, address string, settings json.RawMessage, secrets []string) []adapter.Problem {
		problems := adapter.OnlySecrets(secrets)
		if direction == adapter.Receive {
			_, found := readReceive(address, settings)
			return append(problems, found...)
		}
		_, found := readSend(address, settings)
		return append(problems, found...)
	},
	NewReceiver: newReceiver,
	NewSender:   newSender,
}
