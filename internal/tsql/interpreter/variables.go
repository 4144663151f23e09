package interpreter

import (
	"context"
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
	for _, v := range node.Variables {
		if v.Table != nil || v.Cursor || strings.EqualFold(v.Type.Name.Object(), "cursor") {
			isLocal = false
			continue
		}
		t, err := expression.TypeOf(v.Type, value.Declaration)
		if err != nil {
			return err
		}
		var initial *expression.Expression
		if v.Value != nil {
			if initial, err = expression.CompileAs(v.Value, t, c); err != nil {
				return err
			}
		}
		if err := c.declare(v.Name, t); err != nil {
			return err
		}
		if initial != nil {
			c.assign(v, len(c.program.variables)-1, initial)
		}
	}
	if !isLocal {
		c.translated(node)
	}
	return nil
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
}

func (c *compiler) setVariable(node *ast.SetVariable) *fault.Error {
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
			return a.session.stop(ctx.Err())
		}
	})
	return nil
}
