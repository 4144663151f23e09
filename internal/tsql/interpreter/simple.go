package interpreter

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// simple compiles a statement that does not jump. A statement that is of none of these is the Translator's.
func (c *compiler) simple(node ast.Statement) *fault.Error {
	switch node := node.(type) {
	case *ast.Declare:
		return c.declareVariables(node)
	case *ast.SetVariable:
		if node.Cursor == nil && node.Method == nil && node.Property == "" {
			return c.setVariable(node)
		}
	case *ast.Select:
		if items, where, isPlain := plainSelect(node); isPlain {
			return c.selectValues(node, items, where)
		}
	case *ast.Print:
		return c.print(node)
	case *ast.Throw:
		return c.throw(node)
	case *ast.RaiseError:
		return c.raiseError(node)
	case *ast.Execute:
		return c.execute(node)
	case *ast.Pause:
		return c.pause(node)
	case *ast.Procedure:
		if isTemporary(node.Name) {
			return c.createTemporary(node)
		}
	}
	return c.control(node)
}

// control compiles the statements of transactions and of options.
func (c *compiler) control(node ast.Statement) *fault.Error {
	switch node := node.(type) {
	case *ast.BeginTransaction:
		if node.Distributed {
			return fault.New(40510, "BEGIN DISTRIBUTED TRANSACTION")
		}
		return c.named(node, node.Name, func(ctx context.Context, s *Session, name string) *fault.Error { return s.begin(ctx, name) })
	case *ast.Commit:
		return c.named(node, node.Name, func(ctx context.Context, s *Session, name string) *fault.Error { return s.commit(ctx, name) })
	case *ast.Rollback:
		return c.named(node, node.Name, func(ctx context.Context, s *Session, name string) *fault.Error { return s.rollbackTo(ctx, name) })
	case *ast.SaveTransaction:
		return c.named(node, node.Name, func(ctx context.Context, s *Session, name string) *fault.Error { return s.save(ctx, name) })
	case *ast.SetOptions:
		return c.setOptions(node)
	case *ast.SetValue:
		return c.setValue(node)
	case *ast.SetIsolation:
		return c.setIsolation(node)
	case *ast.Use:
		c.simply(node, func(ctx context.Context, a *activation) *fault.Error { return a.session.use(ctx, node.Database) })
		return nil
	case *ast.SetStatistics:
		c.simply(node, func(_ context.Context, a *activation) *fault.Error {
			a.session.succeeded(0)
			return nil
		})
		return nil
	}
	c.translated(node)
	return nil
}

// translated compiles a statement when it is reached for the first time.
func (c *compiler) translated(node ast.Statement) {
	var compiled Statement
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		if compiled == nil {
			found, err := a.session.translator.Statement(ctx, node, c)
			if err != nil {
				return err
			}
			compiled = found
		}
		return a.session.external(ctx, a, compiled)
	})
}
