package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// definition gives the compilation of a statement that defines an object of the broker, nil for another one.
func (c *compiler) definition(node ast.Statement) compilation {
	switch node := node.(type) {
	case *ast.MessageType:
		return func(context.Context) (*statement, *fault.Error) { return c.messageType(node) }
	case *ast.Contract:
		return func(context.Context) (*statement, *fault.Error) { return c.contract(node) }
	case *ast.Queue:
		return func(ctx context.Context) (*statement, *fault.Error) { return c.defineQueue(ctx, node) }
	case *ast.Service:
		return func(ctx context.Context) (*statement, *fault.Error) { return c.service(ctx, node) }
	case *ast.Route:
		return func(context.Context) (*statement, *fault.Error) { return c.route(node) }
	case *ast.Binding:
		return func(context.Context) (*statement, *fault.Error) { return c.binding(node) }
	case *ast.Priority:
		return func(context.Context) (*statement, *fault.Error) { return c.priority(node) }
	case *ast.EventNotification:
		if node.On == "QUEUE" {
			return func(ctx context.Context) (*statement, *fault.Error) { return c.eventNotification(ctx, node) }
		}
	case *ast.Endpoint:
		if node.Payload == "SERVICE_BROKER" || node.Payload == "" {
			return func(context.Context) (*statement, *fault.Error) {
				return c.informed(node.Verb+" ENDPOINT", listens), nil
			}
		}
	case *ast.Drop:
		if node.Kind == "ENDPOINT" {
			return func(context.Context) (*statement, *fault.Error) { return c.informed("DROP ENDPOINT", listens), nil }
		}
		if node.Kind == "ROUTE" && c.translator.connection.IsForwarding() {
			return func(context.Context) (*statement, *fault.Error) {
				return c.informed("DROP ROUTE in msdb", delivers), nil
			}
		}
		if drops[node.Kind] || node.Kind == "QUEUE" || node.Kind == "EVENT NOTIFICATION" && node.On == "QUEUE" {
			return func(ctx context.Context) (*statement, *fault.Error) { return c.drop(ctx, node) }
		}
	}
	return nil
}

// listens says what stands for a broker endpoint.
const listens = "a daemon with --listen stands for a broker endpoint"

// roleNamed gives the role that a name of a user stands for: dbo is the owner of the database, others are found without regard to
// case.
const roleNamed = `(case when lower($#::text) = 'dbo' then
  (select pg_catalog.pg_get_userbyid(d.datdba)::text from pg_catalog.pg_database as d where d.datname = current_database())
else coalesce(
  (select r.rolname::text from pg_catalog.pg_roles as r
    where lower(r.rolname) = lower($#::text) order by (r.rolname = $#::text) desc limit 1), $#::text)
end)`

// owner adds AUTHORIZATION where the batch says it.
func (c *call) owner(name string) *call {
	if name == "" {
		return c
	}
	return c.withSQL(`"authorization"`, roleNamed, constant(name))
}

func (c *compiler) messageType(node *ast.MessageType) (*statement, *fault.Error) {
	if node.Validation == "VALID_XML" {
		return nil, expression.Unsupported("VALIDATION = VALID_XML WITH SCHEMA COLLECTION")
	}
	called := (&call{verb: node.Verb + " MESSAGE TYPE"}).
		with("name", "text", constant(node.Name.Object()))
	validation := node.Validation
	if validation == "" {
		validation = "NONE"
	}
	called.with("validation", "text", constant(validation))
	if node.Verb == "ALTER" {
		return orMissing(c.do(called), node.Verb, "MESSAGE TYPE", node.Name), nil
	}
	return c.do(called.owner(node.Owner)), nil
}

func (c *compiler) contract(node *ast.Contract) (*statement, *fault.Error) {
	types, sentBy := make([]string, len(node.Messages)), make([]string, len(node.Messages))
	for i, m := range node.Messages {
		types[i], sentBy[i] = m.Type, m.SentBy
	}
	// The function takes an object from message type to sender; a type that is named twice is found here.
	members := make([]string, len(types))
	for i, name := range types {
		if slices.Contains(types[:i], name) {
			return nil, fault.New(8403, name)
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, lost(fmt.Errorf("the name of a message type: %w", err))
		}
		members[i] = string(key) + `:"` + sentBy[i] + `"`
	}
	called := (&call{verb: "CREATE CONTRACT"}).
		with("name", "text", constant(node.Name.Object())).
		with("message_types", "jsonb", constant("{"+strings.Join(members, ",")+"}"))
	return c.do(called.owner(node.Owner)), nil
}

func (c *compiler) service(ctx context.Context, node *ast.Service) (*statement, *fault.Error) {
	called := (&call{verb: node.Verb + " SERVICE"}).with("name", "text", constant(node.Name.Object()))
	if !node.Queue.IsEmpty() {
		queue, err := c.queue(ctx, node.Queue)
		if err != nil {
			return nil, err
		}
		called.with("queue", "text", constant(queue))
	}
	var plain, added, dropped []string
	for _, contract := range node.Contracts {
		switch contract.Change {
		case "ADD":
			added = append(added, contract.Name)
		case "DROP":
			dropped = append(dropped, contract.Name)
		default:
			plain = append(plain, contract.Name)
		}
	}
	if node.Verb == "ALTER" {
		if node.Queue.IsEmpty() && len(node.Contracts) == 0 {
			return nil, fault.New(8493, node.Name.Object())
		}
		called.list("add_contracts", added).list("drop_contracts", dropped)
		return c.do(called), nil
	}
	return c.do(called.list("contracts", plain).owner(node.Owner)), nil
}

// list adds an array of names where there are any.
func (c *call) list(argument string, names []string) *call {
	if len(names) == 0 {
		return c
	}
	// As JSON: names may have any character.
	text, _ := json.Marshal(names)
	return c.withSQL(argument, "(select array_agg(e order by n) from jsonb_array_elements_text($#::jsonb) with ordinality as j (e, n))",
		constant(string(text)))
}
