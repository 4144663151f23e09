package ast

// LiteralKind says how a constant is written, which decides its type.
type LiteralKind int

// The kinds of constants.
const (
	Integer        LiteralKind = iota + 1 // 12: int, or decimal where that is too small
	Decimal                               // 1.5: decimal
	Float                                 // 1e5: float
	Money                                 // $1.5: money; Text has no sign of a currency
	String                                // 'text': varchar
	NationalString                        // N'text': nvarchar
	Binary                                // 0x0A: varbinary; Text has the digits without 0x
	Null                                  // NULL
	Default                               // DEFAULT, as a value of INSERT, UPDATE or EXECUTE
)

// Literal is a constant. Page: data-types/constants-transact-sql.
type Literal struct {
	ExpressionAt
	Kind LiteralKind
	Text string // of a string its value, with quotes no longer doubled
}

// Variable is a local variable. Page: language-elements/variables-transact-sql.
type Variable struct {
	ExpressionAt
	Name string // with its @
}

// SystemVariable is a function whose name begins with @@. Page: functions/functions.
type SystemVariable struct {
	ExpressionAt
	Name string // with its @@, in upper case
}

// ColumnReference is a column, perhaps with the table's name or alias before it.
// Page: language-elements/expressions-transact-sql.
type ColumnReference struct {
	ExpressionAt
	Name Name
}

// PseudoColumn is $ACTION, $IDENTITY, $ROWGUID, IDENTITYCOL, ROWGUIDCOL or a column of a graph, perhaps with a qualifier.
// Page: queries/select-clause-transact-sql.
type PseudoColumn struct {
	ExpressionAt
	Qualifier Name
	Name      string // with its $, in upper case
}

// Star is * or alias.*, in a list of results, in COUNT(*) and in EXISTS. Page: queries/select-clause-transact-sql.
type Star struct {
	ExpressionAt
	Qualifier Name
}

// Unary is + - or ~ before an operand. Page: language-elements/unary-operators-positive.
type Unary struct {
	ExpressionAt
	Operator string
	Operand  Expression
}

// Arithmetic is an operator between two values: + - * / % & | ^ || << >>. Page: language-elements/operators-transact-sql.
type Arithmetic struct {
	ExpressionAt
	Operator string
	Left     Expression
	Right    Expression
}

// Parenthesis is an expression in parentheses.
type Parenthesis struct {
	ExpressionAt
	Inner Expression
}

// Collate gives a text a collation. Page: statements/collations.
type Collate struct {
	ExpressionAt
	Operand   Expression
	Collation string
}

// AtTimeZone moves a time to a zone. Page: queries/at-time-zone-transact-sql.
type AtTimeZone struct {
	ExpressionAt
	Operand Expression
	Zone    Expression
}

// Subquery is a query in the place of a value. Page: language-elements/expressions-transact-sql.
type Subquery struct {
	ExpressionAt
	Query *Query
}

// SimpleCase compares one value with others. Page: language-elements/case-transact-sql.
type SimpleCase struct {
	ExpressionAt
	Input Expression
	Whens []*ValueWhen
	Else  Expression // or nil
}

// ValueWhen is a branch of a SimpleCase.
type ValueWhen struct {
	Place
	Value  Expression
	Result Expression
}

// SearchedCase takes the first branch whose condition is true. Page: language-elements/case-transact-sql.
type SearchedCase struct {
	ExpressionAt
	Whens []*ConditionWhen
	Else  Expression // or nil
}

// ConditionWhen is a branch of a SearchedCase.
type ConditionWhen struct {
	Place
	Condition Condition
	Result    Expression
}

// Iif is IIF(condition, value, value). Page: functions/logical-functions-iif-transact-sql.
type Iif struct {
	ExpressionAt
	Condition Condition
	True      Expression
	False     Expression
}
