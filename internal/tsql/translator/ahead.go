package translator

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// Go computes ahead of a statement what PostgreSQL cannot compute of rows that it groups, sums up or goes on with. The columns of FROM that
// it reads come to Go once for each list of values. The results travel as one parameter, and the statement finds them by the values of its
// own rows. Under READ COMMITTED a row that another session changes in between has NULL; the other levels read both from one snapshot.

// A sight has the sources of a FROM that a part of a statement sees.
type sight struct {
	sources []ast.TableSource
	isApart bool          // the condition of a join: each source is read by itself, not each pair of rows
	where   ast.Condition // which rows are left, once WHERE is translated
}

// A sighted part of a FROM is read by itself.
type sighted struct {
	sources []ast.TableSource
	where   ast.Condition
}

// readings gives what may be read of a sight: the rows that WHERE leaves, else each source, which is less than all together.
func (l sight) readings() (all []sighted) {
	if l.where != nil {
		all = append(all, sighted{l.sources, l.where})
	}
	for _, source := range l.sources {
		ast.Walk(source, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.TableName, *ast.TableVariable, *ast.DerivedTable, *ast.ValuesTable:
				all = append(all, sighted{sources: []ast.TableSource{n.(ast.TableSource)}}) //nolint:forcetypeassert // each of them is one
				return false
			case *ast.Pivot, *ast.Unpivot, *ast.Query, *ast.FunctionTable:
				return false
			}
			return true
		})
	}
	if l.isApart {
		return all
	}
	return append(all, sighted{sources: l.sources})
}

// ahead gives a builder of its own and the sources of FROM, as it reads them before the statement: those of the query that is translated,
// then those of the queries around it, until their names are all that is read.
func (b *builder) ahead(refused *fault.Error, try func(before *builder, prefix, rows string, l sight) *fault.Error) *fault.Error {
	if b.isDefinition || len(b.inline) > 0 {
		return refused
	}
	for _, l := range slices.Backward(b.beside) {
		for _, part := range l.readings() {
			before := b.translator.builder(b.ctx, b.scope)
			prefix, _, err := before.with(b.common)
			if err != nil {
				return err
			}
			before.namespaces = b.namespaces
			before.names = &names{outer: before.names}
			rows, err := before.from(part.sources)
			if err == nil && part.where != nil {
				chosen, refused := before.condition(part.where)
				if refused != nil { // it reads rows around, or has no form in SQL
					continue
				}
				rows += " where " + chosen
			}
			if err == nil {
				err = try(before, prefix, rows, l)
			}
			if err == nil || !slices.Contains([]int{107, 207, 208, 209, 4104}, err.Number) {
				return err
			}
		}
	}
	return refused
}

// lists writes the query of the lists of values, each behind its text. An outer join gives rows in which a source has no values.
func (l sight) lists(list string, cells []string, rows string) string {
	sql := "(select distinct on (1) " + list + ", " + strings.Join(cells, ", ") + " from " + rows + ")"
	if isOuter(l.sources) {
		nulls := slices.Repeat([]sqlExpression{{sql: "null", typ: value.Of(value.Int)}}, len(cells))
		sql += " union all select " + listOf(nulls) + strings.Repeat(", null", len(cells))
	}
	return sql
}

