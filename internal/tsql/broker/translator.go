package broker

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// A Translator compiles the statements of Service Broker, and leaves all others to another Translator.
type Translator struct {
	interpreter.Translator

	connection *connection.Connection
	held       heldGroups
}

// New gives a Translator on a connection; rest compiles what is no statement of Service Broker, nil refuses that.
func New(c *connection.Connection, rest interpreter.Translator) *Translator {
	if rest == nil {
		rest = interpreter.None()
	}
	return &Translator{Translator: rest, connection: c}
}

// Statement compiles a statement of Service Broker.
func (t *Translator) Statement(ctx context.Context, node ast.Statement, scope expression.Scope) (interpreter.Statement, *fault.Error) {
	c := &compiler{translator: t, scope: scope}
	if compile := c.conversation(node); compile != nil {
		return compiled(compile(ctx))
	}
	if compile := c.definition(node); compile != nil {
		return compiled(compile(ctx))
	}
	return t.Translator.Statement(ctx, node, scope)
}

// compiled keeps a nil pointer from becoming a Statement.
func compiled(s *statement, err *fault.Error) (interpreter.Statement, *fault.Error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// A compiler compiles one statement.
type compiler struct {
	translator *Translator
	scope      expression.Scope
}

// A compilation compiles the statement that it was made for; it may ask the database for the names in it.
type compilation func(ctx context.Context) (*statement, *fault.Error)

// conversation gives the compilation of a statement of conversations, nil for another one.
func (c *compiler) conversation(node ast.Statement) compilation {
	switch node := node.(type) {
	case *ast.BeginDialog:
		return func(context.Context) (*statement, *fault.Error) { return c.beginDialog(node) }
	case *ast.BeginTimer:
		return func(context.Context) (*statement, *fault.Error) { return c.beginTimer(node) }
	case *ast.EndConversation:
		return func(context.Context) (*statement, *fault.Error) { return c.endConversation(node) }
	case *ast.MoveConversation:
		return func(context.Context) (*statement, *fault.Error) { return c.moveConversation(node) }
	case *ast.Send:
		return func(context.Context) (*statement, *fault.Error) { return c.send(node) }
	case *ast.Receive:
		return func(ctx context.Context) (*statement, *fault.Error) { return c.receive(ctx, node, nil) }
	case *ast.GetGroup:
		return func(ctx context.Context) (*statement, *fault.Error) { return c.getGroup(ctx, node, nil) }
	case *ast.WaitFor:
		return func(ctx context.Context) (*statement, *fault.Error) { return c.waitFor(ctx, node) }
	}
	return nil
}

// A statement is compiled: run runs it in the frame of an activation.
type statement struct {
	interpreter.SilentWrite

	run   func(ctx context.Context, frame *expression.Frame, sink session.Sink) (rows int64, counts bool, err *fault.Error)
	later func(frame *expression.Frame) *fault.Error // has it wait; nil for one that cannot
	soon  bool                                       // it does not wait for messages
}

// IsCompanion reports whether it may share the savepoint of statements that wait.
func (s *statement) IsCompanion() bool { return s.soon }

// CanWait reports whether the statement may go out with the next one.
func (s *statement) CanWait() bool { return s.later != nil }

// Defer has it wait.
func (s *statement) Defer(_ context.Context, frame *expression.Frame) *fault.Error {
	return s.later(frame)
}

// Run runs the statement.
func (s *statement) Run(ctx context.Context, frame *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
	return s.run(ctx, frame, sink)
}
