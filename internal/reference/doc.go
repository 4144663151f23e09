// Package reference writes docs/reference.md, what the schema offers, and the list of Error messages in docs/concepts.md, out of
// the schema itself.
//
// Signatures and comments are those of the files in sql/, in reading order; the columns of views and types are read from
// a database with the schema in it, where their types are known. Which error is raised by which function is found by
// following the calls in the text of the functions. The tests of this package fail when a page is out of date.
package reference

//go:generate go test -count=1 -run IsUpToDate$ . -update
