// Package demo plays the workload of the 2009 paper "Service Broker: Performance and Scalability Techniques" on a
// real PostgreSQL, where messages start their own readers, kills a reader in the middle of a transaction, and proves that
// every message came through exactly once, in order and whole.
//
// The statements that a user of the broker would write stand in objects.sql, initiator.sql and target.sql: the paper's message type,
// contract, queues and services, and its receive procedure, which activation runs. The rest is here: senders in sessions of their own, the
// daemon's engine, which starts the readers, a watch on their progress, the final check, and the page that shows it all.
//
// The same is played on several servers (files servers_*.go): initiators and a target, each a PostgreSQL and a daemon of its own,
// joined by links of which one is cut and restored on the way.
package demo
