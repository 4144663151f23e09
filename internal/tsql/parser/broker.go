package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
)

// owner takes AUTHORIZATION with a name, if it comes next.
func (p *parser) owner() string {
	if !p.accept("AUTHORIZATION") {
		return ""
	}
	return p.principal()
}

// principal takes the name of a user or a role; PUBLIC is a keyword and a role.
func (p *parser) principal() string {
	if p.is("PUBLIC") {
		return p.take().Text
	}
	return p.identifier("a user or a role")
}

func (p *parser) messageType(start int, verb string) ast.Statement {
	p.expect("MESSAGE", "TYPE")
	node := &ast.MessageType{Verb: verb, Name: p.name("a message type"), Owner: p.owner()}
	if p.accept("VALIDATION") {
		p.expect("=")
		node.Validation = p.expectOne("NONE", "EMPTY", "WELL_FORMED_XML", "VALID_XML")
		if node.Validation == "VALID_XML" {
			p.expect("WITH", "SCHEMA", "COLLECTION")
			node.Collection = p.name("a schema collection")
		}
	} else if verb == "ALTER" {
		p.fail("VALIDATION")
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) contract(start int) ast.Statement {
	p.expect("CONTRACT")
	node := &ast.Contract{Name: p.name("a contract"), Owner: p.owner()}
	p.inParens(func() {
		p.list(func() {
			from := p.at
			message := &ast.ContractMessage{Type: p.identifier("a message type")}
			p.expect("SENT", "BY")
			message.SentBy = p.expectOne("INITIATOR", "TARGET", "ANY")
			message.Place = p.since(from)
			node.Messages = append(node.Messages, message)
		})
	})
	node.Place = p.since(start)
	return node
}

func (p *parser) queue(start int, verb string) ast.Statement {
	p.expect("QUEUE")
	node := &ast.Queue{Verb: verb, Name: p.name("a queue")}
	switch {
	case verb == "ALTER" && p.isOne("REBUILD", "REORGANIZE", "MOVE"):
		p.queueOperation(node)
	case p.accept("WITH"):
		node.HasWith = true
		p.list(func() { node.Options = append(node.Options, p.queueOption(verb)) })
	case verb == "ALTER":
		p.fail("WITH")
	}
	if verb == "CREATE" && p.accept("ON") {
		node.Filegroup = p.filegroup()
	}
	node.Place = p.since(start)
	return node
}

// filegroup takes the name of a filegroup; DEFAULT and PRIMARY are keywords.
func (p *parser) filegroup() string {
	if p.isOne("DEFAULT", "PRIMARY") {
		return p.take().Text
	}
	if p.isString() {
		return p.take().Text
	}
	return p.identifier("a filegroup")
}

func (p *parser) queueOperation(node *ast.Queue) {
	node.Operation = p.take().Upper
	if node.Operation == "MOVE" {
		p.expect("TO")
		node.Operation = "MOVE TO"
		node.Filegroup = p.filegroup()
	}
	if p.is("WITH", "(") {
		p.at++
		node.Parameters = p.optionsInParens()
	}
}

func (p *parser) queueOption(verb string) *ast.QueueOption {
	start := p.at
	option := &ast.QueueOption{Name: p.expectOne("STATUS", "RETENTION", "ACTIVATION", "POISON_MESSAGE_HANDLING")}
	switch option.Name {
	case "ACTIVATION":
		p.inParens(func() {
			p.list(func() { option.Activation = append(option.Activation, p.activationOption(verb)) })
		})
	case "POISON_MESSAGE_HANDLING":
		p.inParens(func() {
			p.expect("STATUS", "=")
			option.On = p.onOff()
		})
	default:
		p.expect("=")
		option.On = p.onOff()
	}
	option.Place = p.since(start)
	return option
}

func (p *parser) activationOption(verb string) *ast.ActivationOption {
	start := p.at
	option := &ast.ActivationOption{}
	switch {
	case verb == "ALTER" && p.accept("DROP"):
		option.Name = "DROP"
	case p.accept("STATUS", "="):
		option.Name = "STATUS"
		option.On = p.onOff()
	case p.accept("PROCEDURE_NAME", "="):
		option.Name = "PROCEDURE_NAME"
		option.Procedure = p.name("a procedure")
	case p.accept("MAX_QUEUE_READERS", "="):
		option.Name = "MAX_QUEUE_READERS"
		option.Readers = p.number()
	case p.accept("EXECUTE", "AS"), p.accept("EXEC", "AS"):
		option.Name = "EXECUTE AS"
		if p.isString() {
			option.As = "USER"
			option.UserName = p.literal()
		} else {
			option.As = p.expectOne("SELF", "OWNER")
		}
	default:
		p.fail("STATUS", "PROCEDURE_NAME", "MAX_QUEUE_READERS", "EXECUTE AS")
	}
	option.Place = p.since(start)
	return option
}

func (p *parser) service(start int, verb string) ast.Statement {
	p.expect("SERVICE")
	node := &ast.Service{Verb: verb, Name: p.name("a service")}
	if verb == "CREATE" {
		node.Owner = p.owner()
		p.expect("ON", "QUEUE")
		node.Queue = p.name("a queue")
	} else if p.accept("ON", "QUEUE") {
		node.Queue = p.name("a queue")
	}
	if p.is("(") {
		p.inParens(func() {
			p.list(func() { node.Contracts = append(node.Contracts, p.serviceContract(verb)) })
		})
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) serviceContract(verb string) *ast.ServiceContract {
	start := p.at
	contract := &ast.ServiceContract{}
	if verb == "ALTER" {
		contract.Change = p.expectOne("ADD", "DROP")
		p.expect("CONTRACT")
	}
	contract.Name = p.identifier("a contract")
	contract.Place = p.since(start)
	return contract
}

func (p *parser) route(start int, verb string) ast.Statement {
	p.expect("ROUTE")
	node := &ast.Route{Verb: verb, Name: p.name("a route"), Owner: p.owner()}
	p.expect("WITH")
	p.list(func() {
		node.Options = append(node.Options, p.namedOption("SERVICE_NAME", "BROKER_INSTANCE", "LIFETIME", "ADDRESS", "MIRROR_ADDRESS"))
	})
	node.Place = p.since(start)
	return node
}

// namedOption takes one of these options with its value.
func (p *parser) namedOption(names ...string) *ast.Option {
	start := p.at
	name := p.expectOne(names...)
	if !p.is("=") {
		p.fail("=")
	}
	return p.optionNamed(start, name)
}

func (p *parser) binding(start int, verb string) ast.Statement {
	p.expect("REMOTE", "SERVICE", "BINDING")
	node := &ast.Binding{Verb: verb, Name: p.name("a remote service binding")}
	if verb == "CREATE" {
		node.Owner = p.owner()
		p.expect("TO", "SERVICE")
		node.Service = p.textValue()
	}
	p.expect("WITH")
	p.list(func() { node.Options = append(node.Options, p.namedOption("USER", "ANONYMOUS")) })
	node.Place = p.since(start)
	return node
}

func (p *parser) priority(start int, verb string) ast.Statement {
	p.expect("BROKER", "PRIORITY")
	node := &ast.Priority{Verb: verb, Name: p.name("a priority")}
	p.expect("FOR", "CONVERSATION")
	if p.accept("SET") {
		node.HasSet = true
		p.inParens(func() {
			p.list(func() {
				node.Options = append(node.Options,
					p.namedOption("CONTRACT_NAME", "LOCAL_SERVICE_NAME", "REMOTE_SERVICE_NAME", "PRIORITY_LEVEL"))
			})
		})
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) endpoint(start int, verb string) ast.Statement {
	p.expect("ENDPOINT")
	node := &ast.Endpoint{Verb: verb, Name: p.name("an endpoint"), Owner: p.owner()}
	for p.is("STATE") || p.is("AFFINITY") {
		node.Options = append(node.Options, p.option())
		p.accept(",")
	}
	if p.accept("AS") {
		node.Protocol = p.expectOne("TCP", "HTTP")
		node.Address = p.optionsInParens()
	}
	if p.accept("FOR") {
		node.Payload = p.expectOne("SERVICE_BROKER", "TSQL", "DATABASE_MIRRORING", "SOAP", "DATA_MIRRORING")
		if p.is("(") {
			node.Settings = p.optionsInParens()
		}
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) eventNotification(start int) ast.Statement {
	p.expect("EVENT", "NOTIFICATION")
	node := &ast.EventNotification{Name: p.name("an event notification")}
	p.expect("ON")
	node.On = p.expectOne("SERVER", "DATABASE", "QUEUE")
	if node.On == "QUEUE" {
		node.Queue = p.name("a queue")
	}
	node.FanIn = p.accept("WITH", "FAN_IN")
	p.expect("FOR")
	p.list(func() { node.Events = append(node.Events, p.word("an event")) })
	p.expect("TO", "SERVICE")
	node.Service = p.textValue()
	p.expect(",")
	node.Instance = p.textValue()
	node.Place = p.since(start)
	return node
}
