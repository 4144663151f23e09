package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
)

func (p *parser) createType(start int) ast.Statement {
	p.expect("TYPE")
	node := &ast.CreateType{Name: p.name("a type")}
	switch {
	case p.accept("FROM"):
		node.Base = p.dataType()
		node.Nullable = p.acceptPhrase("NOT NULL", "NULL")
	case p.accept("AS", "TABLE"):
		node.Table = p.tableDefinition()
		if p.is("WITH", "(") {
			p.at++
			node.Options = p.optionsInParens()
		}
	default:
		if node.External = p.external(); node.External == nil {
			p.fail("FROM", "AS TABLE", "EXTERNAL NAME")
		}
	}
	node.Text = p.textOf(start)
	node.Place = p.since(start)
	return node
}

func (p *parser) createSchema(start int) ast.Statement {
	p.expect("SCHEMA")
	p.alone(start, "CREATE SCHEMA")
	node := &ast.CreateSchema{}
	if !p.is("AUTHORIZATION") {
		node.Name = p.identifier("a schema")
	}
	node.Owner = p.owner()
	for {
		from := p.at
		switch {
		case p.is("CREATE", "TABLE"):
			p.at++
			node.Elements = append(node.Elements, p.createTable(from))
		case p.isOne("GRANT", "DENY", "REVOKE"):
			node.Elements = append(node.Elements, p.permission(from))
		case p.is("CREATE", "VIEW"):
			p.at++
			node.Elements = append(node.Elements, p.viewInSchema(from))
		default:
			node.Place = p.since(start)
			return node
		}
	}
}

// viewInSchema takes a view that stands in CREATE SCHEMA, where it is not alone.
func (p *parser) viewInSchema(start int) ast.Statement {
	p.expect("VIEW")
	node := &ast.View{Module: ast.Module{Verb: "CREATE", Name: p.name("a view")}, Columns: p.columnList()}
	node.Options = p.moduleOptions()
	p.expect("AS")
	node.Query = p.query()
	node.Text = p.textOf(start)
	node.Place = p.since(start)
	return node
}

func (p *parser) alterSchema(start int) ast.Statement {
	p.expect("SCHEMA")
	node := &ast.AlterSchema{Name: p.identifier("a schema")}
	p.expect("TRANSFER")
	node.Class = p.classOf()
	node.Object = p.name("an object")
	node.Place = p.since(start)
	return node
}

func (p *parser) sequence(start int, verb string) ast.Statement {
	p.expect("SEQUENCE")
	node := &ast.Sequence{Verb: verb, Name: p.name("a sequence")}
	if p.accept("AS") {
		node.HasType = true
		node.Type = p.dataType()
	}
	for {
		from := p.at
		phrase := p.acceptPhrase("START WITH", "RESTART WITH", "RESTART", "INCREMENT BY", "NO MINVALUE", "NO MAXVALUE", "NO CYCLE", "NO CACHE",
			"MINVALUE", "MAXVALUE", "CYCLE", "CACHE")
		if phrase == "" {
			break
		}
		var value ast.Expression
		if p.opensArgument() {
			value = p.sequenceValue(phrase)
		}
		node.Options = append(node.Options, p.phraseOption(from, phrase, value))
	}
	node.Place = p.since(start)
	return node
}

// sequenceValue takes the number behind the words of a sequence that have one.
func (p *parser) sequenceValue(phrase string) ast.Expression {
	switch phrase {
	case "START WITH", "RESTART WITH", "INCREMENT BY", "MINVALUE", "MAXVALUE":
		return p.constant()
	case "CACHE":
		if p.isLiteral() {
			return p.constant()
		}
	}
	return nil
}

func (p *parser) synonym(start int) ast.Statement {
	p.expect("SYNONYM")
	node := &ast.Synonym{Name: p.name("a synonym")}
	p.expect("FOR")
	node.For = p.name("an object")
	node.Place = p.since(start)
	return node
}
