package ast

// Target is the object that DML changes: a table, a view, an alias of FROM, a table variable or OPENQUERY.
type Target struct {
	Place
	Name     Name
	Variable string       // with its @, in place of the name
	Rowset   *RowsetTable // OPENQUERY or OPENROWSET in place of the name
	Hints    []*TableHint
	// BareHints says that the hints stand in parentheses without WITH.
	BareHints bool
}

// Insert is INSERT. Page: statements/insert-transact-sql.
type Insert struct {
	StatementAt
	With      *With
	Top       *Top
	HasInto   bool // the word INTO is written
	Target    Target
	Columns   []Name
	Output    []*Output
	Rows      [][]Expression // VALUES
	Query     *Query         // or a query
	Execute   *Execute       // or a procedure
	IsDefault bool           // or DEFAULT VALUES
	Options   []*QueryHint
}

// Output is OUTPUT of DML, once with INTO and once without at most. Page: queries/output-clause-transact-sql.
type Output struct {
	Place
	Items    []*ResultColumn
	Into     Name
	Variable string // with its @, in place of the table
	HasInto  bool
	Columns  []string
}

// Update is UPDATE. Page: queries/update-transact-sql.
type Update struct {
	StatementAt
	With    *With
	Top     *Top
	Target  Target
	Set     []*SetClause
	Output  []*Output
	From    []TableSource
	Where   Condition // or nil
	Options []*QueryHint
}

// SetClause is one assignment of UPDATE, or a call of a method that changes a column.
type SetClause struct {
	Place
	Variable string // with its @: @v = ..., or @v = column = ...
	Column   Name
	Operator string // = += -= *= /= %= &= |= ^=; of @v = column op value the second
	Value    Expression
	Method   *MethodCall // column.modify(...), column.WRITE(...), @x.modify(...)
}

// Delete is DELETE. Page: statements/delete-transact-sql.
type Delete struct {
	StatementAt
	With    *With
	Top     *Top
	HasFrom bool // the first FROM is written
	Target  Target
	Output  []*Output
	From    []TableSource
	Where   Condition // or nil
	Options []*QueryHint
}

// Merge is MERGE. Page: statements/merge-transact-sql.
type Merge struct {
	StatementAt
	With    *With
	Top     *Top
	Target  Target
	Alias   string
	Using   TableSource
	On      Condition
	Whens   []*MergeWhen
	Output  []*Output
	Options []*QueryHint
}

// MergeWhen is one branch of MERGE.
type MergeWhen struct {
	Place
	Kind      string    // MATCHED, NOT MATCHED BY TARGET, NOT MATCHED BY SOURCE
	Condition Condition // or nil
	Action    string    // UPDATE, DELETE or INSERT
	Set       []*SetClause
	Columns   []Name
	Values    []Expression
	IsDefault bool // INSERT DEFAULT VALUES
}

// Truncate is TRUNCATE TABLE. Page: statements/truncate-table-transact-sql.
type Truncate struct {
	StatementAt
	Table Name
}
