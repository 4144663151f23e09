package interpreter

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/parser"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// Modules keeps the text of procedures in the database.
type Modules interface {
	// Find gives a procedure, nil where there is none. Its text is empty where the caller has it in this version.
	Find(ctx context.Context, schema, name, version string) (*Kept, *fault.Error)
	// Create keeps a procedure, in place of the one of its name.
	Create(ctx context.Context, kept Kept, isNew bool) *fault.Error
	// Rename gives a procedure another name; its text keeps the old one.
	Rename(ctx context.Context, kept Kept, newName string) *fault.Error
	// Drop removes a procedure; error 3701 where there is none.
	Drop(ctx context.Context, schema, name string) *fault.Error
}

// Kept is a procedure that the database keeps.
type Kept struct {
	Schema, Name string
	Text         string
	// QuotedIdentifier is the option as it was when the procedure was created: it decides how the text is read.
	QuotedIdentifier bool
	Version          string // changes with each change
	MayExecute       bool   // the role may
	Owner, User      string // the role that owns it, and the role that asks
}

// Keep gives the session the procedures of its database. Without them it has temporary ones alone.
func (s *Session) Keep(modules Modules) { s.kept = modules }

const defaultSchema = "dbo"

// placed gives schema and name of a procedure; error 40515 for one of another database.
func (s *Session) placed(name ast.Name) (schema, object string, err *fault.Error) {
	if name.Server() != "" || name.Database() != "" && !strings.EqualFold(name.Database(), s.identity.Database) {
		return "", "", fault.New(40515, name.String())
	}
	schema = name.Schema()
	if schema == "" {
		schema = defaultSchema
	}
	return schema, name.Object(), nil
}

// procedure compiles CREATE, ALTER and CREATE OR ALTER PROCEDURE.
func (c *compiler) procedure(node *ast.Procedure) *fault.Error {
	switch {
	case node.External != nil:
		return expression.Unsupported("EXTERNAL NAME")
	case node.Atomic != nil:
		return expression.Unsupported("BEGIN ATOMIC")
	case node.Number != "":
		return expression.Unsupported("procedure;number")
	case node.ForReplication:
		return expression.Unsupported("FOR REPLICATION")
	}
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		return a.session.external(ctx, a, &keptStatement{change: func(ctx context.Context) *fault.Error { return a.session.keep(ctx, node) }})
	})
	return nil
}

// keep compiles a procedure, so that a fault of it is known now, and keeps its text. Lines count from the start of the batch.
func (s *Session) keep(ctx context.Context, node *ast.Procedure) *fault.Error {
	schema, name, err := s.placed(node.Name)
	if err != nil {
		return err
	}
	if _, err := s.compile(name, node.Parameters, node.Body); err != nil {
		return &fault.Error{
			Number: err.Number, Severity: err.Severity, State: err.State, Line: err.Line, Procedure: name, Message: err.Message, Reach: err.Reach,
		}
	}
	// OWNER and SELF are the owner, who needs no right to act as himself.
	if as := actsAs(node.Options, ""); as != "" {
		if err := s.onConnection(func(c Connection) error {
			_, err := c.RoleToActAs(ctx, as, "", false)
			return err
		}); err != nil {
			return err.At(node.Line, name)
		}
	}
	existing, err := s.kept.Find(ctx, schema, name, "")
	switch {
	case err != nil:
		return err
	case existing != nil && node.Verb == "CREATE":
		return fault.New(2714, name)
	case existing == nil && node.Verb == "ALTER":
		return fault.New(208, name)
	}
	return s.kept.Create(ctx, Kept{
		Schema: schema, Name: name, Text: strings.Repeat("\n", node.Line-1) + node.Text, QuotedIdentifier: s.options.quotedIdentifier,
	}, existing == nil)
}

// A keptStatement changes what the database keeps.
type keptStatement struct {
	SilentWrite

	change func(context.Context) *fault.Error
}

// Run makes the change.
func (k *keptStatement) Run(ctx context.Context, _ *expression.Frame, _ session.Sink) (int64, bool, *fault.Error) {
	return 0, false, k.change(ctx)
}

