package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
)

// condition takes OR and everything that binds more tightly.
func (p *parser) condition() ast.Condition {
	defer p.deeper()()
	start := p.at
	left := p.conjunction()
	for p.accept("OR") {
		p.link()
		node := &ast.Logical{Operator: "OR", Left: left, Right: p.conjunction()}
		node.Place = p.since(start)
		left = node
	}
	return left
}

func (p *parser) conjunction() ast.Condition {
	start := p.at
	left := p.negation()
	for p.accept("AND") {
		p.link()
		node := &ast.Logical{Operator: "AND", Left: left, Right: p.negation()}
		node.Place = p.since(start)
		left = node
	}
	return left
}

func (p *parser) negation() ast.Condition {
	start := p.at
	if !p.accept("NOT") {
		return p.predicate()
	}
	defer p.deeper()()
	node := &ast.Not{Operand: p.negation()}
	node.Place = p.since(start)
	return node
}

// predicate takes one comparison, or a condition in parentheses.
func (p *parser) predicate() ast.Condition {
	start := p.at
	switch {
	case p.is("EXISTS"):
		p.at++
		if !p.opensQuery() {
			p.fail("(SELECT")
		}
		p.expect("(")
		node := &ast.Exists{Query: p.query()}
		p.expect(")")
		node.Place = p.since(start)
		return node
	case p.is("UPDATE", "("):
		p.at++
		node := &ast.UpdatedColumn{}
		p.inParens(func() { node.Column = p.identifier("a column") })
		node.Place = p.since(start)
		return node
	case p.is("CONTAINS", "("), p.is("FREETEXT", "("):
		return p.fullText(start)
	case p.is("(") && p.holdsCondition():
		p.at++
		node := &ast.ConditionGroup{Inner: p.condition()}
		p.expect(")")
		node.Place = p.since(start)
		return node
	}
	return p.comparison(start, p.expression())
}

// holdsCondition says that the parentheses at the current token hold a condition and no value: a word or an operator of
// conditions stands in them, outside of inner queries and calls, and of CASE and IIF.
func (p *parser) holdsCondition() bool {
	if p.opensQuery() {
		return false
	}
	depth, cases := 0, 0
	for at := p.at; at < len(p.tokens); at++ {
		t := &p.tokens[at]
		switch {
		case t.Is("("):
			if at > p.at && depth > 0 && (p.tokens[at-1].IsName() || reservedFunctions[p.tokens[at-1].Upper] || p.tokens[at+1].Is("SELECT")) {
				at = p.closing(at)
				continue
			}
			depth++
		case t.Is(")"):
			depth--
			if depth == 0 {
				return false
			}
		case t.Is("CASE"):
			cases++
		case t.Is("END") && cases > 0:
			cases--
		case cases == 0 && conditionWords[t.Upper] && t.Is(t.Upper):
			return true
		}
	}
	return false
}

// conditionWords stand in conditions only.
var conditionWords = map[string]bool{
	"=": true, "<": true, ">": true, "<=": true, ">=": true, "<>": true, "!=": true, "!<": true, "!>": true, "!": true,
	"*=":  true,
	"AND": true, "OR": true, "NOT": true, "IN": true, "LIKE": true, "BETWEEN": true, "IS": true, "EXISTS": true, "CONTAINS": true,
	"FREETEXT": true, "UPDATE": true,
}

// closing gives the number of the token that closes the parenthesis of this number.
func (p *parser) closing(open int) int {
	depth := 0
	for at := open; at < len(p.tokens); at++ {
		switch {
		case p.tokens[at].Is("("):
			depth++
		case p.tokens[at].Is(")"):
			depth--
			if depth == 0 {
				return at
			}
		}
	}
	return len(p.tokens) - 1
}

// comparisons may have blanks between their characters.
var comparisons = [][]string{
	{"<", "="},
	{">", "="},
	{"<", ">"},
	{"!", "="},
	{"!", "<"},
	{"!", ">"},
	{"<="},
	{">="},
	{"<>"},
	{"!="},
	{"!<"},
	{"!>"},
	{"="},
	{"<"},
	{">"},
}

