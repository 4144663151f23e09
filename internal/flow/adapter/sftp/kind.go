// Package sftp is the adapter SFTP: files taken in from a server of SSH, and written to one.
package sftp

import "github.com/parley-broker/parley/internal/flow/adapter"

// Kind is the adapter.
var Kind = adapter.Kind{
	Name: "SFTP",
	Guarantee: map[adapter.Direction]string{
		adapter.Receive: "Exactly once, also with several nodes on one folder",
		adapter.Send:    "At least once; a repeat after a crash writes the same file",
	},
	Key: map[adapter.Direction]string{
		adapter.Receive: "name, size, time and hash of the file",
		adapter.Send:    "the name of the file",
	},
	Check:       check,
	NewReceiver: newReceiver,
	NewSender:   newSender,
}
