package ast

// Foreign is a statement that Parley refuses by name wherever it stands: backups, assemblies, availability groups, DBCC
// and their relatives. Its tokens are kept, not understood. Page: statements/statements.
type Foreign struct {
	StatementAt
	Construct string   // its first words, in upper case: CREATE ASSEMBLY, BACKUP DATABASE
	Tokens    []string // all of them, as they are written
}
