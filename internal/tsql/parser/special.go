package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// specialFunctions have words between their arguments.
var specialFunctions = map[string]bool{
	"CASE": true, "CAST": true, "TRY_CAST": true, "CONVERT": true, "TRY_CONVERT": true, "PARSE": true, "TRY_PARSE": true, "IIF": true,
	"TRIM": true, "NEXT": true, "IDENTITY": true, "JSON_OBJECT": true, "JSON_ARRAY": true,
}

// special takes a function of the list above. It returns nil, and takes nothing, where the form is that of other calls.
func (p *parser) special(start int) ast.Expression {
	switch p.current().Upper {
	case "CASE":
		return p.caseOf(start)
	case "CAST", "TRY_CAST":
		return p.cast(start)
	case "CONVERT", "TRY_CONVERT":
		return p.convert(start)
	case "PARSE", "TRY_PARSE":
		return p.parse(start)
	case "IIF":
		return p.iif(start)
	case "TRIM":
		return p.trim(start)
	case "NEXT":
		return p.nextValue(start)
	case "IDENTITY":
		return p.identityColumn(start)
	case "JSON_OBJECT":
		return p.jsonObject(start)
	case "JSON_ARRAY":
		return p.jsonArray(start)
	default:
		return nil
	}
}

func (p *parser) caseOf(start int) ast.Expression {
	defer p.deeper()()
	p.expect("CASE")
	if !p.is("WHEN") {
		return p.simpleCase(start)
	}
	node := &ast.SearchedCase{}
	for p.is("WHEN") {
		from := p.at
		p.at++
		when := &ast.ConditionWhen{Condition: p.condition()}
		p.expect("THEN")
		when.Result = p.expression()
		when.Place = p.since(from)
		node.Whens = append(node.Whens, when)
	}
	node.Else = p.elseOfCase()
	node.Place = p.since(start)
	return node
}

func (p *parser) simpleCase(start int) ast.Expression {
	node := &ast.SimpleCase{Input: p.expression()}
	if !p.is("WHEN") {
		p.fail("WHEN")
	}
	for p.is("WHEN") {
		from := p.at
		p.at++
		when := &ast.ValueWhen{Value: p.expression()}
		p.expect("THEN")
		when.Result = p.expression()
		when.Place = p.since(from)
		node.Whens = append(node.Whens, when)
	}
	node.Else = p.elseOfCase()
	node.Place = p.since(start)
	return node
}

// elseOfCase takes ELSE, if it is there, and END.
func (p *parser) elseOfCase() (value ast.Expression) {
	if p.accept("ELSE") {
		value = p.expression()
	}
	if !p.is("END") {
		p.fail("WHEN", "ELSE", "END")
	}
	p.at++
	return value
}

func (p *parser) cast(start int) ast.Expression {
	defer p.deeper()()
	node := &ast.Cast{Try: p.take().Upper == "TRY_CAST"}
	p.expect("(")
	node.Operand = p.expression()
	p.expect("AS")
	node.Type = p.dataType()
	p.expect(")")
	node.Place = p.since(start)
	return node
}

func (p *parser) convert(start int) ast.Expression {
	defer p.deeper()()
	node := &ast.Convert{Try: p.take().Upper == "TRY_CONVERT"}
	p.expect("(")
	node.Type = p.dataType()
	p.expect(",")
	node.Operand = p.expression()
	if p.accept(",") {
		node.Style = p.expression()
	}
	p.expect(")")
	node.Place = p.since(start)
	return node
}

func (p *parser) parse(start int) ast.Expression {
	defer p.deeper()()
	node := &ast.Parse{Try: p.take().Upper == "TRY_PARSE"}
	p.expect("(")
	node.Operand = p.expression()
	p.expect("AS")
	node.Type = p.dataType()
	if p.accept("USING") {
		node.Culture = p.expression()
	}
	p.expect(")")
	node.Place = p.since(start)
	return node
}

func (p *parser) iif(start int) ast.Expression {
	defer p.deeper()()
	p.at++
	node := &ast.Iif{}
	p.expect("(")
	node.Condition = p.condition()
	p.expect(",")
	node.True = p.expression()
	p.expect(",")
	node.False = p.expression()
	p.expect(")")
	node.Place = p.since(start)
	return node
}

// trim takes TRIM with words; TRIM(text) is left to the rule of calls.
func (p *parser) trim(start int) ast.Expression {
	defer p.deeper()()
	p.at++
	node := &ast.Trim{}
	p.expect("(")
	if p.ahead(1).Kind != token.EOF && !p.ahead(1).Is(")") && !p.ahead(1).Is(",") && !p.ahead(1).Is(".") && !p.ahead(1).Is("(") {
		node.Side = p.acceptOne("LEADING", "TRAILING", "BOTH")
	}
	value := p.expression()
	if node.Side == "" && !p.is("FROM") {
		p.at = start
		return nil
	}
	p.expect("FROM")
	node.Characters = value
	node.Operand = p.expression()
	p.expect(")")
	node.Place = p.since(start)
	return node
}

func (p *parser) nextValue(start int) ast.Expression {
	if !p.accept("NEXT", "VALUE", "FOR") {
		return nil
	}
	node := &ast.NextValue{Sequence: p.name("a sequence")}
	if p.accept("OVER") {
		node.Over = p.over()
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) identityColumn(start int) ast.Expression {
	p.at++
	node := &ast.IdentityColumn{}
	p.expect("(")
	node.Type = p.dataType()
	if p.accept(",") {
		node.Seed = p.constant()
		p.expect(",")
		node.Increment = p.constant()
	}
	p.expect(")")
	node.Place = p.since(start)
	return node
}

func (p *parser) jsonObject(start int) ast.Expression {
	defer p.deeper()()
	p.at++
	node := &ast.JSONObject{}
	p.expect("(")
	if !p.is(")") && !p.isOne("NULL", "ABSENT") {
		p.list(func() {
			node.Keys = append(node.Keys, p.expression())
			p.expect(":")
			node.Values = append(node.Values, p.expression())
		})
	}
	node.Nulls = p.acceptPhrase("NULL ON NULL", "ABSENT ON NULL")
	p.expect(")")
	node.Place = p.since(start)
	return node
}

func (p *parser) jsonArray(start int) ast.Expression {
	defer p.deeper()()
	p.at++
	node := &ast.JSONArray{}
	p.expect("(")
	if !p.is(")") && !p.is("NULL", "ON", "NULL") && !p.is("ABSENT", "ON", "NULL") {
		node.Values = p.expressions()
	}
	node.Nulls = p.acceptPhrase("NULL ON NULL", "ABSENT ON NULL")
	p.expect(")")
	node.Place = p.since(start)
	return node
}
