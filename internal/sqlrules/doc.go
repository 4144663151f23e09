// Package sqlrules holds the rules that the SQL of the schema must follow, so that a rule is kept by a
// test and not by a reviewer's memory.
//
// The rules read the text of the files in sql/ through a tokenizer that knows comments, strings, quoted identifiers and dollar quotes; the
// bodies of functions are checked, strings are not. Faults that only the server can judge (types, dead code, variables never read) are left
// to plpgsql_check, which a test of this package runs over every function of an installed schema.
//
// A rule that is wrong for one place gets an entry with its reason in allow.go; a rule that is wrong in
// general gets changed here.
package sqlrules
