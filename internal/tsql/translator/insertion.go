package translator

import (
	"context"
	"slices"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// An insertion is INSERT with its target and columns.
type insertion struct {
	*builder
	node    *ast.Insert
	table   *relation
	into    string // how SQL writes the target
	columns []*column
	prefix  string
}

// insertion resolves the target and the columns. Errors 208, 207, 264, 271, 544.
func (t *Translator) insertion(ctx context.Context, node *ast.Insert, s expression.Scope) (*insertion, *fault.Error) {
	if node.Target.Rowset != nil {
		return nil, expression.Unsupported("INSERT of this form")
	}
	b := t.builder(ctx, s)
	b.names = &names{}
	i := &insertion{builder: b, node: node}
	var err *fault.Error
	if i.table, i.into, err = b.target(&node.Target, nil); err != nil {
		return nil, err
	}
	return i, i.resolve()
}

// resolve finds the columns: those that are written, or all that take a value. Errors 207, 264, 271, 544.
func (i *insertion) resolve() *fault.Error {
	insertsID := i.translator.insertsID == i.table.sql
	if len(i.node.Columns) == 0 {
		for _, c := range i.table.columns {
			if !c.isIdentity && !c.isComputed || c.isIdentity && insertsID {
				i.columns = append(i.columns, c)
			}
		}
		return nil
	}
	for _, name := range i.node.Columns {
		c := i.table.find(name.Object())
		switch {
		case c == nil:
			return fault.New(207, name.Object())
		case c.isComputed:
			return fault.New(271, c.name)
		case c.isIdentity && !insertsID:
			return fault.New(544, shownName(i.table.name))
		}
		if slices.Contains(i.columns, c) {
			return fault.New(264, c.name)
		}
		i.columns = append(i.columns, c)
	}
	return nil
}
