package translator

import (
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// turned translates the input of PIVOT or UNPIVOT with names of its own. It gives the SQL of FROM and the columns of the input.
func (b *builder) turned(input ast.TableSource, turn func(from string, columns []sourceColumn) *fault.Error) *fault.Error {
	outer := b.names
	b.names = &names{outer: outer}
	defer func() { b.names = outer }()
	from, err := b.source(input)
	if err != nil {
		return err
	}
	var columns []sourceColumn
	for _, s := range b.names.sources {
		columns = append(columns, s.columns...)
	}
	return turn(from, columns)
}

// pivot translates PIVOT: a group for each list of values of the columns that it does not name, and in it an aggregate for each value
// of the column that becomes names.
func (b *builder) pivot(node *ast.Pivot) (string, *fault.Error) {
	var results, groups []string
	var columns []sourceColumn
	from := ""
	err := b.turned(node.Input, func(input string, inputColumns []sourceColumn) *fault.Error {
		from = input
		taken := map[string]bool{strings.ToLower(node.Column.Object()): true}
		for _, argument := range node.Aggregate.Arguments {
			ast.Walk(argument, func(part ast.Node) bool {
				if c, is := part.(*ast.ColumnReference); is {
					taken[strings.ToLower(c.Name.Object())] = true
				}
				return true
			})
		}
		for _, c := range inputColumns {
			if taken[strings.ToLower(c.name)] {
				continue
			}
			groups, results, columns = append(groups, c.sql), append(results, c.sql), append(columns, sourceColumn{name: c.name, typ: c.typ})
		}
		for _, name := range node.Values {
			e, err := b.ofPivot(node, name)
			if err != nil {
				return err
			}
			results, columns = append(results, e.sql), append(columns, sourceColumn{name: name, typ: e.typ})
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	sql := "select " + strings.Join(results, ", ") + " from " + from
	if groups != nil {
		list := strings.Join(groups, ", ")
		sql += " group by " + list + " order by " + list
	}
	return b.named("("+sql+")", columns, node.Alias)
}

// ofPivot gives the aggregate of the rows that have a value.
func (b *builder) ofPivot(node *ast.Pivot, name string) (sqlExpression, *fault.Error) {
	call := node.Aggregate
	if hasStar(call) || len(call.Arguments) != 1 || aggregateNames[strings.ToUpper(call.Name.Object())] == "" {
		return sqlExpression{}, fault.New(102, call.Name.String())
	}
	at := ast.ExpressionAt{Place: call.Place}
	isOne := &ast.Comparison{
		ConditionAt: ast.ConditionAt{Place: call.Place}, Operator: "=", Left: &ast.ColumnReference{ExpressionAt: at, Name: node.Column},
		Right: &ast.Literal{ExpressionAt: at, Kind: ast.NationalString, Text: name},
	}
	chosen := &ast.SearchedCase{
		ExpressionAt: at, Whens: []*ast.ConditionWhen{{Place: call.Place, Result: call.Arguments[0], Condition: isOne}},
	}
	b.isQuiet = true // of the rows that have another value
	defer func() { b.isQuiet = false }()
	return b.call(&ast.Call{ExpressionAt: at, Name: call.Name, Quantifier: call.Quantifier, Arguments: []ast.Expression{chosen}})
}

// unpivot translates UNPIVOT: a row for each column that it names, unless its value is NULL.
func (b *builder) unpivot(node *ast.Unpivot) (string, *fault.Error) {
	var results, rows []string
	var columns []sourceColumn
	from := ""
	typ := value.Type{}
	reading := b.alias("u")
	err := b.turned(node.Input, func(input string, inputColumns []sourceColumn) *fault.Error {
		from = input
		taken := map[string]bool{}
		for _, name := range node.Columns {
			e, err := b.resolve(ast.Name{Parts: []string{name}})
			switch {
			case err != nil:
				return err
			case rows != nil && databaseType(e.typ) != databaseType(typ):
				return fault.New(8167, name)
			case rows == nil || e.typ.Length > typ.Length:
				typ = e.typ
			}
			taken[strings.ToLower(name)] = true
			rows = append(rows, "("+b.textParameter(name)+", "+e.sql+")")
		}
		for _, c := range inputColumns {
			if !taken[strings.ToLower(c.name)] {
				results, columns = append(results, c.sql), append(columns, sourceColumn{name: c.name, typ: c.typ})
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	named := text(reading+".name", sysname)
	results = append(results, reading+".value", named.sql)
	columns = append(columns, sourceColumn{name: node.Value, typ: typ}, sourceColumn{name: node.Column, typ: sysname})
	if rows == nil {
		return "", expression.Unsupported("UNPIVOT without columns")
	}
	sql := fmt.Sprintf("select %s from %s cross join lateral (values %s) as %s (name, value) where %s.value is not null",
		strings.Join(results, ", "), from, strings.Join(rows, ", "), reading, reading)
	return b.named("("+sql+")", columns, node.Alias)
}
