// Package process runs orchestrations: a definition is compiled to a [Program], and the state of an instance and an event give the next
// state and its effects. The package knows no database and no network: it asks a [World], and gives a [Step].
//
// A host calls [Program.Run] inside one transaction: inputs are consumed, outputs published, subscriptions changed and the state saved
// with its commit, or nothing happened and the same event comes again. That is a persistence point. State is a snapshot, never a history.
package process
