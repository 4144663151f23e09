// Package connection carries T-SQL transactions out on one PostgreSQL connection. Statements whose result nothing needs (begin,
// savepoints) wait and travel with the next that needs one, in one flush; so a transaction that touched no table costs no round trip.
// A statement in a transaction runs behind one savepoint, always of the same name, released before it is set again: unreleased
// savepoints make every later statement slower.
package connection
