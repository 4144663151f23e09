package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
)

func (p *parser) beginDialog(start int) ast.Statement {
	p.expect("BEGIN", "DIALOG")
	node := &ast.BeginDialog{HasConversation: p.accept("CONVERSATION")}
	node.Handle = p.variable()
	p.expect("FROM", "SERVICE")
	node.From = p.namedOrString("a service")
	p.expect("TO", "SERVICE")
	if !p.isString() && !p.isVariable() {
		p.fail("a string", "a variable")
	}
	node.To = p.namedOrString("a service")
	if p.accept(",") {
		node.Instance = p.textValue()
	}
	if p.accept("ON", "CONTRACT") {
		node.Contract = p.named("a contract")
	}
	if p.accept("WITH") {
		p.list(func() { p.dialogOption(node) })
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) dialogOption(node *ast.BeginDialog) {
	option := p.expectOne("RELATED_CONVERSATION_GROUP", "RELATED_CONVERSATION", "LIFETIME", "ENCRYPTION")
	p.expect("=")
	switch option {
	case "LIFETIME":
		node.Lifetime = p.constant()
	case "ENCRYPTION":
		node.Encryption = p.expectOne("ON", "OFF")
	default:
		node.RelatedKind = option
		node.Related = p.constant()
	}
	for _, before := range node.Options {
		if before == option || before != "LIFETIME" && before != "ENCRYPTION" && option != "LIFETIME" && option != "ENCRYPTION" {
			p.failAt(p.at-1, "another option")
		}
	}
	node.Options = append(node.Options, option)
}

func (p *parser) beginTimer(start int) ast.Statement {
	p.expect("BEGIN", "CONVERSATION", "TIMER")
	node := &ast.BeginTimer{}
	p.inParens(func() { node.Handle = p.handle() })
	p.expect("TIMEOUT", "=")
	node.Timeout = p.expression()
	node.Place = p.since(start)
	return node
}

// handle takes the handle of a conversation: a variable or a string.
func (p *parser) handle() ast.Expression {
	if !p.isVariable() && !p.isString() {
		p.fail("a conversation handle")
	}
	return p.constant()
}

func (p *parser) send(start int) ast.Statement {
	p.expect("SEND", "ON", "CONVERSATION")
	node := &ast.Send{}
	if p.accept("(") {
		node.Parens = true
		p.list(func() { node.Handles = append(node.Handles, p.handle()) })
		p.expect(")")
	} else {
		node.Handles = append(node.Handles, p.handle())
	}
	if p.accept("MESSAGE", "TYPE") {
		node.HasType = true
		node.MessageType = p.named("a message type")
	}
	if p.accept("(") {
		node.HasBody = true
		if !p.is(")") {
			node.Body = p.expression()
		}
		p.expect(")")
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) receive(start int) ast.Statement {
	p.expect("RECEIVE")
	node := &ast.Receive{}
	if p.is("TOP") {
		node.Top = p.top()
		if !node.Top.Parens {
			p.failAt(p.at-1, "(")
		}
	}
	node.Items = p.selectItems()
	p.expect("FROM")
	node.Queue = p.name("a queue")
	if p.accept("INTO") {
		node.Into = p.variable()
	}
	if p.accept("WHERE") {
		node.Where = p.condition()
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) getGroup(start int) ast.Statement {
	p.expect("GET", "CONVERSATION", "GROUP")
	node := &ast.GetGroup{Variable: p.variable()}
	p.expect("FROM")
	node.Queue = p.name("a queue")
	node.Place = p.since(start)
	return node
}

func (p *parser) endConversation(start int) ast.Statement {
	p.expect("END", "CONVERSATION")
	node := &ast.EndConversation{Handle: p.handle()}
	switch {
	case p.accept("WITH", "CLEANUP"):
		node.Cleanup = true
	case p.is("WITH", "ERROR"):
		p.at += 2
		p.expect("=")
		node.Code = p.constant()
		p.expect("DESCRIPTION", "=")
		node.Description = p.textValue()
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) moveConversation(start int) ast.Statement {
	p.expect("MOVE", "CONVERSATION")
	node := &ast.MoveConversation{Handle: p.handle()}
	p.expect("TO")
	node.Group = p.handle()
	node.Place = p.since(start)
	return node
}
