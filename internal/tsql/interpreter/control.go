package interpreter

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// statement compiles the statements of control flow and leaves the rest to others.
func (c *compiler) statement(node ast.Statement) *fault.Error {
	switch node := node.(type) {
	case *ast.Block:
		return c.statements(node.Statements)
	case *ast.If:
		return c.ifElse(node)
	case *ast.While:
		return c.while(node)
	case *ast.Break:
		return c.leave(node, c.breaks, 135)
	case *ast.Continue:
		return c.leave(node, c.continues, 136)
	case *ast.Goto:
		c.gotos = append(c.gotos, jump{name: node.Label, line: node.Line, try: c.try, catch: c.catch})
		c.jumpTo(node, c.labelOf(node.Label))
		return nil
	case *ast.Label:
		l := c.labelOf(node.Name)
		if l.isPlaced {
			return fault.New(132, node.Name)
		}
		c.place(l)
		return nil
	case *ast.Return:
		return c.returns(node)
	case *ast.TryCatch:
		return c.tryCatch(node)
	}
	return c.simple(node)
}

// condition compiles the test of IF and WHILE. Evaluating it sets @@ROWCOUNT and @@ERROR to 0.
func (c *compiler) condition(node ast.Node, test ast.Condition, otherwise *label) *fault.Error {
	return c.whenReached(node, func(c *compiler) *fault.Error { return c.conditionNow(node, test, otherwise) }, test)
}

func (c *compiler) conditionNow(node ast.Node, test ast.Condition, otherwise *label) *fault.Error {
	compiled, err := expression.CompileCondition(test, c)
	if err != nil {
		return err
	}
	c.emit(node, func(ctx context.Context, a *activation) (int, *fault.Error) {
		truth, err := compiled.Evaluate(a.frameOf(ctx))
		if err != nil {
			return next, err
		}
		a.session.succeeded(0)
		if truth != expression.True {
			return otherwise.at, nil
		}
		return next, nil
	})
	c.quiet(test)
	return nil
}

func (c *compiler) ifElse(node *ast.If) *fault.Error {
	otherwise, end := &label{}, &label{}
	if err := c.condition(node, node.Condition, otherwise); err != nil {
		return err
	}
	if err := c.statement(node.Then); err != nil {
		return err
	}
	if node.Else == nil {
		c.place(otherwise)
		return nil
	}
	c.jumpTo(node, end)
	c.place(otherwise)
	if err := c.statement(node.Else); err != nil {
		return err
	}
	c.place(end)
	return nil
}

func (c *compiler) while(node *ast.While) *fault.Error {
	top, end := &label{}, &label{}
	c.place(top)
	if err := c.condition(node, node.Condition, end); err != nil {
		return err
	}
	c.breaks, c.continues = append(c.breaks, end), append(c.continues, top)
	err := c.statement(node.Body)
	c.breaks, c.continues = c.breaks[:len(c.breaks)-1], c.continues[:len(c.continues)-1]
	if err != nil {
		return err
	}
	c.jumpTo(node, top)
	c.place(end)
	return nil
}

func (c *compiler) leave(node ast.Node, loops []*label, number int) *fault.Error {
	if len(loops) == 0 {
		return fault.New(number)
	}
	c.jumpTo(node, loops[len(loops)-1])
	return nil
}

// returns compiles RETURN. Only a procedure gives a value, which is an int.
func (c *compiler) returns(node *ast.Return) *fault.Error {
	if node.Value == nil {
		c.emit(node, func(context.Context, *activation) (int, *fault.Error) { return ended, nil })
		return nil
	}
	if !c.isModule {
		return fault.New(178)
	}
	return c.whenReached(node, func(c *compiler) *fault.Error { return c.returnsValue(node) }, node.Value)
}

func (c *compiler) returnsValue(node *ast.Return) *fault.Error {
	if c.resultType.Kind != value.Unknown {
		return c.returnsResult(node)
	}
	result, err := expression.CompileAs(node.Value, value.Of(value.Int), c)
	if err != nil {
		return err
	}
	c.emit(node, func(ctx context.Context, a *activation) (int, *fault.Error) {
		v, err := result.Evaluate(a.frameOf(ctx))
		if err != nil {
			return next, err
		}
		a.returned = v.Int64() // NULL returns 0
		return ended, nil
	})
	return nil
}

func (c *compiler) tryCatch(node *ast.TryCatch) *fault.Error {
	at := len(c.program.regions)
	c.program.regions = append(c.program.regions, region{outerCatch: c.catch})
	outerTry, outerCatch, end := c.try, c.catch, &label{}
	c.try = at
	err := c.statements(node.Try)
	c.try = outerTry
	if err != nil {
		return err
	}
	c.jumpTo(node, end)
	c.program.regions[at].start = len(c.program.instructions)
	c.catch = at
	err = c.statements(node.Catch)
	c.catch = outerCatch
	if err != nil {
		return err
	}
	c.place(end)
	return nil
}
