// Package adaptertest is the kit of the tests of Parley's adapters: the page of adapters held against the code, and, of the published kit,
// the host of tests.
package adaptertest

import "github.com/parley-broker/parley/flow/adaptertest"

// Intake is a host of tests: inputs that it takes are in a list, and in a ledger that outlives receivers.
type Intake = adaptertest.Intake

// Taken is an input that was taken, with its body read.
type Taken = adaptertest.Taken

// Patience is how long a test waits for a state.
const Patience = adaptertest.Patience
