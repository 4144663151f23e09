// Package flow publishes messages into the integration engine from a program, in the program's own transaction: each send port whose filter
// a message satisfies gets it, when the transaction commits, and none when it is rolled back. Ports, filters and hosts are defined by
// parley flow apply; this package has what a program needs, and no more.
//
// The role of the session needs the right PUBLISH, of all, of an application or of a receive port.
package flow
