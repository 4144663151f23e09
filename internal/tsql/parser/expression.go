package parser

import (
	"slices"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// expression takes a value: addition and everything that binds more tightly.
//
// By language-elements/operator-precedence-transact-sql a sign binds as loosely as an addition: -1 / -2 * 3 is
// -(1 / -(2 * 3)).
func (p *parser) expression() ast.Expression {
	defer p.deeper()()
	start := p.at
	left := p.factor()
	for {
		operator := p.acceptOne("+", "-", "&", "|", "^", "||", "<<", ">>")
		if operator == "" {
			return left
		}
		p.link()
		node := &ast.Arithmetic{Operator: operator, Left: left, Right: p.factor()}
		node.Place = p.since(start)
		left = node
	}
}

// factor takes multiplications.
func (p *parser) factor() ast.Expression {
	start := p.at
	left := p.signed()
	for {
		operator := p.acceptOne("*", "/", "%")
		if operator == "" {
			return left
		}
		p.link()
		node := &ast.Arithmetic{Operator: operator, Left: left, Right: p.signed()}
		node.Place = p.since(start)
		left = node
	}
}

// signed takes a sign with the multiplications behind it, or an operand.
func (p *parser) signed() ast.Expression {
	start := p.at
	if operator := p.acceptOne("+", "-"); operator != "" {
		defer p.deeper()()
		node := &ast.Unary{Operator: operator, Operand: p.factor()}
		node.Place = p.since(start)
		return node
	}
	if p.accept("~") {
		defer p.deeper()()
		var operand ast.Expression
		if p.isOne("+", "-") {
			operand = p.signed()
		} else {
			operand = p.tight()
		}
		node := &ast.Unary{Operator: "~", Operand: operand}
		node.Place = p.since(start)
		return node
	}
	return p.operand()
}

// tight takes the operand of ~, which may begin with ~ again.
func (p *parser) tight() ast.Expression {
	if p.is("~") {
		return p.signed()
	}
	return p.operand()
}

// operand takes a primary expression with what is bound to its end: methods, COLLATE, AT TIME ZONE.
func (p *parser) operand() ast.Expression {
	start := p.at
	value := p.primary()
	for {
		switch {
		case p.is("COLLATE"):
			p.link()
			p.at++
			node := &ast.Collate{Operand: value, Collation: p.collation()}
			node.Place = p.since(start)
			value = node
		case p.accept("AT", "TIME", "ZONE"):
			p.link()
			node := &ast.AtTimeZone{Operand: value, Zone: p.primary()}
			node.Place = p.since(start)
			value = node
		case p.is(".") && p.hasMembers(value) && p.namesObject(p.ahead(1)):
			p.link()
			value = p.member(start, value)
		default:
			return value
		}
	}
}

// collation takes the name of a collation; DATABASE_DEFAULT is one.
func (p *parser) collation() string { return p.identifier("a collation") }

// hasMembers says that a point behind the value begins a method or a property.
func (p *parser) hasMembers(value ast.Expression) bool {
	switch value.(type) {
	case *ast.Variable, *ast.Call, *ast.Cast, *ast.Convert, *ast.MethodCall, *ast.Parenthesis, *ast.Subquery, *ast.StaticCall,
		*ast.PropertyAccess, *ast.Parse:
		return true
	default:
		return false
	}
}

// member takes a point with a method or a property.
func (p *parser) member(start int, target ast.Expression) ast.Expression {
	p.expect(".")
	name := p.identifier("a method")
	if !p.is("(") {
		node := &ast.PropertyAccess{Target: target, Property: name}
		node.Place = p.since(start)
		return node
	}
	node := &ast.MethodCall{Target: target, Method: name, Arguments: p.arguments()}
	node.Place = p.since(start)
	return node
}

// arguments takes values in parentheses, perhaps none.
func (p *parser) arguments() (all []ast.Expression) {
	p.expect("(")
	if p.accept(")") {
		return nil
	}
	all = p.expressions()
	p.expect(")")
	return all
}

// expressions takes values with commas between.
func (p *parser) expressions() (all []ast.Expression) {
	p.list(func() { all = append(all, p.expression()) })
	return all
}

// literalKinds are the constants that are one token.
var literalKinds = map[token.Kind]ast.LiteralKind{
	token.Integer: ast.Integer, token.Decimal: ast.Decimal, token.Float: ast.Float, token.Money: ast.Money,
	token.String: ast.String, token.NationalString: ast.NationalString, token.Binary: ast.Binary,
}

// isLiteral says that the current token is a constant, NULL among them.
func (p *parser) isLiteral() bool {
	return literalKinds[p.current().Kind] != 0 || p.isString() || p.is("NULL")
}

// literal takes a constant.
func (p *parser) literal() ast.Expression {
	start := p.at
	t := p.current()
	kind := literalKinds[t.Kind]
	switch {
	case t.Is("NULL"):
		kind = ast.Null
	case p.isString() && kind == 0:
		kind = ast.String
	case kind == 0:
		p.fail("a constant")
	}
	p.at++
	node := &ast.Literal{Kind: kind}
	if kind != ast.Null {
		node.Text = t.Text
	}
	node.Place = p.since(start)
	return node
}

// constant takes a constant, perhaps with a sign, or a variable.
func (p *parser) constant() ast.Expression {
	start := p.at
	switch {
	case p.isVariable():
		node := &ast.Variable{Name: p.variable()}
		node.Place = p.since(start)
		return node
	case p.current().Kind == token.SystemVariable:
		return p.primary()
	case p.isOne("+", "-"):
		node := &ast.Unary{Operator: p.take().Text, Operand: p.literal()}
		node.Place = p.since(start)
		return node
	default:
		return p.literal()
	}
}

// text takes a string or a variable.
func (p *parser) textValue() ast.Expression {
	if !p.isString() && !p.isVariable() {
		p.fail("a string", "a variable")
	}
	return p.constant()
}

// primary takes one operand.
func (p *parser) primary() ast.Expression {
	start := p.at
	t := p.current()
	switch {
	case p.isLiteral():
		return p.literal()
	case t.Kind == token.Variable:
		node := &ast.Variable{Name: p.variable()}
		node.Place = p.since(start)
		return node
	case t.Kind == token.SystemVariable:
		p.at++
		node := &ast.SystemVariable{Name: t.Upper}
		node.Place = p.since(start)
		return node
	case t.Kind == token.Pseudo:
		return p.pseudo(start, ast.Name{})
	case p.is("("):
		return p.parenthesis()
	case p.is("{"):
		return p.odbcEscape()
	case t.Kind == token.Word:
		if specialFunctions[t.Upper] && (p.ahead(1).Is("(") || t.Upper == "CASE" || t.Upper == "NEXT") {
			if node := p.special(start); node != nil {
				return node
			}
		}
		if t.Upper == "IDENTITYCOL" || t.Upper == "ROWGUIDCOL" {
			return p.pseudo(start, ast.Name{})
		}
		if niladic[t.Upper] {
			p.at++
			node := &ast.Niladic{Name: t.Upper}
			node.Place = p.since(start)
			return node
		}
		if reservedFunctions[t.Upper] && p.ahead(1).Is("(") {
			p.at++
			return p.call(start, ast.Name{Parts: []string{t.Text}, Place: p.since(start)})
		}
	}
	return p.columnOrCall(start)
}

// niladic are functions without parentheses.
var niladic = map[string]bool{
	"CURRENT_TIMESTAMP": true, "CURRENT_USER": true, "SESSION_USER": true, "SYSTEM_USER": true, "USER": true, "CURRENT_DATE": true,
}

// reservedFunctions are keywords that are functions before a parenthesis.
var reservedFunctions = map[string]bool{
	"COALESCE": true, "NULLIF": true, "LEFT": true, "RIGHT": true,
}

func (p *parser) pseudo(start int, qualifier ast.Name) ast.Expression {
	t := p.take()
	if t.Upper == "$PARTITION" && p.accept(".") {
		name := p.name("a partition function")
		name.Parts = slices.Concat(qualifier.Parts, []string{t.Upper}, name.Parts)
		return p.call(start, name)
	}
	node := &ast.PseudoColumn{Qualifier: qualifier, Name: t.Upper}
	node.Place = p.since(start)
	return node
}

// parenthesis takes a subquery or a value in parentheses.
func (p *parser) parenthesis() ast.Expression {
	defer p.deeper()()
	start := p.at
	if p.opensQuery() {
		p.expect("(")
		query := p.query()
		p.expect(")")
		node := &ast.Subquery{Query: query}
		node.Place = p.since(start)
		return node
	}
	p.expect("(")
	node := &ast.Parenthesis{Inner: p.expression()}
	p.expect(")")
	node.Place = p.since(start)
	return node
}

// opensQuery says that the parentheses which come next hold a query: (SELECT, ((SELECT and so on, where the
// inner parentheses are those of a query too.
func (p *parser) opensQuery() bool {
	at := p.at
	depth := 0
	for p.tokens[at].Is("(") {
		at++
		depth++
	}
	if depth == 0 || !p.tokens[at].Is("SELECT") {
		return false
	}
	if depth == 1 {
		return true
	}
	// ((SELECT 1) + 2) is a value, ((SELECT 1) UNION SELECT 2) a query: the token behind the inner parenthesis decides.
	for open := depth; at < len(p.tokens)-1; at++ {
		switch {
		case p.tokens[at].Is("("):
			open++
		case p.tokens[at].Is(")"):
			open--
			if open == 0 {
				return true
			}
			next := &p.tokens[at+1]
			if open < depth && !next.Is(")") && !next.Is("UNION") && !next.Is("EXCEPT") && !next.Is("INTERSECT") && !next.Is("ORDER") {
				return false
			}
			if open < depth && !next.Is(")") {
				return true
			}
		}
	}
	return true
}

// columnOrCall takes a name: a column, a function before a parenthesis, alias.*, or a method of a column.
func (p *parser) columnOrCall(start int) ast.Expression {
	if p.is("*") {
		p.fail("an expression")
	}
	if !p.isName() && (!p.is(".") || !p.namesObject(p.ahead(1))) {
		p.fail("an expression")
	}
	name := ast.Name{}
	for {
		for p.is(".") {
			p.at++
			name.Parts = append(name.Parts, "")
		}
		if len(name.Parts) > 0 && p.current().Kind == token.Pseudo {
			name.Place = p.since(start)
			return p.pseudo(start, name)
		}
		name.Parts = append(name.Parts, p.identifier("a column"))
		if len(name.Parts) > 4 && !p.is("(") && !p.is(".") {
			p.refuse(start, 4104, 16, "The multi-part identifier \"%s\" could not be bound.", name.String())
		}
		if !p.is(".") || p.ahead(1).Is("*") {
			break
		}
		p.at++
	}
	name.Place = p.since(start)
	switch {
	case p.is("::"):
		return p.static(start, name)
	case p.is(".", "*"):
		p.at += 2
		node := &ast.Star{Qualifier: name}
		node.Place = p.since(start)
		return node
	case p.is("("):
		return p.call(start, name)
	default:
		node := &ast.ColumnReference{Name: name}
		node.Place = p.since(start)
		return node
	}
}

// static takes the method of a type.
func (p *parser) static(start int, kind ast.Name) ast.Expression {
	p.expect("::")
	node := &ast.StaticCall{Type: kind, Method: p.identifier("a method")}
	if p.is("(") {
		node.Arguments = p.arguments()
	} else {
		node.IsProperty = true
	}
	node.Place = p.since(start)
	return node
}
