package translator

import (
	"encoding/json"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// openJSON translates OPENJSON of a value that reads no rows: Go finds the rows, which travel as one parameter.
func (b *builder) openJSON(call *ast.Call, node *ast.FunctionTable) (string, *fault.Error) {
	var arguments []*expression.Expression
	for _, a := range call.Arguments {
		if b.readsRows(a) {
			return "", expression.Unsupported("OPENJSON() of a column")
		}
		e, err := expression.CompileAs(a, value.Sized(value.NVarChar, value.Max), goScope{builder: b})
		if err != nil {
			return "", err
		}
		arguments = append(arguments, e)
	}
	if len(arguments) < 1 || len(arguments) > 2 {
		return "", fault.New(189, "openjson", 1, 2)
	}
	columns, wanted, err := b.jsonColumns(node.Schema)
	if err != nil {
		return "", err
	}
	rows := b.parameter(&expression.Expression{
		Type: value.Sized(value.NVarChar, value.Max), Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) {
			texts := []string{"", "$"}
			for i, e := range arguments {
				v, err := e.Evaluate(f)
				if err != nil {
					return v, err
				}
				if v.IsNull() {
					return value.NewNVarChar("[]"), nil
				}
				texts[i] = v.Raw()
			}
			found, err := function.OpenJSON(texts[0], texts[1], wanted)
			if err != nil {
				return value.Value{}, err
			}
			list, failed := json.Marshal(found)
			if failed != nil || found == nil {
				list = []byte("[]")
			}
			return value.NewNVarChar(string(list)), nil
		},
	}, "")
	cells := make([]string, len(columns))
	for i, c := range columns {
		// The text becomes the type as CAST makes it: with its errors.
		cell, err := b.convert(text("(u.r ->> "+itoa(i)+")", value.Sized(value.NVarChar, value.Max)), c.typ, explicit)
		if err != nil {
			return "", err
		}
		cells[i] = cell.sql
	}
	return b.named("(select "+strings.Join(cells, ", ")+" from json_array_elements("+plain(rows.sql)+
		"::json) with ordinality as u (r, place) order by u.place)", columns, node.Alias)
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
