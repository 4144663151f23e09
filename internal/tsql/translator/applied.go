package translator

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// nullCell stands for NULL in a list of texts; no text of T-SQL has it.
const nullCell = "\x02"

// cellText gives an expression as text that is never null.
func cellText(sql string, t value.Type) string {
	if databaseType(t) == "bpchar" {
		sql = plain(sql)
	}
	return "coalesce(" + sql + "::text, e'\\x02')"
}

// resultCells gives the columns of a function's rows, which travel as lists of texts that begin at a place of u.r.
func (b *builder) resultCells(shape *relation, first int) (columns []sourceColumn, cells string) {
	var written []string
	for i, c := range shape.columns {
		columns = append(columns, sourceColumn{name: c.name, typ: c.typ})
		written = append(written, b.typed("nullif(u.r ->> "+itoa(first+i)+", '"+nullCell+"')", c.typ))
	}
	return columns, strings.Join(written, ", ")
}

// appliedTable translates APPLY of a function of several statements whose arguments read the rows beside it. PostgreSQL cannot run the
// function. So the arguments are read before the statement, the function runs once for each list of them, and all rows travel as one
// parameter, each behind its arguments. Under READ COMMITTED a row that another session changes in between may be missed, as a scan of
// SQL Server may miss one that moves; the other levels read both from one snapshot.
func (b *builder) appliedTable(f *userFunction, node *ast.Call, alias ast.Alias, shape *relation) (string, *fault.Error) {
	if b.beside == nil || b.isDefinition || len(b.inline) > 0 {
		return "", expression.Unsupported("APPLY of a function of several statements")
	}
	if len(node.Arguments) != len(f.parameters) {
		return "", fault.New(313, node.Name.String())
	}
	before := b.translator.builder(b.ctx, b.scope)
	before.names, before.namespaces = &names{}, b.namespaces
	rows, err := before.source(b.beside)
	if err != nil {
		return "", err
	}
	key, arguments, err := before.keyOf(f, node.Arguments)
	if err != nil {
		return "", err
	}
	reads := "select " + key + ", " + strings.Join(arguments, ", ") + " from " + rows
	results := b.parameter(&expression.Expression{
		Type: value.Sized(value.NVarChar, value.Max), Evaluate: func(frame *expression.Frame) (value.Value, *fault.Error) {
			return before.apply(f, reads, frame)
		},
	}, "")
	outerKey, _, err := b.keyOf(f, node.Arguments)
	if err != nil {
		return "", err
	}
	columns, cells := b.resultCells(shape, 1)
	// PostgreSQL joins the list by the arguments, and may ask for rows that a condition leaves out later.
	sql := "(select " + cells + " from json_array_elements(" + plain(results.sql) + "::json) as u (r) where u.r ->> 0 = " + outerKey +
		" and json_array_length(u.r) > 1"
	return b.named(sql+")", columns, alias)
}

// keyOf gives the arguments of a call, and their list as one text.
func (b *builder) keyOf(f *userFunction, nodes []ast.Expression) (key string, arguments []string, _ *fault.Error) {
	var cells []string
	for i, node := range nodes {
		e, err := b.expression(node)
		if err != nil {
			return "", nil, err
		}
		if e, err = b.convert(e, f.parameters[i], implicit); err != nil {
			return "", nil, err
		}
		arguments = append(arguments, e.sql)
		cells = append(cells, cellText(e.sql, f.parameters[i]))
	}
	return "json_build_array(" + strings.Join(cells, ", ") + ")::text", arguments, nil
}

// apply runs a function for each list of arguments that a query gives, behind its text; a list of it alone says that it gave no rows.
func (b *builder) apply(f *userFunction, sql string, frame *expression.Frame) (value.Value, *fault.Error) {
	ctx, _ := frame.Outside.(context.Context)
	t := b.translator
	var keys []string
	lists := map[string][]value.Value{}
	_, err := b.execute(ctx, sql, "SELECT", nil, frame, func(cells [][]byte) *fault.Error {
		key := string(cells[0])
		if _, known := lists[key]; known {
			return nil
		}
		values, err := decodeRow(f.parameters, cells[1:])
		if err != nil {
			return err
		}
		keys, lists[key] = append(keys, key), values
		return nil
	})
	if err != nil {
		return value.Value{}, err
	}
	results := [][]string{}
	for _, key := range keys {
		rows, err := t.host.CallTable(ctx, f.node, lists[key], func(v value.Value) ([][]string, *fault.Error) { return t.rowsOf(ctx, v) })
		if err != nil {
			return value.Value{}, err
		}
		for _, row := range rows {
			results = append(results, append([]string{key}, row...))
		}
		if len(rows) == 0 {
			results = append(results, []string{key})
		}
	}
	list, _ := json.Marshal(results)
	return value.NewNVarChar(string(list)), nil
}
