package broker

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// beginDialog compiles BEGIN DIALOG. A target to which nothing leads is no error, as in SQL Server: its messages wait.
func (c *compiler) beginDialog(node *ast.BeginDialog) (*statement, *fault.Error) {
	take, err := c.assign(node.Handle)
	if err != nil {
		return nil, err
	}
	from, err := c.named(node.From)
	if err != nil {
		return nil, err
	}
	to, err := c.named(node.To)
	if err != nil {
		return nil, err
	}
	called := (&call{verb: "BEGIN DIALOG CONVERSATION", statement: "BEGIN DIALOG"}).
		with("from_service", "text", from).with("to_service", "text", to).fixed("allow_unknown_target", "true")
	if !node.Contract.Name.IsEmpty() || node.Contract.Variable != "" {
		contract, err := c.named(node.Contract)
		if err != nil {
			return nil, err
		}
		called.with("contract", "text", contract)
	}
	if node.Instance != nil {
		instance, err := c.expression(node.Instance, nameType)
		if err != nil {
			return nil, err
		}
		called.with("broker_instance", "text", instance)
	}
	if err := c.dialogOptions(node, called); err != nil {
		return nil, err
	}
	return c.ask(called, take), nil
}

func (c *compiler) dialogOptions(node *ast.BeginDialog, called *call) *fault.Error {
	if node.Lifetime != nil {
		lifetime, err := c.expression(node.Lifetime, intType)
		if err != nil {
			return err
		}
		called.with("lifetime", "integer", lifetime)
	}
	if node.Encryption == "OFF" {
		called.fixed("encryption", "false")
	}
	if node.Related == nil {
		return nil
	}
	related, err := c.expression(node.Related, handleType)
	if err != nil {
		return err
	}
	name := "related_conversation"
	if node.RelatedKind == "RELATED_CONVERSATION_GROUP" {
		name = "related_conversation_group"
	}
	// A conversation without one is begun by leaving the clause out; NULL in it is an error.
	missing := fault.New(8418)
	if name == "related_conversation_group" {
		missing = fault.New(8420)
	}
	called.with(name, "uuid", func(frame *expression.Frame) ([]byte, *fault.Error) {
		v, err := related(frame)
		if err == nil && v == nil {
			again := *missing
			return nil, &again
		}
		return v, err
	})
	return nil
}

func (c *compiler) beginTimer(node *ast.BeginTimer) (*statement, *fault.Error) {
	called := &call{verb: "BEGIN CONVERSATION TIMER"}
	if err := c.handle(called, "conversation_handle", node.Handle); err != nil {
		return nil, err
	}
	timeout, err := c.expression(node.Timeout, intType)
	if err != nil {
		return nil, err
	}
	return c.do(called.with("timeout", "integer", timeout)), nil
}

// handle adds an argument that is a handle or the identifier of a group.
func (c *compiler) handle(called *call, name string, node ast.Expression) *fault.Error {
	p, err := c.expression(node, handleType)
	if err != nil {
		return err
	}
	called.with(name, "uuid", p)
	return nil
}

func (c *compiler) endConversation(node *ast.EndConversation) (*statement, *fault.Error) {
	called := &call{verb: "END CONVERSATION"}
	if err := c.handle(called, "conversation_handle", node.Handle); err != nil {
		return nil, err
	}
	if node.Cleanup {
		return c.doLater(called.fixed("cleanup", "true")), nil
	}
	if node.Code != nil {
		code, err := c.expression(node.Code, intType)
		if err != nil {
			return nil, err
		}
		description, err := c.expression(node.Description, unboundedText)
		if err != nil {
			return nil, err
		}
		called.with("error_code", "integer", code).with("description", "text", description)
	}
	return c.doLater(called), nil
}

func (c *compiler) moveConversation(node *ast.MoveConversation) (*statement, *fault.Error) {
	called := &call{verb: "MOVE CONVERSATION"}
	if err := c.handle(called, "conversation_handle", node.Handle); err != nil {
		return nil, err
	}
	if err := c.handle(called, "conversation_group_id", node.Group); err != nil {
		return nil, err
	}
	return c.do(called), nil
}

// getGroup compiles GET CONVERSATION GROUP. Without a message the variable is NULL.
func (c *compiler) getGroup(ctx context.Context, node *ast.GetGroup, wait *wait) (*statement, *fault.Error) {
	take, err := c.assign(node.Variable)
	if err != nil {
		return nil, err
	}
	queue, err := c.queue(ctx, node.Queue)
	if err != nil {
		return nil, err
	}
	called := (&call{verb: "GET CONVERSATION GROUP", queue: node.Queue.String()}).
		with("queue", "text", constant(queue))
	if wait == nil {
		return c.counted(called, take), nil
	}
	called.with("timeout", "integer", wait.slice)
	return wait.repeat(c.counted(called, take)), nil
}

// counted gives the statement whose row count says whether a result came.
func (c *compiler) counted(called *call, take func(*expression.Frame, []byte) *fault.Error) *statement {
	rows := int64(0)
	asked := c.ask(called, func(frame *expression.Frame, result []byte) *fault.Error {
		rows = 0
		if result != nil {
			rows = 1
		}
		c.translator.hold(result)
		return take(frame, result)
	})
	run := asked.run
	asked.run = func(ctx context.Context, frame *expression.Frame, sink sessionSink) (int64, bool, *fault.Error) {
		_, _, err := run(ctx, frame, sink)
		return rows, false, err
	}
	return asked
}
