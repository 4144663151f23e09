package parser

import (
	"slices"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// selectStatement takes a query with OPTION.
func (p *parser) selectStatement(with *ast.With, start int) ast.Statement {
	node := &ast.Select{With: with, Query: p.query(), Options: p.queryHints()}
	node.Place = p.since(start)
	return node
}

// query takes a query expression with ORDER BY, OFFSET and FOR.
func (p *parser) query() *ast.Query {
	defer p.deeper()()
	start := p.at
	node := &ast.Query{Body: p.union()}
	if p.is("ORDER") {
		node.OrderBy = p.orderBy()
		if p.is("OFFSET") {
			p.offset(node)
		}
	}
	if p.is("FOR") && (p.ahead(1).Is("XML") || p.ahead(1).Is("JSON") || p.ahead(1).Is("BROWSE")) {
		node.For = p.forClause()
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) offset(node *ast.Query) {
	p.expect("OFFSET")
	node.Offset = p.expression()
	p.expectOne("ROWS", "ROW")
	if p.accept("FETCH") {
		p.expectOne("NEXT", "FIRST")
		node.Fetch = p.expression()
		p.expectOne("ROWS", "ROW")
		p.expect("ONLY")
	}
}

// union takes UNION and EXCEPT; INTERSECT binds more tightly. Page: language-elements/set-operators-except-and-intersect-transact-sql.
func (p *parser) union() ast.QueryBody {
	start := p.at
	left := p.intersection()
	for {
		operator := p.acceptPhrase("UNION ALL", "UNION", "EXCEPT")
		if operator == "" {
			return left
		}
		p.link()
		left = &ast.SetOperation{Operator: operator, Left: left, Right: p.intersection()}
		left.(*ast.SetOperation).Place = p.since(start)
	}
}

func (p *parser) intersection() ast.QueryBody {
	start := p.at
	left := p.queryTerm()
	for p.accept("INTERSECT") {
		p.link()
		left = &ast.SetOperation{Operator: "INTERSECT", Left: left, Right: p.queryTerm()}
		left.(*ast.SetOperation).Place = p.since(start)
	}
	return left
}

func (p *parser) queryTerm() ast.QueryBody {
	start := p.at
	if p.is("(") {
		defer p.deeper()()
		p.expect("(")
		node := &ast.QueryGroup{Query: p.query()}
		p.expect(")")
		node.Place = p.since(start)
		return node
	}
	return p.specification()
}

func (p *parser) specification() ast.QueryBody {
	start := p.at
	p.expect("SELECT")
	node := &ast.Specification{Quantifier: p.acceptOne("ALL", "DISTINCT")}
	if p.is("TOP") {
		node.Top = p.top()
	}
	node.Items = p.selectItems()
	if p.is("INTO") {
		from := p.at
		p.at++
		node.Into = &ast.Into{Table: p.name("a table")}
		if p.accept("ON") {
			node.Into.Filegroup = p.identifier("a filegroup")
		}
		node.Into.Place = p.since(from)
	}
	if p.accept("FROM") {
		node.From = p.sources()
	}
	if p.accept("WHERE") {
		node.Where = p.condition()
	}
	if p.is("GROUP", "BY") {
		node.GroupBy = p.groupBy()
	}
	if p.accept("HAVING") {
		node.Having = p.condition()
	}
	if p.is("WINDOW") && p.ahead(2).Is("AS") {
		p.namedWindows(node)
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) namedWindows(node *ast.Specification) {
	p.expect("WINDOW")
	p.list(func() {
		start := p.at
		window := &ast.NamedWindow{Name: p.identifier("a window")}
		p.expect("AS")
		window.Window = p.window()
		window.Place = p.since(start)
		node.Windows = append(node.Windows, window)
	})
}

// top takes TOP with or without parentheses.
func (p *parser) top() *ast.Top {
	start := p.at
	p.expect("TOP")
	top := &ast.Top{}
	switch {
	case p.opensQuery(): // the parentheses are those of the query
		top.Count = p.parenthesis()
	case p.accept("("):
		top.Parens = true
		top.Count = p.expression()
		p.expect(")")
	default:
		if p.current().Kind != token.Integer && p.current().Kind != token.Decimal && p.current().Kind != token.Float && !p.isVariable() {
			p.fail("a number", "(")
		}
		top.Count = p.constant()
	}
	top.Percent = p.accept("PERCENT")
	top.WithTies = p.accept("WITH", "TIES")
	top.Place = p.since(start)
	return top
}

func (p *parser) selectItems() (items []ast.SelectItem) {
	p.list(func() { items = append(items, p.selectItem()) })
	return items
}

// assignments are the operators that assign.
var assignments = []string{"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "||="}

// assignment takes an operator that assigns; its characters may have a blank between.
func (p *parser) assignment() string {
	if operator := p.acceptOne(assignments...); operator != "" {
		return operator
	}
	for _, sign := range []string{"+", "-", "*", "/", "%", "&", "|", "^"} {
		if p.accept(sign, "=") {
			return sign + "="
		}
	}
	p.fail("=")
	return ""
}

// isAssignment says that an operator which assigns stands so many tokens ahead.
func (p *parser) isAssignment(ahead int) bool {
	t := p.ahead(ahead)
	if slices.ContainsFunc(assignments, t.Is) {
		return true
	}
	return p.ahead(ahead+1).Is("=") && (t.Is("+") || t.Is("-") || t.Is("*") || t.Is("/") || t.Is("%") || t.Is("&") || t.Is("|") || t.Is("^"))
}

// selectItem takes an element of SELECT's or RECEIVE's list.
func (p *parser) selectItem() ast.SelectItem {
	start := p.at
	if p.isVariable() && p.isAssignment(1) {
		node := &ast.AssignedColumn{Variable: p.variable(), Operator: p.assignment()}
		node.Value = p.expression()
		node.Place = p.since(start)
		return node
	}
	if (p.isName() || p.isString()) && p.ahead(1).Is("=") {
		node := &ast.ResultColumn{Alias: p.take().Text, HasAlias: true}
		p.expect("=")
		node.Value = p.expression()
		node.Place = p.since(start)
		return node
	}
	return p.resultColumn()
}

// resultColumn takes a value with its alias.
func (p *parser) resultColumn() *ast.ResultColumn {
	start := p.at
	node := &ast.ResultColumn{}
	if p.accept("*") {
		star := &ast.Star{}
		star.Place = p.since(start)
		node.Value = star
		node.Place = star.Place
		return node
	}
	node.Value = p.expression()
	if p.accept("AS") {
		if !p.isName() && !p.isString() {
			p.fail("an alias")
		}
		node.Alias, node.HasAlias = p.take().Text, true
	} else if p.isAlias() || p.isString() {
		node.Alias, node.HasAlias = p.take().Text, true
	}
	node.Place = p.since(start)
	return node
}

// isAlias says that the current token is a name, and does not begin a statement or a clause.
func (p *parser) isAlias() bool {
	return p.isName() && !p.opensStatement(p.at) && !p.is("WINDOW") && !p.isLabel()
}

// isLabel says that a label comes next.
func (p *parser) isLabel() bool {
	return p.current().Kind == token.Word && p.isName() && p.ahead(1).Is(":")
}

// opensStatement says that a word which is no keyword begins a statement: SEND ON CONVERSATION, RECEIVE and their relatives.
func (p *parser) opensStatement(at int) bool {
	t := &p.tokens[at]
	if t.Kind != token.Word || t.Reserved || at+1 >= len(p.tokens) {
		return false
	}
	next := &p.tokens[at+1]
	switch t.Upper {
	case "SEND":
		return next.Is("ON")
	case "GET", "MOVE":
		return next.Is("CONVERSATION")
	case "RECEIVE":
		return next.Is("TOP") || next.Is("*") || next.Kind == token.Variable || next.Is("CONVERT") || next.Is("CASE") || next.IsName()
	case "ENABLE", "DISABLE":
		return next.Is("TRIGGER")
	case "THROW":
		return next.Kind == token.Integer || next.Kind == token.Variable || next.Is(";")
	default:
		return false
	}
}

func (p *parser) groupBy() *ast.GroupBy {
	start := p.at
	p.expect("GROUP", "BY")
	node := &ast.GroupBy{All: p.accept("ALL")}
	p.list(func() { node.Items = append(node.Items, p.groupItem()) })
	if p.is("WITH") && (p.ahead(1).Is("CUBE") || p.ahead(1).Is("ROLLUP")) {
		p.at++
		node.With = p.take().Upper
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) groupItem() *ast.GroupItem {
	defer p.deeper()()
	start := p.at
	item := &ast.GroupItem{}
	switch {
	case p.is("ROLLUP", "("), p.is("CUBE", "("):
		item.Kind = p.take().Upper
		p.inParens(func() { p.groupItems(item) })
	case p.is("GROUPING", "SETS"):
		p.at += 2
		item.Kind = "GROUPING SETS"
		p.inParens(func() { p.groupItems(item) })
	case p.is("(", ")"):
		p.at += 2
		item.Kind = "LIST"
	case p.is("(") && p.hasComma():
		item.Kind = "LIST"
		p.inParens(func() { p.groupItems(item) })
	default:
		item.Value = p.expression()
	}
	item.Place = p.since(start)
	return item
}

func (p *parser) groupItems(item *ast.GroupItem) {
	p.list(func() { item.Items = append(item.Items, p.groupItem()) })
}

// hasComma says that the parentheses at the current token hold a list.
func (p *parser) hasComma() bool {
	depth := 0
	for at := p.at; at < len(p.tokens); at++ {
		switch {
		case p.tokens[at].Is("("):
			depth++
		case p.tokens[at].Is(")"):
			depth--
			if depth == 0 {
				return false
			}
		case p.tokens[at].Is(",") && depth == 1:
			return true
		}
	}
	return false
}
