package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
)

// create takes CREATE and CREATE OR ALTER.
func (p *parser) create(start int) ast.Statement {
	p.expect("CREATE")
	verb := "CREATE"
	if p.accept("OR", "ALTER") {
		verb = "CREATE OR ALTER"
	}
	if node := p.module(start, verb); node != nil {
		return node
	}
	if verb == "CREATE" {
		if node := p.either(start, verb); node != nil {
			return node
		}
		if node := p.createOnly(start); node != nil {
			return node
		}
		p.at = start
		if p.isForeign() {
			return p.foreign(start)
		}
		p.at++
	}
	p.fail("PROCEDURE", "FUNCTION", "VIEW", "TRIGGER", "TABLE", "QUEUE", "SERVICE", "another kind of object")
	return nil
}

// module takes a module, whatever the verb is.
func (p *parser) module(start int, verb string) ast.Statement {
	switch {
	case p.isOne("PROC", "PROCEDURE"):
		return p.procedure(start, verb)
	case p.is("FUNCTION"):
		return p.function(start, verb)
	case p.is("VIEW"):
		return p.view(start, verb)
	case p.is("TRIGGER"):
		return p.trigger(start, verb)
	default:
		return nil
	}
}

// either takes the objects that CREATE and ALTER describe in one form.
func (p *parser) either(start int, verb string) ast.Statement {
	switch {
	case p.is("MESSAGE", "TYPE"):
		return p.messageType(start, verb)
	case p.is("QUEUE"):
		return p.queue(start, verb)
	case p.is("SERVICE") && !p.is("SERVICE", "MASTER"):
		return p.service(start, verb)
	case p.is("ROUTE"):
		return p.route(start, verb)
	case p.is("REMOTE", "SERVICE"):
		return p.binding(start, verb)
	case p.is("BROKER", "PRIORITY"):
		return p.priority(start, verb)
	case p.is("ENDPOINT"):
		return p.endpoint(start, verb)
	case p.is("SEQUENCE"):
		return p.sequence(start, verb)
	case p.is("CERTIFICATE"):
		return p.certificate(start, verb)
	case p.isOne("USER", "LOGIN", "ROLE"), p.is("SERVER", "ROLE"), p.is("APPLICATION", "ROLE"):
		return p.principalStatement(start, verb)
	case p.is("MASTER", "KEY"), p.is("SERVICE", "MASTER"), p.is("SYMMETRIC", "KEY"), p.is("ASYMMETRIC", "KEY"):
		p.at = start
		return p.key(start)
	default:
		return nil
	}
}

func (p *parser) createOnly(start int) ast.Statement {
	switch {
	case p.is("TABLE"):
		return p.createTable(start)
	case p.is("DATABASE") && !p.is("DATABASE", "SCOPED") && !p.is("DATABASE", "ENCRYPTION") && !p.is("DATABASE", "AUDIT"):
		return p.createDatabase(start)
	case p.is("CONTRACT"):
		return p.contract(start)
	case p.is("EVENT", "NOTIFICATION"):
		return p.eventNotification(start)
	case p.isOne("UNIQUE", "CLUSTERED", "NONCLUSTERED", "INDEX", "COLUMNSTORE", "SPATIAL"), p.is("XML", "INDEX"), p.is("PRIMARY", "XML"),
		p.is("SELECTIVE", "XML"):
		return p.createIndex(start)
	case p.is("STATISTICS"):
		return p.createStatistics(start)
	case p.is("TYPE"):
		return p.createType(start)
	case p.is("SCHEMA"):
		return p.createSchema(start)
	case p.is("SYNONYM"):
		return p.synonym(start)
	default:
		return nil
	}
}

// alter takes ALTER.
func (p *parser) alter(start int) ast.Statement {
	p.expect("ALTER")
	if node := p.module(start, "ALTER"); node != nil {
		return node
	}
	if node := p.either(start, "ALTER"); node != nil {
		return node
	}
	switch {
	case p.is("TABLE"):
		return p.alterTable(start)
	case p.is("INDEX"):
		return p.alterIndex(start)
	case p.is("DATABASE"):
		return p.alterDatabase(start)
	case p.is("AUTHORIZATION"):
		return p.authorization(start)
	case p.is("SCHEMA"):
		return p.alterSchema(start)
	}
	p.at = start
	if p.isForeign() {
		return p.foreign(start)
	}
	p.at++
	p.fail("PROCEDURE", "FUNCTION", "VIEW", "TRIGGER", "TABLE", "QUEUE", "SERVICE", "another kind of object")
	return nil
}

// dropped are the kinds of objects that DROP removes; longer names come first.
var dropped = []string{
	"TABLE", "PROCEDURE", "PROC", "FUNCTION", "VIEW", "TRIGGER", "INDEX", "STATISTICS", "DATABASE", "MESSAGE TYPE", "CONTRACT", "QUEUE",
	"SERVICE", "ROUTE", "REMOTE SERVICE BINDING", "BROKER PRIORITY", "ENDPOINT", "EVENT NOTIFICATION", "TYPE", "SCHEMA", "SEQUENCE",
	"SYNONYM", "USER", "LOGIN", "SERVER ROLE", "APPLICATION ROLE", "ROLE", "CERTIFICATE", "MASTER KEY", "SYMMETRIC KEY", "ASYMMETRIC KEY",
	"DEFAULT", "RULE",
}

func (p *parser) drop(start int) ast.Statement {
	if p.ahead(1).Is("SIGNATURE") || p.ahead(1).Is("COUNTER") {
		return p.signature(start)
	}
	if p.isForeign() {
		return p.foreign(start)
	}
	p.expect("DROP")
	node := &ast.Drop{Kind: p.expectPhrase(dropped...)}
	if node.Kind == "PROC" {
		node.Kind = "PROCEDURE"
	}
	node.IfExists = p.accept("IF", "EXISTS")
	switch node.Kind {
	case "MASTER KEY":
	case "INDEX":
		p.dropIndex(node)
	default:
		node.Names = p.names("a name")
	}
	if (node.Kind == "TRIGGER" || node.Kind == "EVENT NOTIFICATION") && p.accept("ON") {
		node.On = p.expectPhrase("DATABASE", "ALL SERVER", "SERVER", "QUEUE")
		if node.On == "QUEUE" {
			node.OnName = p.name("a queue")
		}
	}
	node.Words = p.acceptPhrase("REMOVE PROVIDER KEY")
	node.Place = p.since(start)
	return node
}

// dropIndex takes indexes with their tables, in the new form or as table.index.
func (p *parser) dropIndex(node *ast.Drop) {
	p.list(func() {
		start := p.at
		name := p.name("an index")
		if !p.accept("ON") {
			node.Names = append(node.Names, name)
			return
		}
		index := &ast.DroppedIndex{Name: name.Object(), Table: p.name("a table")}
		if len(name.Parts) > 1 {
			p.failAt(start, "an index")
		}
		if p.is("WITH", "(") {
			p.at++
			index.Options = p.optionsInParens()
		}
		index.Place = p.since(start)
		node.Indexes = append(node.Indexes, index)
	})
}