// computedAhead has Go compute an expression of the columns of FROM.
func (b *builder) computedAhead(node ast.Expression, refused *fault.Error) (sqlExpression, *fault.Error) {
	if !b.computes || hasAggregate(node) {
		return sqlExpression{}, refused
	}
	var own []sqlExpression
	if _, err := expression.Compile(node, goScope{builder: b, leaves: &own}); err != nil {
		return sqlExpression{}, err
	}
	key := listOf(own)
	name := b.shapeOf(node) + key
	if e, known := b.computed[name]; known {
		return e, nil
	}
	var result sqlExpression
	err := b.ahead(refused, func(before *builder, prefix, rows string, l sight) *fault.Error {
		var leaves []sqlExpression
		e, err := expression.Compile(node, goScope{builder: before, leaves: &leaves})
		if err != nil {
			return err
		}
		if len(leaves) == 0 || len(leaves) != len(own) {
			return refused
		}
		cells, types := []string{}, []value.Type{value.Sized(value.VarChar, value.Max)}
		for _, leaf := range leaves {
			cells, types = append(cells, leaf.sql), append(types, leaf.typ)
		}
		reads := prefix + l.lists(listOf(leaves), cells, rows)
		sent := b.parameter(&expression.Expression{Type: document, Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) {
			return before.compute(f, reads, types, e)
		}}, "")
		result = sqlExpression{sql: b.typed("((select "+plain(sent.sql)+"::jsonb) ->> "+key+")", e.Type), typ: e.Type}
		return nil
	})
	if err != nil {
		return result, err
	}
	if b.computed == nil {
		b.computed = map[string]sqlExpression{}
	}
	b.computed[name] = result
	return result, nil
}

// compute gives the result of an expression for each list of values that a query gives, behind its text.
func (b *builder) compute(f *expression.Frame, sql string, types []value.Type, e *expression.Expression) (value.Value, *fault.Error) {
	results := map[string]*string{}
	err := b.each(f, sql, types, func(list string) *fault.Error {
		v, err := e.Evaluate(f)
		if err != nil {
			return err
		}
		results[list] = nil
		if written := encode(f.Context.Settings, v); written != nil {
			text := string(written)
			results[list] = &text
		}
		return nil
	})
	if err != nil {
		return value.Value{}, err
	}
	list, _ := json.Marshal(results)
	return value.NewNVarChar(string(list)), nil
}

// listOf writes values as one text.
func listOf(values []sqlExpression) string {
	cells := make([]string, len(values))
	for i, e := range values {
		cells[i] = cellText(e.sql, e.typ)
	}
	return "(json_build_array(" + strings.Join(cells, ", ") + ")::text)"
}

// hasAggregate reports whether an expression sums rows up, outside of its subqueries.
func hasAggregate(node ast.Expression) bool {
	return anyCall([]item{{node: node}}, func(call *ast.Call) bool { return isAggregateCall(call) || call.Over != nil })
}

// shapeOf writes a node without its places: GROUP BY and the list of results may have the same expression. Columns have their names of SQL.
func (b *builder) shapeOf(node ast.Node) string {
	var shape strings.Builder
	b.writeShape(&shape, reflect.ValueOf(node), false)
	return shape.String()
}

var placeType = reflect.TypeFor[ast.Place]()

func (b *builder) writeShape(to *strings.Builder, v reflect.Value, isExact bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		if column, is := reflect.TypeAssert[*ast.ColumnReference](v); is {
			if e, err := b.resolve(column.Name); err == nil {
				to.WriteString(e.sql)
				return
			}
		}
		b.writeShape(to, v.Elem(), isExact)
	case reflect.Struct:
		if v.Type() == placeType {
			return
		}
		to.WriteString(v.Type().Name() + "{")
		for _, field := range v.Fields() {
			b.writeShape(to, field, v.Type() == reflect.TypeFor[ast.Literal]())
		}
		to.WriteString("}")
	case reflect.Slice:
		for i := range v.Len() {
			b.writeShape(to, v.Index(i), isExact)
			to.WriteString(",")
		}
	case reflect.String:
		text := v.String()
		if !isExact {
			text = strings.ToLower(text)
		}
		fmt.Fprintf(to, "%q", text)
	default:
		fmt.Fprint(to, v)
	}
}

// onCondition translates the condition of a join; Go computes ahead what one of its sources has.
func (b *builder) onCondition(node *ast.Join) (string, *fault.Error) {
	beside, computes := b.beside, b.computes
	defer func() { b.beside, b.computes = beside, computes }()
	b.beside = append(slices.Clip(beside), sight{sources: []ast.TableSource{node.Left, node.Right}, isApart: true})
	b.computes = true
	return b.condition(node.On)
}
