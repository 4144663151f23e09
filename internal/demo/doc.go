// Package demo plays the workload of the 2009 paper "Service Broker: Performance and Scalability Techniques" on a
// real PostgreSQL, where messages start their own readers, kills a reader in the middle of a transaction, and proves that
// every message came through exactly once, in order and whole.
//
// What a user of the broker would write stands in objects.sql: the paper's message type, contract, queue and service, and
// its receive procedure, which activation runs. The rest is here: senders in sessions of their own, the daemon's engine, which
// starts the readers, a watch on their progress, the final check, and the page that shows it all.
package demo
