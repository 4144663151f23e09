// Package demo plays the workload of the 2009 paper "Service Broker: Performance and Scalability Techniques" on a
// real PostgreSQL, kills a reader in the middle of a transaction, and proves that every message came through exactly
// once, in order and whole.
//
// What a user of the broker would write stands in objects.sql: the paper's message type, contract, queue and service, and
// its receive procedure. The rest is here: senders and readers in sessions of their own, a watch on their progress,
// the final check, and the page that shows it all.
package demo
