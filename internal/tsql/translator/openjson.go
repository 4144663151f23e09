package translator

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/value"
)

var document = value.Sized(value.NVarChar, value.Max)

// openJSON translates OPENJSON: Go finds the rows, which travel as one parameter.
func (b *builder) openJSON(call *ast.Call, node *ast.FunctionTable) (string, *fault.Error) {
	if len(call.Arguments) < 1 || len(call.Arguments) > 2 {
		return "", fault.New(189, "openjson", 1, 2)
	}
	columns, wanted, err := b.jsonColumns(node.Schema)
	if err != nil {
		return "", err
	}
	found := func(values []value.Value) ([][]*string, *fault.Error) {
		texts := []string{"", "$"}
		for i, v := range values {
			if v.IsNull() {
				return nil, nil
			}
			texts[i] = v.Raw()
		}
		return function.OpenJSON(texts[0], texts[1], wanted)
	}
	if slices.ContainsFunc(call.Arguments, func(a ast.Expression) bool { return b.readsRows(a) }) {
		return b.appliedJSON(call.Arguments, node.Alias, columns, found)
	}
	rows, err := b.jsonRows(call.Arguments, found)
	if err != nil {
		return "", err
	}
	cells, err := b.jsonCells(columns, 0)
	if err != nil {
		return "", err
	}
	return b.named("(select "+cells+" from json_array_elements("+plain(rows)+
		"::json) with ordinality as u (r, place) order by u.place)", columns, node.Alias)
}

// jsonRows gives the parameter with the rows of a document that reads no rows.
func (b *builder) jsonRows(nodes []ast.Expression, found func([]value.Value) ([][]*string, *fault.Error)) (string, *fault.Error) {
	var arguments []*expression.Expression
	for _, a := range nodes {
		e, err := expression.CompileAs(a, document, goScope{builder: b})
		if err != nil {
			return "", err
		}
		arguments = append(arguments, e)
	}
	return b.parameter(&expression.Expression{Type: document, Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) {
		values := make([]value.Value, len(arguments))
		for i, e := range arguments {
			v, err := e.Evaluate(f)
			if err != nil {
				return v, err
			}
			values[i] = v
		}
		rows, err := found(values)
		if err != nil {
			return value.Value{}, err
		}
		list, failed := json.Marshal(rows)
		if failed != nil || rows == nil {
			list = []byte("[]")
		}
		return value.NewNVarChar(string(list)), nil
	}}, "").sql, nil
}

// appliedJSON translates APPLY of OPENJSON to a column, as appliedTable does a function of several statements.
func (b *builder) appliedJSON(
	nodes []ast.Expression, alias ast.Alias, columns []sourceColumn, found func([]value.Value) ([][]*string, *fault.Error),
) (string, *fault.Error) {
	refused := expression.Unsupported("OPENJSON() of a column")
	parameters := []value.Type{document, document}[:len(nodes)]
	results, key, err := b.appliedTo(parameters, nodes, refused, func(_ context.Context, values []value.Value) ([][]*string, *fault.Error) {
		return found(values)
	})
	if err != nil {
		return "", err
	}
	cells, err := b.jsonCells(columns, 1)
	if err != nil {
		return "", err
	}
	return b.named(joinedByKey(cells, results, key), columns, alias)
}

// jsonCells gives the columns of rows that begin at a place of u.r. The text becomes the type as CAST makes it: with its errors.
func (b *builder) jsonCells(columns []sourceColumn, first int) (string, *fault.Error) {
	cells := make([]string, len(columns))
	for i, c := range columns {
		cell, err := b.convert(text("(u.r ->> "+itoa(first+i)+")", document), c.typ, explicit)
		if err != nil {
			return "", err
		}
		cells[i] = cell.sql
	}
	return strings.Join(cells, ", "), nil
}

// jsonColumns gives the columns of WITH, or key, value and type without it.
func (b *builder) jsonColumns(schema []*ast.SchemaColumn) (columns []sourceColumn, wanted []function.JSONColumn, err *fault.Error) {
	if schema == nil {
		return []sourceColumn{
			{name: "key", typ: value.Sized(value.NVarChar, value.MaxUnicode)},
			{name: "value", typ: value.Sized(value.NVarChar, value.Max)},
			{name: "type", typ: value.Of(value.TinyInt)},
		}, nil, nil
	}
	for _, c := range schema {
		t, err := b.translator.typeOf(b.ctx, c.Type)
		if err != nil {
			return nil, nil, err
		}
		path := `$."` + c.Name + `"`
		if c.Path != nil {
			if path, err = literalText(c.Path); err != nil {
				return nil, nil, err
			}
		}
		columns = append(columns, sourceColumn{name: c.Name, typ: t})
		wanted = append(wanted, function.JSONColumn{Path: path, IsDocument: c.AsJSON})
	}
	return columns, wanted, nil
}
