package interpreter

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
)

// asksTables reports whether a node has a part that only the Translator knows: a query, or a function of the user. Its types are
// known when its statement is reached, because the batch may make the tables before.
func (c *compiler) asksTables(nodes ...ast.Node) bool {
	found := false
	for _, node := range nodes {
		ast.Walk(node, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.Query, *ast.NextValue, *ast.UpdatedColumn:
				found = true
			case *ast.Call:
				found = found || c.isForeign(node)
			}
			return !found
		})
	}
	return found
}

// isForeign reports whether a function is neither built in nor the session's.
func (c *compiler) isForeign(node *ast.Call) bool {
	if len(node.Name.Parts) != 1 {
		return true
	}
	name := upper(node.Name.Object())
	if _, known := function.Lookup(name); known {
		return false
	}
	switch name {
	case "COALESCE", "ISNULL", "NULLIF", "CHOOSE":
		return false
	}
	_, known := c.session.function(name)
	return !known
}

// whenReached compiles a part of one instruction now, or when it is reached where the nodes ask for tables.
func (c *compiler) whenReached(node ast.Node, compile func(*compiler) *fault.Error, nodes ...ast.Node) *fault.Error {
	if c.reached != nil || c.session.translator == Translator(none{}) || !c.asksTables(nodes...) {
		return compile(c)
	}
	var run func(ctx context.Context, a *activation) (int, *fault.Error)
	c.emit(node, func(ctx context.Context, a *activation) (int, *fault.Error) {
		if run == nil {
			later := *c
			later.program = &program{name: c.program.name, variables: c.program.variables}
			later.reached = ctx
			if err := compile(&later); err != nil {
				return next, err
			}
			run = later.program.instructions[0].run
		}
		return run(ctx, a)
	})
	return nil
}
