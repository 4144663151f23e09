// Package orchestrator runs instances of orchestrations for a host: it takes deliveries that were claimed, has the programs of
// internal/flow/process run, and records what they bring in one transaction of the database.
//
// A [Runner] keeps nothing of an instance between two calls: its row is the truth, and any node can go on with it. A batch
// of deliveries is one transaction; one that fails is run again by each instance alone, so that it fails no other.
package orchestrator
