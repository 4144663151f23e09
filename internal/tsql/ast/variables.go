package ast

// Declare declares variables. Page: language-elements/declare-local-variable-transact-sql.
type Declare struct {
	StatementAt
	Variables []*VariableDeclaration
}

// VariableDeclaration is one variable of DECLARE.
type VariableDeclaration struct {
	Place
	Name  string // with its @
	Type  DataType
	Value Expression // or nil
	// Table is set for a table variable, and Cursor is true for a variable of type CURSOR.
	Table  *TableDefinition
	Cursor bool
}

// SetVariable assigns to a variable. Page: language-elements/set-local-variable-transact-sql.
type SetVariable struct {
	StatementAt
	Variable string // with its @
	Operator string // = += -= *= /= %= &= |= ^=
	Value    Expression
	Cursor   *CursorDefinition // SET @c = CURSOR FOR ..., in place of the value
	Method   *MethodCall       // SET @x.modify(...), in place of the assignment
	Property string            // SET @x.property = value
}

// CursorName is a cursor by its name or by a variable.
type CursorName struct {
	Place
	Global   bool
	Name     string
	Variable string // with its @, in place of the name
}

// CursorDefinition is CURSOR with its options and its query.
type CursorDefinition struct {
	Place
	Options   []string // LOCAL, GLOBAL, FORWARD_ONLY, SCROLL, STATIC, KEYSET, DYNAMIC, FAST_FORWARD and others
	With      *With
	Query     *Query
	Hints     []*QueryHint
	ReadOnly  bool     // FOR READ ONLY
	ForUpdate bool     // FOR UPDATE
	Columns   []string // of FOR UPDATE OF
}

// DeclareCursor is DECLARE ... CURSOR. Page: language-elements/declare-cursor-transact-sql.
type DeclareCursor struct {
	StatementAt
	Name   string
	Before []string // INSENSITIVE, SCROLL of the form of the standard
	Cursor *CursorDefinition
}

// OpenCursor is OPEN. Page: language-elements/open-transact-sql.
type OpenCursor struct {
	StatementAt
	Cursor CursorName
}

// Fetch is FETCH. Page: language-elements/fetch-transact-sql.
type Fetch struct {
	StatementAt
	Direction string     // NEXT, PRIOR, FIRST, LAST, ABSOLUTE, RELATIVE, or empty
	Count     Expression // of ABSOLUTE and RELATIVE
	HasFrom   bool
	Cursor    CursorName
	Into      []string // variables, with their @
}

// CloseCursor is CLOSE. Page: language-elements/close-transact-sql.
type CloseCursor struct {
	StatementAt
	Cursor CursorName
}

// Deallocate is DEALLOCATE. Page: language-elements/deallocate-transact-sql.
type Deallocate struct {
	StatementAt
	Cursor CursorName
}
