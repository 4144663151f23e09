// Package transmitter takes messages that a database has for others to where they go.
//
// Terms. A destination is an address that a database has messages for. Messages for it stand on its lane; a message that has its number and
// has left the lane is in transit, until the far side has acknowledged it. One transmitter works for one database, while the daemon leads
// it. It has a worker for each destination with something to do, and none for the others: a hundred destinations that rest cost one scan
// every few seconds together.
//
// The database owns the truth: which messages are in transit, under which numbers, which were acknowledged, when a destination may be
// tried again. A worker remembers only what it has sent and is not answered yet. It can be killed at any instant; the next one begins
// with what is in transit.
//
// One destination cannot hold up others. Nothing: each has its own worker with a bounded window, and holds no connection to the database
// while it waits for an answer. One that fails leaves its memory, and comes back when the database says so.
package transmitter
