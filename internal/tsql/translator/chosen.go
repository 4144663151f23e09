package translator

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// chosenBefore translates a condition of a query whose rows the database goes on with: it groups them, counts them or joins them. A part
// that has no form in SQL and reads one table chooses the rows of that table before the statement runs; their places travel as one
// parameter. Under READ COMMITTED a row that another session changes in between may be missed, as a scan of SQL Server may miss one that
// moves; the other levels read both from one snapshot.
func (b *builder) chosenBefore(from []ast.TableSource, node ast.Condition, refused *fault.Error) (string, *fault.Error) {
	if b.isDefinition {
		return "", refused
	}
	places := !isOuter(from)
	var written []string
	for _, part := range conjuncts(node) {
		sql, err := b.condition(part)
		if err != nil && err.Number == unsupported && places {
			sql, err = b.placesOf(part, err)
		}
		if err != nil && err.Number == unsupported {
			b.computes = true
			sql, err = b.condition(part)
			b.computes = false
		}
		if err != nil {
			return "", err
		}
		written = append(written, sql)
	}
	return " where " + strings.Join(written, " and "), nil
}

// isOuter reports whether a join gives rows that a table does not have.
func isOuter(from []ast.TableSource) bool {
	found := false
	for _, source := range from {
		ast.Walk(source, func(node ast.Node) bool {
			join, is := node.(*ast.Join)
			found = found || is && slices.Contains([]string{"LEFT", "RIGHT", "FULL", "OUTER APPLY"}, join.Kind)
			_, isQuery := node.(*ast.Query)
			return !isQuery
		})
	}
	return found
}

// placesOf gives the condition that a row of a table is one of those that a condition of Go takes.
func (b *builder) placesOf(node ast.Condition, refused *fault.Error) (string, *fault.Error) {
	var leaves []sqlExpression
	c, err := expression.CompileCondition(node, goScope{builder: b, leaves: &leaves})
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(b.names.sources, func(s *source) bool { return s.holds(leaves) })
	if at < 0 {
		return "", refused
	}
	s := b.names.sources[at]
	table := s.table.sql
	if strings.HasPrefix(s.table.name, "@") {
		table = b.markOf(s)
	}
	place := placeInTable(s.reading)
	cells := []string{place}
	types := []value.Type{value.Sized(value.VarChar, value.Max)}
	for _, leaf := range leaves {
		cells, types = append(cells, leaf.sql), append(types, leaf.typ)
	}
	before := *b
	sql := "select " + strings.Join(cells, ", ") + " from " + table + " as " + s.reading
	places := b.parameter(&expression.Expression{
		Type: value.Sized(value.NVarChar, value.Max), Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) {
			return before.choose(f, sql, types, c)
		},
	}, "")
	return place + " in (select json_array_elements_text(" + plain(places.sql) + "::json))", nil
}

// holds reports whether all leaves are columns of the table.
func (s *source) holds(leaves []sqlExpression) bool {
	if s.table == nil || s.table.kind != 'r' && s.table.kind != 'p' || len(leaves) == 0 {
		return false
	}
	for _, leaf := range leaves {
		if !slices.ContainsFunc(s.columns, func(c sourceColumn) bool { return c.sql == leaf.sql }) {
			return false
		}
	}
	return true
}

// each reads all rows of a query, and then has Go compute something of each: of its first value, and with the others as the row of the
// frame.
func (b *builder) each(f *expression.Frame, sql string, types []value.Type, compute func(first string) *fault.Error) *fault.Error {
	var read [][]value.Value
	ctx, _ := f.Outside.(context.Context)
	_, err := b.execute(ctx, sql, "SELECT", nil, f, func(cells [][]byte) *fault.Error {
		row, err := decodeRow(types, cells)
		read = append(read, row)
		return err
	})
	if err != nil {
		return err
	}
	outer := f.Row
	defer func() { f.Row = outer }()
	for _, row := range read {
		f.Row = row[1:]
		if err := compute(row[0].Raw()); err != nil {
			return err
		}
	}
	return nil
}

// choose gives the places of the rows that a condition takes, as a list of JSON.
func (b *builder) choose(f *expression.Frame, sql string, types []value.Type, c *expression.Condition) (value.Value, *fault.Error) {
	places := []string{}
	err := b.each(f, sql, types, func(place string) *fault.Error {
		truth, err := c.Evaluate(f)
		if truth == expression.True {
			places = append(places, place)
		}
		return err
	})
	if err != nil {
		return value.Value{}, err
	}
	list, _ := json.Marshal(places)
	return value.NewNVarChar(string(list)), nil
}
