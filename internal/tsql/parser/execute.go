package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// execute takes a call of a procedure, or of a text as a batch.
func (p *parser) execute(start int) ast.Statement {
	node := &ast.Execute{HasWord: p.acceptOne("EXEC", "EXECUTE") != ""}
	if node.HasWord && p.is("(") {
		p.executeText(node)
	} else {
		p.executeProcedure(node)
	}
	if p.is("WITH") && (p.ahead(1).Is("RECOMPILE") || p.ahead(1).Is("RESULT")) {
		p.executeOptions(node)
	}
	node.Place = p.since(start)
	return node
}

// executeText takes EXEC ('text' + @more) with AS and AT.
func (p *parser) executeText(node *ast.Execute) {
	p.expect("(")
	node.Text = p.expression()
	for p.accept(",") {
		node.Arguments = append(node.Arguments, p.callArgument())
	}
	p.expect(")")
	if p.accept("AS") {
		node.AsKind = p.expectOne("LOGIN", "USER")
		p.expect("=")
		node.AsName = p.textValue()
	}
	if p.accept("AT") {
		node.AtSource = p.accept("DATA_SOURCE")
		node.Server = p.identifier("a linked server")
	}
}

func (p *parser) executeProcedure(node *ast.Execute) {
	if p.isVariable() && p.ahead(1).Is("=") {
		node.Result = p.variable()
		p.expect("=")
	}
	if p.isVariable() {
		node.Variable = p.variable()
	} else {
		node.Procedure = p.name("a procedure")
		if p.is(";") && p.ahead(1).Kind == token.Integer {
			p.at++
			node.Number = p.take().Text
		}
	}
	if !p.opensArgument() {
		return
	}
	p.list(func() { node.Arguments = append(node.Arguments, p.callArgument()) })
}

// opensArgument says that an argument of a procedure comes next, and no statement.
func (p *parser) opensArgument() bool {
	t := p.current()
	switch {
	case t.Kind == token.EOF:
		return false
	case t.Is("NULL"), t.Is("DEFAULT"), t.Is("-"), t.Is("+"), t.Is("ON"), t.Is("OFF"):
		return true
	case t.Kind == token.Operator:
		return false
	case t.Kind == token.Word:
		return !t.Reserved && !p.opensStatement(p.at) && !p.isLabel()
	default:
		return true
	}
}

// callArgument takes one argument of a procedure: a constant, a variable, a bare word, DEFAULT.
func (p *parser) callArgument() *ast.Argument {
	start := p.at
	node := &ast.Argument{}
	if p.isVariable() && p.ahead(1).Is("=") {
		node.Name = p.variable()
		p.expect("=")
	}
	node.Value = p.argumentValue()
	if _, is := node.Value.(*ast.Variable); is {
		node.IsOutput = p.acceptOne("OUTPUT", "OUT") != ""
	} else if p.isOne("OUTPUT", "OUT") {
		p.refuse(p.at, 179, 15, "Cannot use the OUTPUT option when passing a constant to a stored procedure.")
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) argumentValue() ast.Expression {
	start := p.at
	t := p.current()
	switch {
	case p.accept("DEFAULT"):
		node := &ast.Literal{Kind: ast.Default}
		node.Place = p.since(start)
		return node
	case t.Is("NULL"):
		return p.literal()
	case p.isName(), t.Is("ON"), t.Is("OFF"):
		p.at++
		node := &ast.ColumnReference{Name: ast.Name{Parts: []string{t.Text}, Place: p.since(start)}}
		node.Place = node.Name.Place
		return node
	default:
		return p.constant()
	}
}

func (p *parser) executeOptions(node *ast.Execute) {
	p.expect("WITH")
	p.list(func() {
		switch option := p.expectPhrase("RECOMPILE", "RESULT SETS UNDEFINED", "RESULT SETS NONE", "RESULT SETS"); option {
		case "RESULT SETS":
			p.inParens(func() { p.list(func() { node.ResultSets = append(node.ResultSets, p.resultSet()) }) })
		default:
			node.Options = append(node.Options, option)
		}
	})
}

func (p *parser) resultSet() *ast.ResultSet {
	start := p.at
	set := &ast.ResultSet{}
	if p.accept("AS") {
		set.As = p.expectPhrase("OBJECT", "TYPE", "FOR XML")
		if set.As != "FOR XML" {
			set.Object = p.name("a table or a type")
		}
	} else {
		p.inParens(func() {
			p.list(func() { set.Columns = append(set.Columns, p.columnDefinition()) })
		})
	}
	set.Place = p.since(start)
	return set
}