// dropProcedures compiles DROP PROCEDURE, of temporary procedures too.
func (c *compiler) dropProcedures(node *ast.Drop) *fault.Error {
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		var first *fault.Error // of several procedures those that are there are dropped
		for _, name := range node.Names {
			err := a.session.external(ctx, a, &keptStatement{change: func(ctx context.Context) *fault.Error { return a.session.drop(ctx, name) }})
			if err != nil && (!node.IfExists || err.Number != 3701) && first == nil {
				first = err
			}
		}
		if first != nil {
			return first
		}
		a.session.succeeded(0)
		return nil
	})
	return nil
}

func (s *Session) drop(ctx context.Context, name ast.Name) *fault.Error {
	if isTemporary(name) {
		key := strings.ToLower(name.Object())
		if s.modules[key] == nil {
			return fault.New(3701, "drop", "procedure", name.Object())
		}
		delete(s.modules, key)
		return nil
	}
	schema, object, err := s.placed(name)
	if err != nil {
		return err
	}
	return s.kept.Drop(ctx, schema, object)
}

// find gives a procedure that is to be called: a temporary one, or one that the database keeps. Error 2812 where there is none.
func (s *Session) find(ctx context.Context, name ast.Name) (*module, *fault.Error) {
	if m, err := s.system(name); m != nil || err != nil {
		return m, err
	}
	if isTemporary(name) || s.kept == nil {
		if m := s.modules[strings.ToLower(name.Object())]; m != nil {
			return m, nil
		}
		return nil, missing(name)
	}
	schema, object, err := s.placed(name)
	if err != nil {
		return nil, err
	}
	key := strings.ToLower(schema + "." + object)
	known, version := s.modules[key], ""
	if known != nil {
		version = known.version
	}
	kept, err := s.kept.Find(ctx, schema, object, version)
	switch {
	case err != nil:
		return nil, err
	case kept == nil:
		delete(s.modules, key)
		return nil, missing(name)
	case !kept.MayExecute:
		return nil, fault.New(229, "EXECUTE", object, s.identity.Database, kept.Schema)
	case known != nil && kept.Version == version:
		return known, nil
	}
	loaded, err := s.load(kept)
	if err != nil {
		return nil, err
	}
	s.modules[key] = loaded
	return loaded, nil
}

// load compiles the text of a procedure.
func (s *Session) load(kept *Kept) (*module, *fault.Error) {
	parsed, bad := parser.Parse(kept.Text, parser.Options{StringsInDoubleQuotes: !kept.QuotedIdentifier})
	if bad != nil {
		return nil, syntaxFault(bad)
	}
	var node *ast.Procedure // the text is whatever its owner has written
	if len(parsed.Statements) == 1 {
		node, _ = parsed.Statements[0].(*ast.Procedure)
	}
	if node == nil {
		return nil, fault.New(2812, kept.Name)
	}
	compiled, err := s.compile(kept.Name, node.Parameters, node.Body)
	if err != nil {
		return nil, err
	}
	return &module{node: node, compiled: compiled, version: kept.Version, as: actsAs(node.Options, kept.Owner), author: kept.Owner}, nil
}

// actsAs gives the role that EXECUTE AS of a module names: its owner for OWNER and SELF, empty for the caller.
func actsAs(options []*ast.ModuleOption, owner string) string {
	for _, option := range options {
		as, is := strings.CutPrefix(option.Words, "EXECUTE AS")
		if !is || strings.TrimSpace(as) == "CALLER" {
			continue
		}
		if literal, isNamed := option.Value.(*ast.Literal); isNamed {
			return literal.Text
		}
		return owner
	}
	return ""
}

// nameIn reads the name of a procedure from the value of a variable: parts between points, in brackets or quotes or not.
func nameIn(text string) (ast.Name, bool) {
	parsed, err := parser.Parse("EXECUTE "+strings.TrimSpace(text), parser.Options{})
	if err != nil || len(parsed.Statements) != 1 {
		return ast.Name{}, false
	}
	call, is := parsed.Statements[0].(*ast.Execute)
	if !is || call.Procedure.IsEmpty() || len(call.Arguments) > 0 {
		return ast.Name{}, false
	}
	return call.Procedure, true
}
