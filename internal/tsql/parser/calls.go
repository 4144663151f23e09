package parser

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// xmlMethods are the methods of xml: their names have a letter case. Page: xml/xml-data-type-methods.
var xmlMethods = []string{"value", "query", "exist", "nodes", "modify"}

// dateFunctions have a part of a date as their first argument.
var dateFunctions = []string{"DATEADD", "DATEDIFF", "DATEDIFF_BIG", "DATENAME", "DATEPART", "DATETRUNC", "DATE_BUCKET"}

// call takes the parentheses behind a function's name, and what follows them.
func (p *parser) call(start int, name ast.Name) ast.Expression {
	if len(name.Parts) > 1 && slices.Contains(xmlMethods, name.Object()) {
		return p.columnMethod(start, name)
	}
	defer p.deeper()()
	node := &ast.Call{Name: name}
	p.expect("(")
	if len(name.Parts) == 1 {
		node.Quantifier = p.acceptOne("DISTINCT", "ALL")
	}
	if !p.is(")") {
		p.callArguments(node)
	}
	if nulls := p.acceptPhrase("IGNORE NULLS", "RESPECT NULLS"); nulls != "" {
		node.Nulls = nulls
	}
	p.expect(")")
	if len(name.Parts) == 1 {
		p.callTail(node)
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) callArguments(node *ast.Call) {
	function := strings.ToUpper(node.Name.Object())
	if len(node.Name.Parts) == 1 && slices.Contains(dateFunctions, function) && p.isName() && !p.ahead(1).Is("(") {
		start := p.at
		part := &ast.DatePart{Name: p.identifier("a part of a date")}
		part.Place = p.since(start)
		node.Arguments = append(node.Arguments, part)
		if !p.accept(",") {
			return
		}
	}
	p.list(func() { node.Arguments = append(node.Arguments, p.argument()) })
}

// argument takes an argument of a function: a value, * of an aggregate, or DEFAULT.
func (p *parser) argument() ast.Expression {
	start := p.at
	switch {
	case p.accept("*"):
		node := &ast.Star{}
		node.Place = p.since(start)
		return node
	case p.accept("DEFAULT"):
		node := &ast.Literal{Kind: ast.Default}
		node.Place = p.since(start)
		return node
	default:
		return p.expression()
	}
}

// callTail takes WITHIN GROUP, IGNORE NULLS and OVER.
func (p *parser) callTail(node *ast.Call) {
	if p.accept("WITHIN", "GROUP") {
		p.expect("(")
		node.WithinGroup = p.orderBy()
		p.expect(")")
	}
	if nulls := p.acceptPhrase("IGNORE NULLS", "RESPECT NULLS"); nulls != "" {
		node.Nulls = nulls
	}
	if p.accept("OVER") {
		node.Over = p.over()
	}
}

// columnMethod takes a method of xml whose column the name holds.
func (p *parser) columnMethod(start int, name ast.Name) ast.Expression {
	method := name.Object()
	column := &ast.ColumnReference{Name: ast.Name{Parts: name.Parts[:len(name.Parts)-1], Place: name.Place}}
	column.Name.End -= len(method) + 1
	column.Place = column.Name.Place
	node := &ast.MethodCall{Target: column, Method: method, Arguments: p.arguments()}
	node.Place = p.since(start)
	return node
}

// over takes what follows OVER.
func (p *parser) over() *ast.Window {
	start := p.at
	if p.isName() {
		window := &ast.Window{Name: p.identifier("a window"), Bare: true}
		window.Place = p.since(start)
		return window
	}
	return p.window()
}

// window takes the definition of a window in parentheses.
func (p *parser) window() *ast.Window {
	start := p.at
	window := &ast.Window{}
	p.expect("(")
	if p.isName() && !p.isOne("PARTITION", "ROWS", "RANGE") {
		window.Name = p.identifier("a window")
	}
	if p.accept("PARTITION", "BY") {
		window.PartitionBy = p.expressions()
	}
	if p.is("ORDER") {
		window.OrderBy = p.orderBy()
	}
	if p.isOne("ROWS", "RANGE") {
		window.Frame = p.frame()
	}
	p.expect(")")
	window.Place = p.since(start)
	return window
}

func (p *parser) frame() *ast.Frame {
	start := p.at
	frame := &ast.Frame{Unit: p.take().Upper}
	if p.accept("BETWEEN") {
		frame.From = p.frameBound()
		p.expect("AND")
		to := p.frameBound()
		frame.To = &to
	} else {
		frame.From = p.frameBound()
	}
	frame.Place = p.since(start)
	return frame
}

func (p *parser) frameBound() ast.FrameBound {
	start := p.at
	bound := ast.FrameBound{Kind: p.acceptPhrase("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING", "CURRENT ROW")}
	if bound.Kind == "" {
		bound.Count = p.constant()
		bound.Kind = p.expectOne("PRECEDING", "FOLLOWING")
	}
	bound.Place = p.since(start)
	return bound
}

// orderBy takes ORDER BY with its list.
func (p *parser) orderBy() (items []*ast.OrderItem) {
	p.expect("ORDER", "BY")
	p.list(func() {
		start := p.at
		item := &ast.OrderItem{Value: p.expression(), Direction: p.acceptOne("ASC", "DESC")}
		item.Place = p.since(start)
		items = append(items, item)
	})
	return items
}

// odbcEscape takes an escape of ODBC in braces.
func (p *parser) odbcEscape() ast.Expression {
	start := p.at
	p.expect("{")
	node := &ast.OdbcEscape{}
	switch kind := strings.ToLower(p.identifier("d, t, ts, guid, fn")); kind {
	case "d", "t", "ts", "guid":
		node.Kind = kind
		if !p.isString() {
			p.fail("a string")
		}
		node.Value = p.literal()
	case "fn":
		node.Kind = kind
		node.Value = p.odbcFunction()
	default:
		p.failAt(p.at-1, "d, t, ts, guid, fn")
	}
	p.expect("}")
	node.Place = p.since(start)
	return node
}

// odbcFunction takes the function of {fn ...}, whose name may be a reserved word.
func (p *parser) odbcFunction() ast.Expression {
	start := p.at
	if p.current().Kind == token.Word && p.ahead(1).Is("(") && !specialFunctions[p.current().Upper] {
		t := p.take()
		return p.call(start, ast.Name{Parts: []string{t.Text}, Place: p.since(start)})
	}
	return p.primary()
}
