// Package reference writes docs/reference/sql/, a page for each wing with what it offers, and the list of Error messages in
// docs/concepts/broker.md, out of the schema itself.
//
// Signatures and comments are those of the files in sql/, in reading order; the columns of views and types are read from
// a database with the schema in it, where their types are known. Which error is raised by which function is found by
// following the calls in the text of the functions. These pages are not
// committed; a test makes them. The list of Error messages is, and a test fails when it is out of date.
package reference

//go:generate go test -count=1 -run (CanBeMade|IsUpToDate)$ . -update
