package translator

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
)

func (t *Translator) delete(ctx context.Context, node *ast.Delete, s expression.Scope) (interpreter.Statement, *fault.Error) {
	parts := alteration{"DELETE", node.With, &node.Target, node.From, node.Top, node.Where}
	return t.altered(ctx, s, parts, func(g *targeting, c *change) (interpreter.Statement, *fault.Error) {
		cursor, isCurrent := node.Where.(*ast.CurrentOf)
		if !isCurrent {
			if err := g.choose(c); err != nil {
				return nil, err
			}
		}
		instead, err := t.insteadOf(g.table, "DELETE")
		switch {
		case err != nil:
			return nil, err
		case instead != nil && isCurrent:
			return nil, expression.Unsupported("WHERE CURRENT OF with an INSTEAD OF trigger")
		case instead != nil:
			return g.deleteInstead(c, node, instead)
		}
		reading := g.source.reading
		if !g.isPlain() {
			reading = quote(g.alias("t"))
		}
		deleted := sourceOf(g.table, "deleted", reading)
		deleted.isHidden = true
		if err := c.returns(node.Output, []*source{deleted}); err != nil {
			return nil, err
		}
		c.prepareTriggers("DELETE", nil, deleted)
		if isCurrent {
			return t.deleteCurrent(c, g, cursor, reading)
		}
		if g.isPlain() {
			c.write(g.prefix, "delete from "+g.into+" as "+reading+g.chosen)
			return c, nil
		}
		selected, matched := g.rowKey(reading)
		g.write(c, selected, "delete from "+g.into+" as "+reading+" using ", " where "+matched)
		return c, nil
	})
}
