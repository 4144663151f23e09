package interpreter

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// simple compiles a statement that does not jump. A statement that is of none of these is the Translator's.
func (c *compiler) simple(node ast.Statement) *fault.Error {
	if err := c.refusesChange(node); err != nil {
		return err
	}
	switch node.(type) {
	case *ast.Select, *ast.Insert, *ast.Update, *ast.Delete, *ast.Merge:
		if err := c.unknownTable(node); err != nil {
			return err
		}
	}
	switch node := node.(type) {
	case *ast.Declare:
		return c.declareVariables(node)
	case *ast.SetVariable:
		if node.Cursor == nil && node.Property == "" {
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
	case *ast.Insert:
		if node.Execute != nil {
			return c.insertExecute(node)
		}
	case *ast.CreateSchema:
		if node.Elements != nil {
			return c.createSchema(node)
		}
	case *ast.Pause:
		return c.pause(node)
	case *ast.Procedure:
		if isTemporary(node.Name) {
			return c.createTemporary(node)
		}
		if c.session.kept != nil {
			return c.procedure(node)
		}
	case *ast.Drop:
		if node.Kind == "PROCEDURE" && c.session.kept != nil {
			return c.dropProcedures(node)
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
		err := c.named(node, node.Name, func(ctx context.Context, a *activation, name string) *fault.Error {
			if s := a.session; s.options.implicitTransactions && s.depth == 0 { // an unseen one begins before it
				if err := s.begin(ctx, ""); err != nil {
					return err
				}
			}
			return a.session.begin(ctx, name)
		})
		if err == nil {
			c.joining()
		}
		return err
	case *ast.Commit:
		err := c.named(node, node.Name, func(ctx context.Context, a *activation, name string) *fault.Error {
			return a.session.commitSoon(ctx, a, name)
		})
		if err == nil {
			c.joining()
		}
		return err
	case *ast.Rollback:
		return c.named(node, node.Name, func(ctx context.Context, a *activation, name string) *fault.Error {
			return a.session.rollbackTo(ctx, name)
		})
	case *ast.SaveTransaction:
		return c.named(node, node.Name, func(ctx context.Context, a *activation, name string) *fault.Error { return a.session.save(ctx, name) })
	case *ast.SetOptions:
		return c.setOptions(node)
	case *ast.SetValue:
		return c.setValue(node)
	case *ast.SetIsolation:
		return c.setIsolation(node)
	case *ast.Use:
		if c.isModule {
			return fault.New(154, "a USE database statement", "a procedure, function or trigger")
		}
		c.simply(node, func(ctx context.Context, a *activation) *fault.Error { return a.session.use(ctx, node.Database) })
		return nil
	case *ast.ExecuteAs:
		return c.executeAs(node)
	case *ast.Revert:
		return c.revert(node)
	case *ast.Reconfigure:
		c.simply(node, func(_ context.Context, a *activation) *fault.Error {
			a.session.inform(&fault.Error{State: 1, Message: "RECONFIGURE has no effect: the settings of the server are those of PostgreSQL."})
			a.session.succeeded(0)
			return nil
		})
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
	tables := tablesOf(node)
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		visiting := func() *fault.Error {
			visiting, err := a.session.translator.Statement(ctx, node, c)
			if err != nil {
				return err
			}
			return a.session.external(ctx, a, visiting)
		}
		if database := a.session.elsewhere(tables); database != "" {
			return a.session.visit(ctx, database, visiting)
		}
		if compiled == nil {
			if err := a.session.settle(ctx); err != nil {
				return err
			}
			found, err := a.session.translator.Statement(ctx, node, c)
			if err != nil && err.Elsewhere != "" {
				return a.session.visit(ctx, err.Elsewhere, visiting)
			}
			if err != nil {
				return err
			}
			compiled = found
		}
		return a.session.external(ctx, a, compiled)
	})
	c.translatedIn(node)
}
