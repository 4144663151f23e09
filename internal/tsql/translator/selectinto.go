package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// A selectInto is SELECT ... INTO: it makes a table of the columns of a query, then fills it.
type selectInto struct {
	translator *Translator
	node       *ast.Select
	body       *ast.Specification
	scope      expression.Scope
}

func (t *Translator) selectInto(node *ast.Select, body *ast.Specification, s expression.Scope) (interpreter.Statement, *fault.Error) {
	return &selectInto{translator: t, node: node, body: body, scope: s}, nil
}

// IsWrite says that a doomed transaction refuses it.
func (*selectInto) IsWrite() bool { return true }

// Run makes the table with its types, and inserts the rows. Error 1038 for a column without a name.
func (s *selectInto) Run(ctx context.Context, f *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
	t := s.translator
	plain := *s.body
	plain.Into = nil
	query := *s.node.Query
	query.Body = &plain
	r, err := t.reading(ctx, s.scope, s.node.With, &query)
	if err != nil {
		return 0, false, err
	}
	r.cutAtRowLimit()
	made, err := t.target(ctx, s.body.Into.Table)
	if err != nil {
		return 0, false, err
	}
	made.kind, made.constraints = 'r', map[string]constraint{}
	b := t.tableBuilder(ctx, made)
	var lines []string
	for i, c := range r.columns {
		if c.name == "" {
			return 0, false, fault.New(1038)
		}
		if made.find(c.name) != nil {
			return 0, false, fault.New(2705, c.name, s.body.Into.Table.Object())
		}
		column := &column{table: made, name: c.name, typ: c.typ, isNullable: true, number: i + 1}
		made.columns = append(made.columns, column)
		line, err := b.column(&ast.ColumnDefinition{Name: c.name}, column)
		if err != nil {
			return 0, false, err
		}
		lines = append(lines, line)
	}
	temporary := ""
	if made.schema == "pg_temp" {
		temporary = "temporary "
	}
	statements := append([]string{"create " + temporary + "table " + made.sql + " (" + strings.Join(lines, ", ") + ")"}, b.after...)
	rows, err := r.gather(ctx, f)
	if err != nil {
		return 0, false, err
	}
	if err := t.run(ctx, "SELECT INTO", statements...); err != nil {
		return 0, false, err
	}
	t.keepTemporary(s.body.Into.Table, made)
	t.forget()
	insert := &ast.Insert{Target: ast.Target{Name: s.body.Into.Table}}
	n, err := t.Insert(ctx, insert, s.scope, f, rows)
	_ = sink
	return n, true, err
}
