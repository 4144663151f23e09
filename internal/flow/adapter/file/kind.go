// Package file is the adapter FILE: files taken in from a folder, and written into one.
package file

import "github.com/parley-broker/parley/internal/flow/adapter"

// Kind is the adapter.
var Kind = adapter.Kind{
	Name: "FILE",
	Guarantee: map[adapter.Direction]string{
		adapter.Receive: "Exactly once, also with several nodes on one folder",
		adapter.Send:    "At least once; a repeat after a crash writes the same file, and appends nothing twice",
	},
	Key: map[adapter.Direction]string{
		adapter.Receive: "name, size, times and hash of the file",
		adapter.Send:    "the name of the file",
	},
	Check:       check,
	NewReceiver: newReceiver,
	NewSender:   newSender,
}
