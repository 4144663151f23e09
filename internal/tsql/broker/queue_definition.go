package broker

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// defineQueue compiles CREATE and ALTER QUEUE. A queue of T-SQL is switched off by five rollbacks in a row, as in SQL Server.
func (c *compiler) defineQueue(ctx context.Context, node *ast.Queue) (*statement, *fault.Error) {
	if node.Operation != "" {
		return c.informed("ALTER QUEUE "+node.Operation, "the broker keeps its tables small by itself"), nil
	}
	if err := c.here(ctx, node.Name); err != nil {
		return nil, err
	}
	called := &call{verb: node.Verb + " QUEUE", object: node.Name.Object()}
	if node.Verb == "ALTER" {
		queue, err := c.queue(ctx, node.Name)
		if err != nil {
			return nil, err
		}
		called.with("queue", "text", constant(queue))
	} else {
		if err := c.free(ctx, node.Name); err != nil {
			return nil, err
		}
		schema, object := written(node.Name)
		if known, err := c.schema(ctx, schema); err != nil {
			return nil, err
		} else if known == "" && !strings.EqualFold(schema, "dbo") {
			return nil, fault.New(2760, schema)
		}
		called.with("queue", "text", constant(ast.Bracketed(schema)+"."+ast.Bracketed(object))).
			fixed("poison_action", "'DISABLE_QUEUE'")
	}
	drops := false
	for _, option := range node.Options {
		switch option.Name {
		case "STATUS":
			called.fixed("status", onOff(option.On))
		case "RETENTION":
			called.fixed("retention", onOff(option.On))
		case "POISON_MESSAGE_HANDLING":
			called.fixed("poison_message_handling", onOff(option.On))
		case "ACTIVATION":
			dropped, err := c.activation(ctx, called, option.Activation)
			if err != nil {
				return nil, err
			}
			drops = drops || dropped
		}
	}
	changed := c.do(called)
	if node.Verb == "ALTER" {
		changed = orMissing(changed, node.Verb, "QUEUE", node.Name)
	}
	switch {
	case drops:
		queue := (&call{verb: "ALTER QUEUE", statement: "ALTER QUEUE drops activation"}).with("queue", "text", called.parameters[0])
		return inTurn(c.do(queue), changed), nil
	case node.Filegroup != "":
		return inTurn(changed, c.informed("ON "+node.Filegroup, "PostgreSQL places the tables of the broker")), nil
	}
	return changed, nil
}

func onOff(on bool) string { return strconv.FormatBool(on) }

// free refuses the name of a queue that is there, in whatever case of letters.
func (c *compiler) free(ctx context.Context, name ast.Name) *fault.Error {
	schema, object, err := c.find(ctx, name)
	if err != nil {
		return err
	}
	ownSchema, own := written(name)
	isAlike := strings.EqualFold(schema, ownSchema) && strings.EqualFold(object, own)
	if isAlike && (schema != ownSchema || object != own) {
		return fault.New(2714, name.Object())
	}
	return nil
}

// activation adds the settings of ACTIVATION (...); it reports whether they are dropped.
func (c *compiler) activation(ctx context.Context, called *call, options []*ast.ActivationOption) (drops bool, err *fault.Error) {
	for _, option := range options {
		switch option.Name {
		case "DROP":
			drops = true
		case "STATUS":
			called.fixed("activation", onOff(option.On))
		case "PROCEDURE_NAME":
			if err := c.here(ctx, option.Procedure); err != nil {
				return false, err
			}
			procedure, err := c.procedureName(ctx, option.Procedure)
			if err != nil {
				return false, err
			}
			called.with("activation_procedure", "text", constant(procedure))
		case "MAX_QUEUE_READERS":
			called.fixed("max_queue_readers", strconv.Itoa(option.Readers))
		case "EXECUTE AS":
			if option.As != "USER" {
				called.fixed("execute_as", "'"+option.As+"'")
				continue
			}
			user, err := c.expression(option.UserName, nameType)
			if err != nil {
				return false, err
			}
			called.withSQL("execute_as", "pg_catalog.quote_ident("+roleNamed+")", user)
		}
	}
	return drops, nil
}

// findSchema gives a schema whose name differs in the case of letters at most.
var findSchema = `select n.nspname from pg_catalog.pg_namespace as n where n.oid = ` + connection.SchemaNamed("$1::text")

// schema gives a schema as the database spells it, empty where there is none.
func (c *compiler) schema(ctx context.Context, name string) (known string, err *fault.Error) {
	found := connection.Statement{
		SQL: findSchema, Parameters: [][]byte{[]byte(name)}, Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
			known = string(row[0])
			return nil
		},
	}
	if _, refused := c.translator.connection.Run(ctx, found); refused != nil {
		return "", faultOf(refused, "SELECT")
	}
	return known, nil
}

// procedureName gives the procedure of PostgreSQL in which the text of a procedure of T-SQL is kept: in lower case, for names of modules
// have none, and in its schema as the database spells it.
func (c *compiler) procedureName(ctx context.Context, name ast.Name) (string, *fault.Error) {
	schema := name.Schema()
	if schema == "" {
		schema = "dbo"
	}
	known, err := c.schema(ctx, schema)
	switch {
	case err != nil:
		return "", err
	case known != "":
		schema = known
	}
	quote := func(part string) string { return `"` + strings.ReplaceAll(part, `"`, `""`) + `"` }
	return quote(schema) + "." + quote(strings.ToLower(name.Object())), nil
}

// informed gives a statement that does nothing and says so in one line.
func (c *compiler) informed(construct, reason string) *statement {
	return &statement{run: func(_ context.Context, _ *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
		if err := sink.Message(&fault.Error{State: 1, Message: construct + " has no effect: " + reason + "."}); err != nil {
			return 0, false, lost(err)
		}
		return 0, false, nil
	}}
}

// inTurn runs one statement after another.
func inTurn(parts ...*statement) *statement {
	return &statement{run: func(ctx context.Context, frame *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
		for _, part := range parts {
			if _, _, err := part.run(ctx, frame, sink); err != nil {
				return 0, false, err
			}
		}
		return 0, false, nil
	}}
}
