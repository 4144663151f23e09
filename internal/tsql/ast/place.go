package ast

// Place is where a node stands in the text of its batch.
type Place struct {
	Offset int // of the first byte of the first token, from 0
	End    int // of the byte behind the last token
	Line   int // of the first token, from 1
	Column int // of the first token, in characters, from 1
}

// At returns the place itself: it makes each struct that embeds a place a node.
func (p Place) At() Place { return p }

// Node is a part of a batch that has a place.
type Node interface {
	At() Place
}

// Statement is an element of a batch, a block or a body.
type Statement interface {
	Node
	statement()
}

// Expression yields a value, or a table where a query stands in its place.
type Expression interface {
	Node
	expression()
}

// Condition is true, false or unknown; it is no value, and no value is a condition.
type Condition interface {
	Node
	condition()
}

// TableSource yields rows in FROM.
type TableSource interface {
	Node
	source()
}

// StatementAt makes the struct that embeds it a statement.
type StatementAt struct{ Place }

// ExpressionAt makes the struct that embeds it an expression.
type ExpressionAt struct{ Place }

// ConditionAt makes the struct that embeds it a condition.
type ConditionAt struct{ Place }

// SourceAt makes the struct that embeds it a source of rows.
type SourceAt struct{ Place }

func (StatementAt) statement()   {}
func (ExpressionAt) expression() {}
func (ConditionAt) condition()   {}
func (SourceAt) source()         {}

// Batch is all that stands between two GO: it is parsed as a whole, and no statement of a batch with an error runs.
type Batch struct {
	Place
	Text       string // what was parsed
	Statements []Statement
}
