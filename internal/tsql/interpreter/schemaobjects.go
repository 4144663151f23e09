package interpreter

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// createSchema compiles CREATE SCHEMA with objects: all of them are made and all rights are given, or nothing is. Names without a schema
// are of the new one. Page: statements/create-schema-transact-sql.
func (c *compiler) createSchema(node *ast.CreateSchema) *fault.Error {
	bare := *node
	bare.Elements = nil
	parts := []ast.Statement{&bare}
	for _, element := range node.Elements {
		parts = append(parts, inSchema(element, node.Name))
	}
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		return a.session.external(ctx, a, &schemaStatement{session: a.session, scope: c, parts: parts})
	})
	return nil
}

// inSchema gives an element of CREATE SCHEMA with its name in the schema, where it has none of its own.
func inSchema(element ast.Statement, schema string) ast.Statement {
	switch node := element.(type) {
	case *ast.CreateTable:
		placed := *node
		placed.Name = nameInSchema(node.Name, schema)
		return &placed
	case *ast.View:
		placed := *node
		placed.Name = nameInSchema(node.Name, schema)
		return &placed
	case *ast.Permission:
		if node.Class == "" || node.Class == "OBJECT" {
			placed := *node
			placed.On = nameInSchema(node.On, schema)
			return &placed
		}
	}
	return element
}

func nameInSchema(name ast.Name, schema string) ast.Name {
	if schema == "" || len(name.Parts) != 1 {
		return name
	}
	return ast.Name{Parts: []string{schema, name.Parts[0]}, Place: name.Place}
}

// A schemaStatement makes a schema with its objects.
type schemaStatement struct {
	SilentWrite

	session *Session
	scope   expression.Scope
	parts   []ast.Statement
}

// Fires says that it needs a transaction: an error takes all of it back.
func (*schemaStatement) Fires() bool { return true }

// Run runs the parts one after another.
func (s *schemaStatement) Run(ctx context.Context, f *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
	for _, part := range s.parts {
		compiled, err := s.session.translator.Statement(ctx, part, s.scope)
		if err != nil {
			return 0, false, err
		}
		if _, _, err := compiled.Run(ctx, f, sink); err != nil {
			return 0, false, err.At(part.At().Line, "")
		}
	}
	return 0, false, nil
}
