package ast

// Logical is AND or OR between two conditions. Page: language-elements/and-transact-sql.
type Logical struct {
	ConditionAt
	Operator string // AND or OR
	Left     Condition
	Right    Condition
}

// Not turns a condition around. Page: language-elements/not-transact-sql.
type Not struct {
	ConditionAt
	Operand Condition
}

// ConditionGroup is a condition in parentheses.
type ConditionGroup struct {
	ConditionAt
	Inner Condition
}

// Comparison compares two values: = <> != < <= > >= !< !>. Page: language-elements/comparison-operators-transact-sql.
type Comparison struct {
	ConditionAt
	Operator string
	Left     Expression
	Right    Expression
}

// Quantified compares a value with all or some rows of a query. Page: language-elements/all-transact-sql.
type Quantified struct {
	ConditionAt
	Operator   string
	Left       Expression
	Quantifier string // ALL, SOME or ANY
	Query      *Query
}

// IsDistinct is IS [NOT] DISTINCT FROM. Page: queries/is-distinct-from-transact-sql.
type IsDistinct struct {
	ConditionAt
	Not   bool
	Left  Expression
	Right Expression
}

// IsNull is IS [NOT] NULL. Page: queries/is-null-transact-sql.
type IsNull struct {
	ConditionAt
	Not     bool
	Operand Expression
}

// Between is [NOT] BETWEEN low AND high. Page: language-elements/between-transact-sql.
type Between struct {
	ConditionAt
	Not     bool
	Operand Expression
	Low     Expression
	High    Expression
}

// In compares with a list or with the rows of a query: one of both is set. Page: language-elements/in-transact-sql.
type In struct {
	ConditionAt
	Not     bool
	Operand Expression
	List    []Expression
	Query   *Query
}

// Like compares with a pattern. Page: language-elements/like-transact-sql.
type Like struct {
	ConditionAt
	Not     bool
	Operand Expression
	Pattern Expression
	Escape  Expression // or nil
}

// Exists asks whether a query has a row. Page: language-elements/exists-transact-sql.
type Exists struct {
	ConditionAt
	Query *Query
}

// UpdatedColumn is UPDATE(column) in a trigger. Page: functions/update-trigger-functions-transact-sql.
type UpdatedColumn struct {
	ConditionAt
	Column string
}

// FullText is CONTAINS or FREETEXT. Page: queries/contains-transact-sql.
type FullText struct {
	ConditionAt
	Function string // CONTAINS or FREETEXT, in upper case
	Columns  []Expression
	Property Expression // PROPERTY(column, 'name'), or nil
	Search   Expression
	Language Expression // or nil
}

// CurrentOf is the row under a cursor, alone behind WHERE. Page: statements/delete-transact-sql.
type CurrentOf struct {
	ConditionAt
	Cursor CursorName
}
