// Package tcp is the adapter TCP: messages as frames on connections, acknowledged when they are stored.
package tcp

import "github.com/parley-broker/parley/internal/flow/adapter"

// Kind is the adapter.
var Kind = adapter.Kind{
	Name: "TCP",
	Guarantee: map[adapter.Direction]string{
		adapter.Receive: "Exactly once with a key, at least once without; plain and line: may be lost with the connection",
		adapter.Send:    "At least once, with the same key each time; plain and line: may be lost with the connection",
	},
	Key: map[adapter.Direction]string{
		adapter.Receive: "the key in the frame",
		adapter.Send:    "`key_prefix` and number of the message, in the frame",
	},
	Check:       check,
	Listens:     func(address string) *adapter.Listening { return &adapter.Listening{Address: address, Protocol: "tcp"} },
	NewReceiver: newReceiver,
	NewSender:   newSender,
}
