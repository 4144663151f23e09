// Package program starts programs that read a queue.
//
// A program is whatever the operator of the daemon allows ([Permission]); the definition in the database only chooses among
// that. It is started without a shell, in a process group of its own, with its queue and a connection string in the
// environment. It receives by itself, and leaves with exit code 0 when it finds nothing; any other end is a failure.
//
// Nothing of it is left when a reader has ended: what it has started goes with it, and on Linux it gets a signal to leave even when
// the daemon is killed.
package program
