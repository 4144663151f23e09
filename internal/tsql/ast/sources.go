package ast

// Alias is the name that a source of rows has in its query, perhaps with names for its columns.
type Alias struct {
	Name    string
	Columns []string
}

// TableName is a table, view, synonym or queue. Page: queries/from-transact-sql.
type TableName struct {
	SourceAt
	Name     Name
	Temporal *Temporal // FOR SYSTEM_TIME, or nil
	Sample   *Sample   // TABLESAMPLE, or nil
	Alias    Alias
	Hints    []*TableHint
	// BareHints says that the hints stand in parentheses without WITH.
	BareHints bool
}

// Temporal is FOR SYSTEM_TIME of a versioned table. Page: queries/from-transact-sql.
type Temporal struct {
	Place
	Kind string // AS OF, FROM, BETWEEN, CONTAINED IN, ALL
	From Expression
	To   Expression // or nil
}

// Sample is TABLESAMPLE. Page: queries/from-transact-sql.
type Sample struct {
	Place
	System     bool
	Size       Expression
	Unit       string     // PERCENT, ROWS, or empty
	Repeatable Expression // or nil
}

// TableHint is one hint of a table. Page: queries/hints-transact-sql-table.
type TableHint struct {
	Place
	Name   string   // in upper case
	Equals bool     // INDEX = (...)
	Values []string // indexes, by name or number; a number of SPATIAL_WINDOW_MAX_CELLS
	Parens bool     // the values stand in parentheses
	// Columns are those of FORCESEEK (index (columns)).
	Columns []string
}

// TableVariable is @t in FROM. Page: queries/from-transact-sql.
type TableVariable struct {
	SourceAt
	Name  string // with its @
	Alias Alias
	Hints []*TableHint
}

// DerivedTable is a query in parentheses. Page: queries/from-transact-sql.
type DerivedTable struct {
	SourceAt
	Query *Query
	Alias Alias
}

// ValuesTable is (VALUES (...), (...)) in FROM. Page: queries/table-value-constructor-transact-sql.
type ValuesTable struct {
	SourceAt
	Rows  [][]Expression
	Alias Alias
}

// ChangedTable is a statement of DML with OUTPUT in FROM. Page: statements/insert-transact-sql.
type ChangedTable struct {
	SourceAt
	Statement Statement
	Alias     Alias
}

// FunctionTable is a function that yields rows: the user's, OPENJSON, OPENXML, STRING_SPLIT, CHANGETABLE, a method nodes.
// Page: queries/from-transact-sql.
type FunctionTable struct {
	SourceAt
	Function Expression      // a Call or a MethodCall
	Schema   []*SchemaColumn // WITH (...) of OPENJSON, OPENXML and OPENROWSET
	// SchemaTable is WITH (table) of OPENXML.
	SchemaTable Name
	Alias       Alias
	Hints       []*TableHint
}

// SchemaColumn is a column that OPENJSON or OPENXML yields. Page: functions/openjson-transact-sql.
type SchemaColumn struct {
	Place
	Name   string
	Type   DataType
	Path   Expression // or nil
	AsJSON bool
}

// RowsetTable is OPENROWSET, OPENQUERY, OPENDATASOURCE or CHANGETABLE. Page: functions/openrowset-transact-sql.
type RowsetTable struct {
	SourceAt
	Function string   // in upper case
	Words    []string // the tokens in its parentheses, as they are written
	Name     Name     // what follows OPENDATASOURCE(...)
	Schema   []string // the tokens of WITH (...), as they are written
	Alias    Alias
}

// Join joins two sources. Page: queries/from-transact-sql.
type Join struct {
	SourceAt
	Kind  string // INNER, LEFT, RIGHT, FULL, CROSS, CROSS APPLY, OUTER APPLY
	Hint  string // LOOP, HASH, MERGE, REMOTE, REDUCE, REPLICATE, REDISTRIBUTE, or empty
	Left  TableSource
	Right TableSource
	On    Condition // nil for CROSS and APPLY
}

// SourceGroup is a joined source in parentheses.
type SourceGroup struct {
	SourceAt
	Inner TableSource
}

// Pivot turns rows into columns. Page: queries/from-using-pivot-and-unpivot.
type Pivot struct {
	SourceAt
	Input     TableSource
	Aggregate *Call
	Column    Name
	Values    []string
	Alias     Alias
}

// Unpivot turns columns into rows. Page: queries/from-using-pivot-and-unpivot.
type Unpivot struct {
	SourceAt
	Input   TableSource
	Value   string
	Column  string
	Columns []string
	Alias   Alias
}
