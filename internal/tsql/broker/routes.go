package broker

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// verb gives the call of a statement that creates, alters or drops a kind of objects.
func verb(word, kind string) *call {
	return &call{verb: word + " " + kind}
}

func (c *compiler) route(node *ast.Route) (*statement, *fault.Error) {
	if c.translator.connection.IsForwarding() {
		return c.forwarding(node)
	}
	called := verb(node.Verb, "ROUTE").with("name", "text", constant(node.Name.Object()))
	for _, option := range node.Options {
		kind, t := "text", nameType
		if option.Name == "LIFETIME" {
			kind, t = "integer", intType
		}
		p, err := c.expression(option.Value, t)
		if err != nil {
			return nil, err
		}
		called.with(strings.ToLower(option.Name), kind, p)
	}
	if node.Verb == "CREATE" && ast.FindOption(node.Options, "ADDRESS") == nil {
		return nil, fault.New(9659)
	}
	if node.Verb == "ALTER" {
		return orMissing(c.do(called), "ALTER", "ROUTE", node.Name), nil
	}
	return c.do(called.owner(node.Owner)), nil
}

// forwarding compiles a route of msdb, which says where in SQL Server what arrives goes on to. A daemon finds the service in all of its
// databases, and forwards to other servers by inbound routes of a database.
func (c *compiler) forwarding(node *ast.Route) (*statement, *fault.Error) {
	construct := node.Verb + " ROUTE in msdb"
	address := ast.FindOption(node.Options, "ADDRESS")
	if address == nil {
		return c.informed(construct, delivers), nil
	}
	if literal, is := address.Value.(*ast.Literal); is && strings.EqualFold(literal.Text, "LOCAL") {
		return c.informed(construct, delivers), nil
	}
	return nil, expression.Unsupported(construct).Because("parley.create_route with is_inbound forwards what arrives")
}

// delivers says what stands for the local routes of msdb.
const delivers = "a daemon delivers what arrives to the services of all its databases"

func (c *compiler) binding(node *ast.Binding) (*statement, *fault.Error) {
	called := verb(node.Verb, "REMOTE SERVICE BINDING")
	called.object = node.Name.Object()
	called.with("name", "text", constant(node.Name.Object()))
	if node.Service != nil {
		service, err := c.expression(node.Service, nameType)
		if err != nil {
			return nil, err
		}
		called.with("to_service", "text", service)
	}
	for _, option := range node.Options {
		switch option.Name {
		case "USER":
			user, err := c.word(option.Value)
			if err != nil {
				return nil, err
			}
			called.withSQL("with_user", roleNamed, user)
		case "ANONYMOUS":
			called.fixed("anonymous", onOff(isWord(option.Value, "ON")))
		}
	}
	return c.do(called.owner(node.Owner)), nil
}

func isWord(node ast.Expression, word string) bool {
	keyword, is := node.(*ast.Keyword)
	return is && keyword.Word == word
}

// word gives a name that stands as the value of an option.
func (c *compiler) word(node ast.Expression) (parameter, *fault.Error) {
	switch node := node.(type) {
	case *ast.ColumnReference:
		return constant(node.Name.Object()), nil
	case *ast.Keyword:
		return constant(node.Word), nil
	default:
		return c.expression(node, nameType)
	}
}

func (c *compiler) priority(node *ast.Priority) (*statement, *fault.Error) {
	called := verb(node.Verb, "BROKER PRIORITY").with("name", "text", constant(node.Name.Object()))
	for _, option := range node.Options {
		name := strings.ToLower(option.Name)
		switch {
		case name == "priority_level" && isWord(option.Value, "DEFAULT"):
			called.fixed(name, "5")
		case name == "priority_level":
			level, err := c.expression(option.Value, intType)
			if err != nil {
				return nil, err
			}
			called.with(name, "integer", level)
		default:
			p, err := c.word(option.Value)
			if err != nil {
				return nil, err
			}
			called.with(name, "text", p)
		}
	}
	return c.do(called), nil
}

// eventNotification compiles CREATE EVENT NOTIFICATION ON QUEUE: the database has one for each event.
func (c *compiler) eventNotification(ctx context.Context, node *ast.EventNotification) (*statement, *fault.Error) {
	queue, err := c.queue(ctx, node.Queue)
	if err != nil {
		return nil, err
	}
	service, err := c.expression(node.Service, nameType)
	if err != nil {
		return nil, err
	}
	instance, err := c.expression(node.Instance, nameType)
	if err != nil {
		return nil, err
	}
	if len(node.Events) != 1 {
		return nil, expression.Unsupported("CREATE EVENT NOTIFICATION for several events")
	}
	called := verb("CREATE", "EVENT NOTIFICATION").with("name", "text", constant(node.Name.Object())).
		with("queue", "text", constant(queue)).with("event", "text", constant(node.Events[0])).
		with("to_service", "text", service).with("broker_instance", "text", instance)
	if node.FanIn {
		called.fixed("fan_in", "true")
	}
	return c.do(called), nil
}

// drops has the kinds of objects that are dropped by their name.
var drops = map[string]bool{
	"MESSAGE TYPE": true, "CONTRACT": true, "SERVICE": true, "ROUTE": true, "REMOTE SERVICE BINDING": true, "BROKER PRIORITY": true,
}

// drop compiles DROP of objects of the broker, one after the other.
func (c *compiler) drop(ctx context.Context, node *ast.Drop) (*statement, *fault.Error) {
	parts := make([]*statement, 0, len(node.Names))
	for _, name := range node.Names {
		called := verb("DROP", node.Kind)
		switch node.Kind {
		case "QUEUE":
			queue, err := c.queue(ctx, name)
			if err != nil {
				return nil, err
			}
			called.with("queue", "text", constant(queue))
		case "EVENT NOTIFICATION":
			queue, err := c.queue(ctx, node.OnName)
			if err != nil {
				return nil, err
			}
			called.with("name", "text", constant(name.Object())).with("queue", "text", constant(queue))
		default:
			called.with("name", "text", constant(name.Object()))
		}
		part := c.do(called)
		if node.IfExists {
			part = unlessMissing(part)
		} else {
			part = orMissing(part, "drop", node.Kind, name)
		}
		parts = append(parts, part)
	}
	return inTurn(parts...), nil
}

// isMissing has the numbers of errors that say that there is no such object.
var isMissing = map[int]bool{208: true, 15151: true, 3701: true}

// unlessMissing makes DROP IF EXISTS of a DROP.
func unlessMissing(s *statement) *statement {
	return &statement{run: func(ctx context.Context, frame *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
		rows, counts, err := s.run(ctx, frame, sink)
		if err != nil && isMissing[err.Number] {
			return 0, false, nil
		}
		return rows, counts, err
	}}
}

// orMissing gives the error of ALTER and DROP for an object that is not there.
func orMissing(s *statement, verb, kind string, name ast.Name) *statement {
	return &statement{run: func(ctx context.Context, frame *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
		rows, counts, err := s.run(ctx, frame, sink)
		if err != nil && (err.Number == 208 || err.Number == 15151) {
			return 0, false, fault.New(15151, strings.ToLower(verb), strings.ToLower(kind), name.Object())
		}
		return rows, counts, err
	}}
}
