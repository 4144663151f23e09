package translator

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A rowTarget is a table variable that takes the rows of RECEIVE.
type rowTarget struct {
	translator *Translator
	name       string
	scope      expression.Scope
}

// TableVariable gives the table variable of a name with its @; error 1087 where the batch declares none.
func (t *Translator) TableVariable(name string, scope expression.Scope) (interpreter.RowTarget, *fault.Error) {
	tables, is := scope.(interpreter.TableScope)
	if !is {
		return nil, fault.New(1087, name)
	}
	if _, _, known := tables.Table(name); !known {
		return nil, fault.New(1087, name)
	}
	return &rowTarget{t, name, scope}, nil
}

// Insert puts rows into the table.
func (r *rowTarget) Insert(ctx context.Context, f *expression.Frame, rows [][]value.Value) *fault.Error {
	_, err := r.translator.Insert(ctx, &ast.Insert{Target: ast.Target{Variable: r.name}}, r.scope, f, rows)
	return err
}