// comparisonOperator takes an operator that compares, or returns an empty text.
func (p *parser) comparisonOperator() string {
	for _, operator := range comparisons {
		if p.accept(operator...) {
			if len(operator) == 2 {
				return operator[0] + operator[1]
			}
			return operator[0]
		}
	}
	return ""
}

// comparison takes what follows the first value of a condition.
func (p *parser) comparison(start int, left ast.Expression) ast.Condition {
	if p.is("*=") || p.is("=", "*") {
		p.refuse(p.at, 4147, 15,
			"The query uses non-ANSI outer join operators (\"*=\" or \"=*\"). Write LEFT JOIN or RIGHT JOIN in their place.")
	}
	if operator := p.comparisonOperator(); operator != "" {
		return p.compared(start, operator, left)
	}
	if p.is("IS") {
		return p.isPredicate(start, left)
	}
	not := p.accept("NOT")
	switch {
	case p.accept("BETWEEN"):
		node := &ast.Between{Not: not, Operand: left, Low: p.expression()}
		p.expect("AND")
		node.High = p.expression()
		node.Place = p.since(start)
		return node
	case p.accept("LIKE"):
		return p.like(start, not, left)
	case p.accept("IN"):
		return p.in(start, not, left)
	}
	if p.atEnd() && p.at > start {
		p.refuse(p.at-1, 4145, 15, "An expression of non-boolean type specified in a context where a condition is expected, near '%s'.",
			p.tokens[p.at-1].Text)
	}
	if not {
		p.fail("BETWEEN", "LIKE", "IN")
	}
	near := p.current()
	p.refuse(p.at, 4145, 15, "An expression of non-boolean type specified in a context where a condition is expected, near '%s'.",
		p.text[near.Offset:near.End])
	return nil
}

func (p *parser) compared(start int, operator string, left ast.Expression) ast.Condition {
	quantifier := p.acceptOne("ALL", "SOME", "ANY")
	if quantifier == "" {
		node := &ast.Comparison{Operator: operator, Left: left, Right: p.expression()}
		node.Place = p.since(start)
		return node
	}
	node := &ast.Quantified{Operator: operator, Left: left, Quantifier: quantifier}
	p.inParens(func() { node.Query = p.query() })
	node.Place = p.since(start)
	return node
}

func (p *parser) isPredicate(start int, left ast.Expression) ast.Condition {
	p.expect("IS")
	not := p.accept("NOT")
	if p.accept("DISTINCT", "FROM") {
		node := &ast.IsDistinct{Not: not, Left: left, Right: p.expression()}
		node.Place = p.since(start)
		return node
	}
	p.expect("NULL")
	node := &ast.IsNull{Not: not, Operand: left}
	node.Place = p.since(start)
	return node
}

func (p *parser) like(start int, not bool, left ast.Expression) ast.Condition {
	node := &ast.Like{Not: not, Operand: left, Pattern: p.expression()}
	switch {
	case p.accept("ESCAPE"):
		node.Escape = p.expression()
	case p.is("{", "ESCAPE"):
		p.at += 2
		node.Escape = p.expression()
		p.expect("}")
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) in(start int, not bool, left ast.Expression) ast.Condition {
	node := &ast.In{Not: not, Operand: left}
	if p.opensQuery() {
		p.inParens(func() { node.Query = p.query() })
	} else {
		p.inParens(func() { node.List = p.expressions() })
	}
	node.Place = p.since(start)
	return node
}

// fullText takes CONTAINS or FREETEXT.
func (p *parser) fullText(start int) ast.Condition {
	node := &ast.FullText{Function: p.take().Upper}
	p.expect("(")
	switch {
	case p.is("PROPERTY", "("):
		p.at += 2
		node.Columns = append(node.Columns, p.expression())
		p.expect(",")
		node.Property = p.expression()
		p.expect(")")
	case p.accept("("):
		if p.is("*") {
			node.Columns = append(node.Columns, p.argument())
		} else {
			node.Columns = p.expressions()
		}
		p.expect(")")
	default:
		node.Columns = append(node.Columns, p.argument())
	}
	p.expect(",")
	node.Search = p.expression()
	if p.accept(",") {
		p.expect("LANGUAGE")
		node.Language = p.expression()
	}
	p.expect(")")
	node.Place = p.since(start)
	return node
}
