package ast

// Call is a function with arguments in parentheses, built in or the user's. COALESCE, NULLIF, LEFT, RIGHT and the
// aggregates are calls too. Page: functions/functions.
type Call struct {
	ExpressionAt
	Name        Name
	Quantifier  string // ALL or DISTINCT of an aggregate, or empty
	Arguments   []Expression
	WithinGroup []*OrderItem // WITHIN GROUP (ORDER BY ...)
	Nulls       string       // IGNORE NULLS or RESPECT NULLS, or empty
	Over        *Window      // or nil
}

// Niladic is a function without parentheses: CURRENT_TIMESTAMP, CURRENT_USER, SESSION_USER, SYSTEM_USER, USER and their
// relatives. Page: functions/current-timestamp-transact-sql.
type Niladic struct {
	ExpressionAt
	Name string // in upper case
}

// DatePart is the first argument of DATEADD, DATEDIFF, DATEPART and their relatives.
// Page: functions/dateadd-transact-sql.
type DatePart struct {
	ExpressionAt
	Name string // as it is written: day, dd, weekday
}

// Cast is CAST or TRY_CAST (expression AS type). Page: functions/cast-and-convert-transact-sql.
type Cast struct {
	ExpressionAt
	Try     bool
	Operand Expression
	Type    DataType
}

// Convert is CONVERT or TRY_CONVERT (type, expression, style). Page: functions/cast-and-convert-transact-sql.
type Convert struct {
	ExpressionAt
	Try     bool
	Type    DataType
	Operand Expression
	Style   Expression // or nil
}

// Parse is PARSE or TRY_PARSE (text AS type USING culture). Page: functions/parse-transact-sql.
type Parse struct {
	ExpressionAt
	Try     bool
	Operand Expression
	Type    DataType
	Culture Expression // or nil
}

// Trim is TRIM with words: TRIM(LEADING 'x' FROM text). TRIM(text) is a Call. Page: functions/trim-transact-sql.
type Trim struct {
	ExpressionAt
	Side       string // LEADING, TRAILING, BOTH, or empty
	Characters Expression
	Operand    Expression
}

// NextValue is NEXT VALUE FOR a sequence. Page: functions/next-value-for-transact-sql.
type NextValue struct {
	ExpressionAt
	Sequence Name
	Over     *Window // or nil
}

// IdentityColumn is IDENTITY(type, seed, increment) in SELECT INTO. Page: functions/identity-function-transact-sql.
type IdentityColumn struct {
	ExpressionAt
	Type      DataType
	Seed      Expression // or nil
	Increment Expression // or nil
}

// MethodCall is a method of a value: column.value('path', 'type'), @x.nodes('path'). Page: xml/xml-data-type-methods.
type MethodCall struct {
	ExpressionAt
	Target    Expression
	Method    string // as it is written, because names of methods have a letter case
	Arguments []Expression
}

// PropertyAccess is a property of a value of a CLR type: @point.Lat. Page: spatial-geography/lat-geography-data-type.
type PropertyAccess struct {
	ExpressionAt
	Target   Expression
	Property string
}

// StaticCall is a method of a type: geography::Point(1, 2, 4326). Page: data-types/spatial-geography.
type StaticCall struct {
	ExpressionAt
	Type       Name
	Method     string
	IsProperty bool // no parentheses follow
	Arguments  []Expression
}

// JSONObject is JSON_OBJECT('key': value). Page: functions/json-object-transact-sql.
type JSONObject struct {
	ExpressionAt
	Keys   []Expression
	Values []Expression
	Nulls  string // NULL ON NULL, ABSENT ON NULL, or empty
}

// JSONArray is JSON_ARRAY(value, value NULL ON NULL). Page: functions/json-array-transact-sql.
type JSONArray struct {
	ExpressionAt
	Values []Expression
	Nulls  string // NULL ON NULL, ABSENT ON NULL, or empty
}

// OdbcEscape is {d '...'}, {t '...'}, {ts '...'}, {guid '...'} or {fn call}. Page: functions/odbc-scalar-functions-transact-sql.
type OdbcEscape struct {
	ExpressionAt
	Kind  string // d, t, ts, guid, fn
	Value Expression
}

// Window is the partition, order and frame behind OVER, and of a row of the clause WINDOW. Page: queries/select-over-clause-transact-sql.
type Window struct {
	Place
	Name        string // the window that this one is, or begins with
	Bare        bool   // OVER name, without parentheses
	PartitionBy []Expression
	OrderBy     []*OrderItem
	Frame       *Frame // or nil
}

// Frame is ROWS or RANGE of a window. Page: queries/select-over-clause-transact-sql.
type Frame struct {
	Place
	Unit string // ROWS or RANGE
	From FrameBound
	To   *FrameBound // nil without BETWEEN
}

// FrameBound is one end of a frame.
type FrameBound struct {
	Place
	Kind  string     // UNBOUNDED PRECEDING, UNBOUNDED FOLLOWING, CURRENT ROW, PRECEDING, FOLLOWING
	Count Expression // for PRECEDING and FOLLOWING
}

// OrderItem is one expression of ORDER BY. Page: queries/select-order-by-clause-transact-sql.
type OrderItem struct {
	Place
	Value     Expression
	Direction string // ASC, DESC, or empty
}
