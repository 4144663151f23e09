package ast

// TableDefinition is a list of columns and constraints, of a table, a table variable or a table type.
type TableDefinition struct {
	Place
	Columns     []*ColumnDefinition
	Constraints []*Constraint
	Indexes     []*CreateIndex // written inside the table
	Period      []string       // the two columns of PERIOD FOR SYSTEM_TIME
	// Order has for each element, in the order of the text, 'c' for a column, 'k' for a constraint, 'i' for an index
	// and 'p' for the period.
	Order []byte
}

// CreateTable is CREATE TABLE. Page: statements/create-table-transact-sql.
type CreateTable struct {
	StatementAt
	Name       Name
	AsFile     bool   // AS FILETABLE
	AsKind     string // AS NODE or AS EDGE, or empty
	Definition *TableDefinition
	Storage    []*Storage // ON, TEXTIMAGE_ON, FILESTREAM_ON
	Options    []*Option  // WITH (...)
}

// Storage names where a table or an index is kept.
type Storage struct {
	Place
	Kind   string // ON, TEXTIMAGE_ON, FILESTREAM_ON
	Name   string // of a filegroup or a partition scheme
	Column string // of a partition scheme, or empty
}

// ColumnDefinition is a column of a table. Page: statements/create-table-transact-sql.
type ColumnDefinition struct {
	Place
	Name     string
	HasType  bool // a column of type timestamp may leave its type out, a computed one has none
	Type     DataType
	Computed Expression // AS expression, or nil
	// Clauses follow the type, in the order of the text.
	Clauses []*ColumnClause
}

// ColumnClause is a clause behind a column's type.
type ColumnClause struct {
	Place
	// Kind is NULL, NOT NULL, COLLATE, IDENTITY, ROWGUIDCOL, SPARSE, FILESTREAM, PERSISTED, HIDDEN, NOT FOR REPLICATION,
	// GENERATED, MASKED, ENCRYPTED, CONSTRAINT or INDEX.
	Kind       string
	Name       string     // the collation, or the words of GENERATED
	Seed       Expression // of IDENTITY, or nil
	Increment  Expression // of IDENTITY, or nil
	Options    []*Option  // of MASKED and ENCRYPTED
	Constraint *Constraint
	Index      *CreateIndex
}

// Constraint is a constraint of a column or a table. Page: statements/alter-table-table-constraint-transact-sql.
type Constraint struct {
	Place
	Name string // CONSTRAINT name, or empty
	Kind string // PRIMARY KEY, UNIQUE, FOREIGN KEY, CHECK, DEFAULT, CONNECTION

	Cluster   string       // CLUSTERED or NONCLUSTERED, with HASH perhaps, or empty
	Columns   []*KeyColumn // of keys; none where a column has the constraint
	Options   []*Option    // WITH (...) of keys
	OldFill   Expression   // WITH FILLFACTOR = n, or nil
	Storage   []*Storage
	NoEnforce bool // NOT ENFORCED

	HasForeign     bool // FOREIGN KEY is written, which a column may leave out
	References     Name
	ForeignColumns []string
	OnDelete       string // NO ACTION, CASCADE, SET NULL, SET DEFAULT, or empty
	OnUpdate       string

	NotForReplication bool
	Check             Condition

	Default    Expression
	ForColumn  string // DEFAULT value FOR column of ALTER TABLE
	WithValues bool

	Connections []*EdgeConnection // of a CONNECTION of a graph
}

// EdgeConnection is one pair of a graph's CONNECTION.
type EdgeConnection struct {
	Place
	From Name
	To   Name
}

// KeyColumn is a column of a key or an index.
type KeyColumn struct {
	Place
	Name      string
	Direction string // ASC, DESC, or empty
}

// AlterTable is ALTER TABLE with one change. Page: statements/alter-table-transact-sql.
type AlterTable struct {
	StatementAt
	Name  Name
	Check string // CHECK or NOCHECK behind WITH, or empty
	// Action is ADD, ALTER COLUMN, DROP, CHECK CONSTRAINT, NOCHECK CONSTRAINT, ENABLE TRIGGER, DISABLE TRIGGER, SET,
	// REBUILD, SWITCH, ENABLE CHANGE_TRACKING or DISABLE CHANGE_TRACKING.
	Action  string
	Added   *TableDefinition
	Column  *ColumnDefinition // of ALTER COLUMN
	Change  string            // ADD or DROP of ALTER COLUMN, or empty
	Drops   []*TableDrop
	All     bool // CONSTRAINT ALL or TRIGGER ALL
	Names   []string
	Target  Name // of SWITCH
	Source  Expression
	Into    Expression // partitions of SWITCH, or nil
	Options []*Option  // of SET, REBUILD, SWITCH, CHANGE_TRACKING, ALTER COLUMN
	HasWith bool
}

// TableDrop is an element of ALTER TABLE ... DROP.
type TableDrop struct {
	Place
	Kind     string // COLUMN, CONSTRAINT, PERIOD, or empty, which means a constraint
	IfExists bool
	Names    []string
	Options  []*Option // WITH (...)
}

// CreateIndex is CREATE INDEX and an index inside a table. Page: statements/create-index-transact-sql.
type CreateIndex struct {
	StatementAt
	Name    string
	Unique  bool
	Cluster string // CLUSTERED, NONCLUSTERED, COLUMNSTORE and others, or empty
	Kind    string // XML, PRIMARY XML, SPATIAL, SELECTIVE XML, FULLTEXT, or empty
	Table   Name   // empty inside a table
	Columns []*KeyColumn
	Include []string
	Using   []string // words behind USING of XML and spatial indexes
	Where   Condition
	Options []*Option
	Parens  bool // the options stand in parentheses
	Storage []*Storage
}

// AlterIndex is ALTER INDEX. Page: statements/alter-index-transact-sql.
type AlterIndex struct {
	StatementAt
	Name      string // or ALL
	All       bool
	Table     Name
	Action    string     // REBUILD, REORGANIZE, DISABLE, SET, RESUME, PAUSE, ABORT
	Partition Expression // a number, the Keyword ALL, or nil
	Options   []*Option
}

// CreateStatistics is CREATE STATISTICS. Page: statements/create-statistics-transact-sql.
type CreateStatistics struct {
	StatementAt
	Name    string
	Table   Name
	Columns []string
	Where   Condition
	Options []*Option
}

// UpdateStatistics is UPDATE STATISTICS. Page: statements/update-statistics-transact-sql.
type UpdateStatistics struct {
	StatementAt
	Table   Name
	Names   []string
	Parens  bool // the names stand in parentheses
	Options []*Option
}

// Rename gives an object another name, for sp_rename; no text is read as one. Page: system-stored-procedures/sp-rename-transact-sql.
type Rename struct {
	StatementAt
	Name    Name
	Written string // the name as the call has it
	NewName string
	Kind    string // COLUMN, INDEX, USERDATATYPE, OBJECT, PROCEDURE, or empty
}

// CheckIdentity is DBCC CHECKIDENT. Page: database-console-commands/dbcc-checkident-transact-sql.
type CheckIdentity struct {
	StatementAt
	Table    Named
	NoReseed bool
	Value    Expression // of RESEED, or nil
	IsQuiet  bool       // WITH NO_INFOMSGS
}
