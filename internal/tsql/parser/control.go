package parser

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// begin takes what begins with BEGIN: a block, TRY, a transaction, a dialog, a timer.
func (p *parser) begin(start int) ast.Statement {
	next := p.ahead(1)
	switch {
	case next.Is("TRY"):
		return p.tryCatch(start)
	case next.Is("TRAN"), next.Is("TRANSACTION"):
		return p.beginTransaction(start)
	case next.Is("DISTRIBUTED"):
		return p.beginTransaction(start)
	case next.Is("DIALOG"):
		return p.beginDialog(start)
	case next.Is("CONVERSATION") && p.ahead(2).Is("TIMER"):
		return p.beginTimer(start)
	default:
		return p.block(start)
	}
}

func (p *parser) block(start int) ast.Statement {
	p.expect("BEGIN")
	node := &ast.Block{Statements: p.statements(endOfBlock)}
	if len(node.Statements) == 0 {
		p.fail("a statement")
	}
	p.expect("END")
	node.Place = p.since(start)
	return node
}

// endOfBlock says that END comes next, and does not begin END CONVERSATION.
func endOfBlock(p *parser) bool { return p.is("END") && !p.endsConversation() }

// endsConversation says that END CONVERSATION is a statement here.
func (p *parser) endsConversation() bool { return p.is("END", "CONVERSATION") }

func (p *parser) tryCatch(start int) ast.Statement {
	p.expect("BEGIN", "TRY")
	node := &ast.TryCatch{Try: p.statements(endOfBlock)}
	p.expect("END", "TRY")
	p.accept(";")
	p.expect("BEGIN", "CATCH")
	node.Catch = p.statements(endOfBlock)
	p.expect("END", "CATCH")
	node.Place = p.since(start)
	return node
}

func (p *parser) ifStatement(start int) ast.Statement {
	p.expect("IF")
	node := &ast.If{Condition: p.condition()}
	node.Then = p.statement()
	if p.is(";", "ELSE") { // the semicolon ends the statement before ELSE
		p.at++
	}
	if p.accept("ELSE") {
		node.Else = p.statement()
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) while(start int) ast.Statement {
	p.expect("WHILE")
	node := &ast.While{Condition: p.condition()}
	p.whiles++
	node.Body = p.statement()
	p.whiles--
	node.Place = p.since(start)
	return node
}

// leave takes BREAK and CONTINUE, which stand in a WHILE.
func (p *parser) leave(start int) ast.Statement {
	word := p.take().Upper
	if p.whiles == 0 {
		number := 135
		if word == "CONTINUE" {
			number = 136
		}
		p.refuse(start, number, 15, "Cannot use a %s statement outside the scope of a WHILE statement.", word)
	}
	if word == "BREAK" {
		node := &ast.Break{}
		node.Place = p.since(start)
		return node
	}
	node := &ast.Continue{}
	node.Place = p.since(start)
	return node
}

func (p *parser) goTo(start int) ast.Statement {
	p.expect("GOTO")
	p.jumps = append(p.jumps, p.at)
	node := &ast.Goto{Label: p.identifier("a label")}
	node.Place = p.since(start)
	return node
}

func (p *parser) returnStatement(start int) ast.Statement {
	p.expect("RETURN")
	node := &ast.Return{}
	if p.opensExpression() {
		node.Value = p.expression()
	}
	node.Place = p.since(start)
	return node
}

// opensExpression says that a value may begin at the current token, and no statement does.
func (p *parser) opensExpression() bool {
	t := p.current()
	switch t.Kind {
	case token.EOF:
		return false
	case token.Word:
		if t.Reserved {
			isFunction := (reservedFunctions[t.Upper] || specialFunctions[t.Upper]) && p.ahead(1).Is("(")
			return t.Upper == "NULL" || t.Upper == "CASE" || niladic[t.Upper] || isFunction
		}
		return !p.opensStatement(p.at) && !p.isLabel()
	case token.Operator:
		return t.Upper == "(" || t.Upper == "-" || t.Upper == "+" || t.Upper == "~" || t.Upper == "{"
	default:
		return true
	}
}

func (p *parser) throw(start int) ast.Statement {
	p.expect("THROW")
	node := &ast.Throw{}
	if p.current().Kind == token.Integer || p.isVariable() {
		node.Number = p.constant()
		p.expect(",")
		node.Message = p.textValue()
		p.expect(",")
		node.State = p.constant()
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) raiseError(start int) ast.Statement {
	p.expect("RAISERROR")
	node := &ast.RaiseError{}
	if p.is("(") {
		p.inParens(func() {
			node.Message = p.constant()
			p.expect(",")
			node.Severity = p.constant()
			p.expect(",")
			node.State = p.constant()
			for p.accept(",") {
				node.Arguments = append(node.Arguments, p.constant())
			}
		})
	} else { // the form of old versions: RAISERROR 50001 'text'
		node.Message = p.constant()
		p.accept(",")
		node.Arguments = append(node.Arguments, p.textValue())
	}
	if p.is("WITH") && (p.ahead(1).Is("LOG") || p.ahead(1).Is("NOWAIT") || p.ahead(1).Is("SETERROR")) {
		p.at++
		p.list(func() { node.Options = append(node.Options, p.expectOne("LOG", "NOWAIT", "SETERROR")) })
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) print(start int) ast.Statement {
	p.expect("PRINT")
	node := &ast.Print{Value: p.expression()}
	node.Place = p.since(start)
	return node
}

// waitFor takes WAITFOR with a delay, a time, or a statement of the broker.
func (p *parser) waitFor(start int) ast.Statement {
	p.expect("WAITFOR")
	if kind := p.acceptOne("DELAY", "TIME"); kind != "" {
		node := &ast.Pause{Kind: kind, Value: p.textValue()}
		node.Place = p.since(start)
		return node
	}
	node := &ast.WaitFor{}
	p.expect("(")
	from := p.at
	switch {
	case p.is("RECEIVE"):
		node.Statement = p.receive(from)
	case p.is("GET", "CONVERSATION"):
		node.Statement = p.getGroup(from)
	default:
		p.fail("RECEIVE", "GET CONVERSATION GROUP")
	}
	p.accept(";")
	p.expect(")")
	if p.accept(",", "TIMEOUT") {
		node.Timeout = p.constant()
	}
	node.Place = p.since(start)
	return node
}

// label takes a label; it stands once in its batch.
func (p *parser) label(start int) ast.Statement {
	node := &ast.Label{Name: p.take().Text}
	p.expect(":")
	key := strings.ToUpper(node.Name)
	if p.labels[key] {
		p.refuse(start, 132, 15,
			"The label '%s' has already been declared. Label names must be unique within a query batch or stored procedure.", node.Name)
	}
	if p.labels == nil {
		p.labels = map[string]bool{}
	}
	p.labels[key] = true
	node.Place = p.since(start)
	return node
}

// checkJumps refuses GOTO to a label that is missing.
func (p *parser) checkJumps() {
	for _, at := range p.jumps {
		label := p.tokens[at].Text
		if !p.labels[strings.ToUpper(label)] {
			p.refuse(at, 133, 15, "A GOTO statement references the label '%s' but the label has not been declared.", label)
		}
	}
}
