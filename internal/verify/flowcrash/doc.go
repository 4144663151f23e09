// Package flowcrash tests the promises of the integration engine while nodes and the database server are killed under load. Each order
// comes out by each adapter: once where the table of docs/flow/adapters.md promises that, and where it promises less the key of the message
// is what makes it once.
//
// Several processes serve the hosts of one database. Orders come in as files and as rows of a table; each goes into a file, into a table,
// by HTTP and by TCP to a location of the same engine, and by a conversation to a service that a location reads.
//
// Then deals are made by orchestrations that have a step of each kind. Triggers stop the transactions of nodes at points that are counted:
// in a statement, in the record of a step, and at its commit. The node is killed there, and the server rolls back, goes on to commit what
// nobody asks for any more, or is shut down itself.
//
// PARLEY_TEST_LONG=1 makes both longer: orders with another seed each time, deals with a crash at each point in each way.
package flowcrash
