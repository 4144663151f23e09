package ast

// Select is a query as a statement. Page: queries/select-transact-sql.
type Select struct {
	StatementAt
	With    *With // or nil
	Query   *Query
	Options []*QueryHint
}

// Query is a query expression with what may follow it. Page: queries/select-transact-sql.
type Query struct {
	Place
	Body    QueryBody
	OrderBy []*OrderItem
	Offset  Expression // rows to leave out, or nil
	Fetch   Expression // rows to give, or nil
	For     *For       // or nil
}

// QueryBody is a specification, a set operation or a query in parentheses.
type QueryBody interface {
	Node
	queryBody()
}

// Specification is SELECT ... FROM ... WHERE ... GROUP BY ... HAVING. Page: queries/select-clause-transact-sql.
type Specification struct {
	Place
	Quantifier string // ALL or DISTINCT, or empty
	Top        *Top   // or nil
	Items      []SelectItem
	Into       *Into // or nil
	From       []TableSource
	Where      Condition // or nil
	GroupBy    *GroupBy  // or nil
	Having     Condition // or nil
	Windows    []*NamedWindow
}

// SetOperation is UNION, EXCEPT or INTERSECT. Page: language-elements/set-operators-union-transact-sql.
type SetOperation struct {
	Place
	Operator string // UNION, UNION ALL, EXCEPT or INTERSECT
	Left     QueryBody
	Right    QueryBody
}

// QueryGroup is a query in parentheses as a part of a query.
type QueryGroup struct {
	Place
	Query *Query
}

func (*Specification) queryBody() {}
func (*SetOperation) queryBody()  {}
func (*QueryGroup) queryBody()    {}

// Top limits the rows. Page: queries/top-transact-sql.
type Top struct {
	Place
	Count    Expression
	Parens   bool // the count stands in parentheses
	Percent  bool
	WithTies bool
}

// Into is the table that SELECT INTO makes. Page: queries/select-into-clause-transact-sql.
type Into struct {
	Place
	Table     Name
	Filegroup string // ON filegroup, or empty
}

// SelectItem is an element of a list of results.
type SelectItem interface {
	Node
	selectItem()
}

// ResultColumn is a value in the results, Star included. Page: queries/select-clause-transact-sql.
type ResultColumn struct {
	Place
	Value Expression
	Alias string // without quotes, empty where there is none
	// HasAlias is true also for an alias that is an empty string.
	HasAlias bool
}

// AssignedColumn is @variable = value in the list of SELECT or RECEIVE. Page: language-elements/select-local-variable-transact-sql.
type AssignedColumn struct {
	Place
	Variable string // with its @
	Operator string // = += -= *= /= %= &= |= ^=
	Value    Expression
}

func (*ResultColumn) selectItem()   {}
func (*AssignedColumn) selectItem() {}

// GroupBy is GROUP BY. Page: queries/select-group-by-transact-sql.
type GroupBy struct {
	Place
	All   bool
	Items []*GroupItem
	With  string // CUBE or ROLLUP behind WITH, or empty
}

// GroupItem is one element of GROUP BY.
type GroupItem struct {
	Place
	Kind  string     // empty for a value; ROLLUP, CUBE, GROUPING SETS; LIST for values in parentheses, perhaps none
	Value Expression // where Kind is empty
	Items []*GroupItem
}

// NamedWindow is an element of the clause WINDOW. Page: queries/select-window-transact-sql.
type NamedWindow struct {
	Place
	Name   string
	Window *Window
}

// For is FOR BROWSE, FOR XML or FOR JSON, and the clauses of cursors have their own. Page: queries/select-for-clause-transact-sql.
type For struct {
	Place
	Kind        string     // BROWSE, XML or JSON
	Mode        string     // RAW, AUTO, EXPLICIT or PATH
	ElementName Expression // RAW('name') and PATH('name'), or nil
	Options     []*Option  // TYPE, ROOT('name'), ELEMENTS XSINIL, BINARY BASE64, INCLUDE_NULL_VALUES and others
}

// With is a list of common table expressions and XML namespaces. Page: queries/with-common-table-expression-transact-sql.
type With struct {
	Place
	Namespaces []*XMLNamespace
	Tables     []*CommonTable
	// ChangeContext is WITH CHANGE_TRACKING_CONTEXT (value), or nil.
	ChangeContext Expression
}

// CommonTable is one common table expression.
type CommonTable struct {
	Place
	Name    string
	Columns []string
	Query   *Query
}

// XMLNamespace is one element of WITH XMLNAMESPACES. Page: xml/with-xmlnamespaces.
type XMLNamespace struct {
	Place
	URI     Expression
	Prefix  string // empty for DEFAULT
	Default bool
}

// QueryHint is an element of OPTION (...). Page: queries/hints-transact-sql-query.
type QueryHint struct {
	Place
	Words string     // in upper case, joined by a blank: RECOMPILE, MAXDOP, OPTIMIZE FOR
	Value Expression // or nil
	// Items are values in parentheses: of USE HINT, and variables of OPTIMIZE FOR.
	Items []*HintItem
	// Table and Hints are of TABLE HINT.
	Table Name
	Hints []*TableHint
}

// HintItem is a value of a query hint, perhaps for a variable.
type HintItem struct {
	Place
	Variable string     // with its @, or empty
	Value    Expression // nil for UNKNOWN
}
