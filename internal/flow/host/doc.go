// Package host runs hosts of the integration engine: it takes in from receive locations, and sends to send ports, as definitions say.
//
// A [Server] is a part of a daemon. It serves hosts, each of which has a role in the database; any number of nodes may serve one. The
// database decides what a message is, who gets it and what follows a failure; a host moves bytes between adapters, pipelines and functions
// of parley_flow, in large batches and few statements.
//
// Work that a node has in its hands is under leases, which it renews. When the node is killed they run out, and other nodes go on.
package host
