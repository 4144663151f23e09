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
	refused := expression.Unsupported("APPLY of a function of several statements")
	if len(node.Arguments) != len(f.parameters) {
		return "", fault.New(313, node.Name.String())
	}
	t := b.translator
	call := func(ctx context.Context, values []value.Value) ([][]*string, *fault.Error) {
		rows, err := t.host.CallTable(ctx, f.node, values, func(v value.Value) ([][]string, *fault.Error) { return t.rowsOf(ctx, v) })
		return references(rows), err
	}
	results, key, err := b.appliedTo(f.parameters, node.Arguments, refused, call)
	if err != nil {
		return "", err
	}
	columns, cells := b.resultCells(shape, 1)
	return b.named(joinedByKey(cells, results, key), columns, alias)
}

// appliedTo gives a parameter with what a call gives for each list of arguments, and the list of a row.
func (b *builder) appliedTo(
	parameters []value.Type, nodes []ast.Expression, refused *fault.Error,
	call func(context.Context, []value.Value) ([][]*string, *fault.Error),
) (results, key string, _ *fault.Error) {
	key, _, err := b.keyOf(parameters, nodes)
	if err != nil {
		return "", "", err
	}
	err = b.ahead(refused, func(before *builder, prefix, rows string, l sight) *fault.Error {
		list, arguments, err := before.keyOf(parameters, nodes)
		if err != nil {
			return err
		}
		reads := prefix + l.lists(list, arguments, rows)
		results = b.parameter(&expression.Expression{Type: document, Evaluate: func(frame *expression.Frame) (value.Value, *fault.Error) {
			return before.apply(parameters, reads, frame, call)
		}}, "").sql
		return nil
	})
	return results, key, err
}

// joinedByKey gives the rows that stand behind a list of arguments. PostgreSQL joins the list by the arguments, and may ask for rows that a
// condition leaves out later.
func joinedByKey(cells, results, key string) string {
	return "(select " + cells + " from json_array_elements(" + plain(results) + "::json) with ordinality as u (r, place) where u.r ->> 0 = " +
		key + " and json_array_length(u.r) > 1 order by u.place)"
}

// references gives cells as they may be null.
func references(rows [][]string) [][]*string {
	all := make([][]*string, len(rows))
	for i, row := range rows {
		for at := range row {
			all[i] = append(all[i], &row[at])
		}
	}
	return all
}

// keyOf gives the arguments of a call, and their list as one text.
func (b *builder) keyOf(parameters []value.Type, nodes []ast.Expression) (key string, arguments []string, _ *fault.Error) {
	var cells []string
	for i, node := range nodes {
		e, err := b.expression(node)
		if err != nil {
			return "", nil, err
		}
		if e, err = b.convert(e, parameters[i], implicit); err != nil {
			return "", nil, err
		}
		arguments = append(arguments, e.sql)
		cells = append(cells, cellText(e.sql, parameters[i]))
	}
	return "json_build_array(" + strings.Join(cells, ", ") + ")::text", arguments, nil
}

// apply makes a call for each list of arguments that a query gives, behind its text; a list of it alone says that it gave no rows.
func (b *builder) apply(
	parameters []value.Type, sql string, frame *expression.Frame,
	call func(context.Context, []value.Value) ([][]*string, *fault.Error),
) (value.Value, *fault.Error) {
	ctx, _ := frame.Outside.(context.Context)
	var keys []string
	lists := map[string][]value.Value{}
	_, err := b.execute(ctx, sql, "SELECT", nil, frame, func(cells [][]byte) *fault.Error {
		key := string(cells[0])
		if _, known := lists[key]; known {
			return nil
		}
		values, err := decodeRow(parameters, cells[1:])
		if err != nil {
			return err
		}
		keys, lists[key] = append(keys, key), values
		return nil
	})
	if err != nil {
		return value.Value{}, err
	}
	results := [][]*string{}
	for _, key := range keys {
		rows, err := call(ctx, lists[key])
		if err != nil {
			return value.Value{}, err
		}
		for _, row := range rows {
			results = append(results, append([]*string{&key}, row...))
		}
		if len(rows) == 0 {
			results = append(results, []*string{&key})
		}
	}
	list, _ := json.Marshal(results)
	return value.NewNVarChar(string(list)), nil
}
