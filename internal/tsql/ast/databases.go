package ast

// Database is CREATE DATABASE. Page: statements/create-database-transact-sql.
type Database struct {
	StatementAt
	Name        string
	Containment string  // NONE or PARTIAL, or empty
	Files       []*File // ON ...
	Log         []*File // LOG ON ...
	HasOn       bool
	Collation   string
	For         string // ATTACH, ATTACH_REBUILD_LOG, ATTACH_FORCE_REBUILD_LOG, or empty
	SnapshotOf  string // AS SNAPSHOT OF, or empty
	CopyOf      Name   // AS COPY OF, or empty
	Options     []*Option
}

// File is a file specification, or the name of a filegroup that the next ones belong to.
type File struct {
	Place
	Filegroup string    // FILEGROUP name or PRIMARY before the specification, or empty
	Words     string    // CONTAINS FILESTREAM, DEFAULT, CONTAINS MEMORY_OPTIMIZED_DATA behind the filegroup's name
	Options   []*Option // NAME, FILENAME, SIZE, MAXSIZE, FILEGROWTH
}

// AlterDatabase is ALTER DATABASE. Page: statements/alter-database-transact-sql-set-options.
type AlterDatabase struct {
	StatementAt
	Name    string // CURRENT is kept as an empty name
	Current bool
	Action  string // SET, COLLATE, MODIFY NAME, ADD FILE and others
	Options []*Option
	// Termination is ROLLBACK IMMEDIATE, ROLLBACK AFTER or NO_WAIT behind WITH, or empty.
	Termination string
	After       Expression // seconds of ROLLBACK AFTER
	HasSeconds  bool       // the word SECONDS is written
	NewName     string     // of COLLATE and MODIFY NAME
	Rest        []string   // the tokens of an action on files and filegroups, as they are written
}

// Drop removes objects: DROP kind names. Page: statements/drop-table-transact-sql.
type Drop struct {
	StatementAt
	Kind     string // TABLE, PROCEDURE, MESSAGE TYPE, QUEUE, CERTIFICATE and others
	IfExists bool
	Names    []Name
	// On is the table of DROP INDEX, or SERVER, DATABASE, ALL SERVER or QUEUE of triggers and event notifications.
	On      string
	OnName  Name
	Options []*Option // WITH (...) of DROP INDEX
	Words   string    // WITH NO DEPENDENTS, REMOVE PROVIDER KEY and others, or empty
	// Indexes are the pairs of DROP INDEX name ON table, name ON table.
	Indexes []*DroppedIndex
}

// DroppedIndex is one index of DROP INDEX with its table.
type DroppedIndex struct {
	Place
	Name    string
	Table   Name
	Options []*Option
}
