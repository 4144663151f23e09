// Package activation holds the statements by which a daemon starts readers of queues: who leads, which queues have readers to start, what
// the daemon reports of them, and the definitions of readers that run outside of the database.
package activation
