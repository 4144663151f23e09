// Package activation starts readers for the queues of a database while messages wait in them.
//
// Terms, as Service Broker has them (spec 5.4): a queue monitor watches one queue that has activation on. When messages can be received
// there it starts readers, as many as there are conversation groups that nobody holds, up to the queue's MAX_QUEUE_READERS. A reader
// receives until it finds nothing, and leaves. The kind of a reader depends on the queue: a session that runs the queue's procedure, a
// program, a web address ([Starter]).
//
// The database alone owns the truth: which queues are activated, and which of them have receivable messages.
// An [Engine] remembers only which readers it has started. It is a part of the daemon that leads the database (package daemon).
//
// Each step of an engine can be done twice without harm: a reader too many finds nothing and leaves, since RECEIVE gives no message to two.
// Killed at any instant, it leaves nothing to repair: its sessions end, their transactions roll back.
package activation
