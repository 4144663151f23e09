// Package adapter is the border between the hosts of the integration engine, which move messages, and adapters, which know where messages
// come from and where they go. With it a team writes an adapter of its own, in its own program.
//
// An adapter is a [Kind]: its name, its settings, and how a [Receiver] or a [Sender] of it is made. A host makes a receiver for each
// location that is enabled and a sender for each port that is started, gives them what they need in an [Endpoint], and makes them anew
// when their definition changes. Adapters move bytes and keep account of nothing: the message box does, through [Intake] and the host.
//
// Package flow/node runs a host with such adapters, package flow/command the whole command, and package flow/adaptertest holds the rules
// that an adapter has to keep, as tests that the adapters of Parley pass too.
package adapter

import (
	"encoding/json"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// Kind is an adapter.
type Kind = adapter.Kind

// Direction is the way of messages through an adapter.
type Direction = adapter.Direction

// The directions.
const (
	Receive = adapter.Receive
	Send    = adapter.Send
)

// Endpoint is a location or a port as an adapter sees it.
type Endpoint = adapter.Endpoint

// Transaction is one of the host's database, in which an adapter works while the host publishes, or records that it has sent.
type Transaction = adapter.Transaction

// Receiver takes messages in for a location.
type Receiver = adapter.Receiver

// Intake is a host as receivers see it.
type Intake = adapter.Intake

// Input is something that a receiver has found: a file, a request, a row.
type Input = adapter.Input

// Entry is an input in the ledger.
type Entry = adapter.Entry

// Result has the outcome of an input.
type Result = adapter.Result

// Reply is the answer to an input of a location whose clients wait for one.
type Reply = adapter.Reply

// Outcome is the end of an input.
type Outcome = adapter.Outcome

// The outcomes.
const (
	Published    = adapter.Published
	Suspended    = adapter.Suspended
	FailedRouted = adapter.FailedRouted
	Repeated     = adapter.Repeated
	Joined       = adapter.Joined
	Consumed     = adapter.Consumed
)

// Sender sends the messages of a port.
type Sender = adapter.Sender

// TransactionSender is a sender that writes into the database of the host.
type TransactionSender = adapter.TransactionSender

// Message is a message on its way out, behind the pipeline of its port.
type Message = adapter.Message

// Delivery is the outcome of a message: it was sent where Err is nil.
type Delivery = adapter.Delivery

// Failure is an error that says what should follow it.
type Failure = adapter.Failure //nolint:errname // the field of integration calls it a failure

// Problem is something wrong with the definition of a location or port.
type Problem = adapter.Problem

// Duration is a setting such as "5 seconds": a number and a unit.
type Duration = adapter.Duration

// Permission lists the folders, addresses and secrets that definitions may name. The zero value permits nothing.
type Permission = adapter.Permission

// ErrNotPermitted is the error of definitions that name something which the operator of the node does not let them reach.
var ErrNotPermitted = adapter.ErrNotPermitted

// CheckSettings gives what is wrong with settings that are read into a struct with the defaults, by the names of its json tags, one problem
// a setting, and reads those that are right. A field that is a struct has settings of its own; those of an embedded one stand beside.
func CheckSettings(settings json.RawMessage, into any) []Problem {
	return adapter.CheckSettings(settings, into)
}

// OneOf gives the problem of a setting that is none of some values; nil where it is one.
func OneOf(name, value string, allowed ...string) []Problem {
	return adapter.OneOf(name, value, allowed...)
}

// Between gives the problem of a setting that is not within bounds; nil where it is.
func Between(name string, value, least, most int64) []Problem {
	return adapter.Between(name, value, least, most)
}

// NotBelow gives the problem of a duration that is shorter than it may be; nil where it is not.
func NotBelow(name string, value, least Duration) []Problem {
	return adapter.NotBelow(name, value, least)
}

// OnlySecrets gives the problems of secrets that are none of some names.
func OnlySecrets(given []string, allowed ...string) []Problem {
	return adapter.OnlySecrets(given, allowed...)
}
