package interpreter

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// declareVariables compiles DECLARE. A variable without a value keeps what it has when a loop comes by again.
func (c *compiler) declareVariables(node *ast.Declare) *fault.Error {
	isLocal := true
	declared := *node
	declared.Variables = slices.Clone(node.Variables)
	for i, v := range node.Variables {
		t, table, err := c.declaredType(v)
		if err != nil {
			return err
		}
		if table != nil {
			copied := *v
			copied.Table = table
			v, declared.Variables[i] = &copied, &copied
		}
		if v.Table != nil || v.Cursor || strings.EqualFold(v.Type.Name.Object(), "cursor") {
			isLocal = false
			if err := c.declareObject(v); err != nil {
				return err
			}
			continue
		}
		if v.Value == nil {
			if err := c.declare(v.Name, t); err != nil {
				return err
			}
			continue
		}
		// The variable is not known in its own initial value.
		slot := len(c.program.variables)
		err = c.whenReached(v, func(c *compiler) *fault.Error {
			initial, err := expression.CompileAs(v.Value, t, c)
			if err != nil {
				return err
			}
			c.assign(v, slot, initial)
			return nil
		}, v.Value)
		if err != nil {
			return err
		}
		if err := c.declare(v.Name, t); err != nil {
			return err
		}
	}
	if !isLocal {
		c.translated(&declared)
	}
	return nil
}

// declareObject gives a table variable or a cursor variable its slot. The Translator makes the object when DECLARE is reached.
func (c *compiler) declareObject(v *ast.VariableDeclaration) *fault.Error {
	kind := value.Cursor
	if v.Table != nil {
		kind = value.Table
		c.tables[strings.ToLower(v.Name)] = v.Table
	}
	return c.declare(v.Name, value.Of(kind))
}

// assign compiles an assignment of a value that has the variable's type.
func (c *compiler) assign(node ast.Node, slot int, e *expression.Expression) {
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		v, err := e.Evaluate(a.frameOf(ctx))
		if err != nil {
			return err
		}
		a.frame.Variables[slot] = v
		a.session.succeeded(1)
		return nil
	})
	c.quiet(node)
}

func (c *compiler) setVariable(node *ast.SetVariable) *fault.Error {
	return c.whenReached(node, func(c *compiler) *fault.Error { return c.setNow(node) }, setValue(node)...)
}

// setValue gives the value of an assignment; modify has none.
func setValue(node *ast.SetVariable) []ast.Node {
	if node.Value == nil {
		return nil
	}
	return []ast.Node{node.Value}
}

func (c *compiler) setNow(node *ast.SetVariable) *fault.Error {
	if node.Method != nil {
		slot, _, _ := c.Variable(node.Variable)
		held, err := expression.Compile(&ast.Variable{Name: node.Variable}, c)
		if err != nil {
			return err
		}
		e, err := expression.Modification(node.Method, node.Variable, held, c)
		if err != nil {
			return err
		}
		c.assign(node, slot, e)
		return nil
	}
	slot, e, err := c.assignment(node.Variable, node.Operator, node.Value)
	if err != nil {
		return err
	}
	c.assign(node, slot, e)
	return nil
}

// assignment compiles = and the compound operators, to the variable's type.
func (c *compiler) assignment(name, operator string, node ast.Expression) (slot int, e *expression.Expression, err *fault.Error) {
	slot, t, known := c.Variable(name)
	if !known {
		return 0, nil, fault.New(137, name)
	}
	if operator == "=" || operator == "" {
		e, err = expression.CompileAs(node, t, c)
		return slot, e, err
	}
	current, err := expression.Compile(&ast.Variable{Name: name}, c)
	if err != nil {
		return 0, nil, err
	}
	operand, err := expression.Compile(node, c)
	if err != nil {
		return 0, nil, err
	}
	computed, err := expression.Operation(strings.TrimSuffix(operator, "="), current, operand)
	if err != nil {
		return 0, nil, err
	}
	e, err = computed.As(t)
	return slot, e, err
}

// pause compiles WAITFOR DELAY and WAITFOR TIME.
func (c *compiler) pause(node *ast.Pause) *fault.Error {
	text, err := expression.Compile(node.Value, c)
	if err != nil {
		return err
	}
	isDelay := node.Kind == "DELAY"
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		v, err := text.Evaluate(a.frameOf(ctx))
		if err != nil {
			return err
		}
		at, err := a.session.settings.Assign(v, value.Of(value.DateTime))
		if err != nil || at.IsNull() {
			return fault.New(148, a.session.settings.Text(v))
		}
		wait := time.Duration(at.Moment().Ticks) * 100
		if !isDelay {
			now := value.MomentOf(a.session.clock())
			wait -= time.Duration(now.Ticks) * 100
			if wait < 0 {
				wait += 24 * time.Hour
			}
		}
		if err := a.session.sink.Flush(); err != nil {
			return a.session.stop(err)
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			a.session.succeeded(0)
			return nil
		case <-ctx.Done():
			return a.session.cut(ctx)
		}
	})
	return nil
}
