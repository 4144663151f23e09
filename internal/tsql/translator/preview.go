package translator

import (
	"encoding/json"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A preview reads and locks the rows of UPDATE or DELETE before the statement changes them, because Go computes of them what has no form
// in SQL: the values of columns, or a part of the condition. The results travel as one parameter, each behind the place of its row. The
// locks keep the rows in their places until the statement, so it needs a transaction around both.
type preview struct {
	leaves []sqlExpression // what Go computes of
	values []previewed
	after  afterwards
	name   string // of the list in the statement
}

// A previewed value is one of a column.
type previewed struct {
	column *column
	value  *expression.Expression
}

// inAdvance gives the preview of the statement, and makes it when it is asked for the first time. A view has no places of rows,
// and MERGE no rows before it runs.
func (g *targeting) inAdvance() (*preview, *fault.Error) {
	if g.table.kind == 'v' || g.node.verb == "" {
		return nil, expression.Unsupported("MERGE or a view with what the database cannot compute")
	}
	if g.preview == nil {
		g.preview = &preview{name: g.alias("p")}
	}
	return g.preview, nil
}

// placeInTable writes the place of a row of the target as text: one of a partition has its table in it.
func placeInTable(reading string) string {
	return reading + ".tableoid::text || " + reading + ".ctid::text"
}

// computed has Go compute the value of a column. The statement finds it in the list.
func (g *targeting) computed(c *column, compile func(goScope) (*expression.Expression, *fault.Error)) (sqlExpression, *fault.Error) {
	p, err := g.inAdvance()
	if err != nil {
		return sqlExpression{}, err
	}
	e, err := compile(goScope{builder: g.builder, leaves: &p.leaves})
	if err != nil {
		return sqlExpression{}, err
	}
	if err := value.CheckAssignable(e.Type.Kind, c.typ.Kind); err != nil {
		return sqlExpression{}, err
	}
	p.values = append(p.values, previewed{c, e})
	return sqlExpression{sql: g.typed("nullif("+p.name+".r ->> "+itoa(len(p.values))+", '"+nullCell+"')", c.typ), typ: c.typ}, nil
}

// where translates the condition: to SQL, and for the parts that have no form there to a condition of Go.
func (g *targeting) where(node ast.Condition) (string, *fault.Error) {
	sql, err := g.condition(node)
	if err == nil || err.Number != unsupported {
		return " where " + sql, err
	}
	p, refused := g.inAdvance()
	if refused != nil {
		return "", err
	}
	sql, filter, err := g.conditions(node, &p.leaves)
	p.after.filter = filter
	return sql, err
}

// readBefore adds the list of the preview to the sources of the statement.
func (g *targeting) readBefore(c *change) {
	p := g.preview
	c.isPreviewed = true
	place := placeInTable(g.source.reading)
	cells := []string{place}
	types := []value.Type{value.Sized(value.VarChar, value.Max)}
	for _, leaf := range p.leaves {
		cells, types = append(cells, leaf.sql), append(types, leaf.typ)
	}
	reads := g.prefix + "select " + strings.Join(cells, ", ") + " from " + g.sources() + g.chosen +
		" for update of " + g.source.reading + g.locks
	before := *g.builder // without the parameters that come behind
	rows := g.parameter(&expression.Expression{
		Type: value.Sized(value.NVarChar, value.Max), Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) {
			return p.read(&before, f, reads, types)
		},
	}, "")
	g.from = g.sources() + " join (select u.r from json_array_elements(" + plain(rows.sql) + "::json) as u (r)) as " + p.name +
		" on " + p.name + ".r ->> 0 = " + place
}

// read reads the rows, and gives a list for each that the condition takes. A row that several rows of other tables meet has the values of
// the first.
func (p *preview) read(b *builder, f *expression.Frame, sql string, types []value.Type) (value.Value, *fault.Error) {
	seen := map[string]bool{}
	list := [][]string{}
	err := b.each(f, sql, types, func(place string) *fault.Error {
		if seen[place] {
			return nil
		}
		cells, isTaken, err := p.cells(b, f, place)
		if err == nil && isTaken {
			seen[place], list = true, append(list, cells)
		}
		return err
	})
	if err != nil {
		return value.Value{}, err
	}
	text, _ := json.Marshal(list)
	return value.NewNVarChar(string(text)), nil
}

// cells gives the values of a row behind its place; false where the condition does not take the row.
func (p *preview) cells(b *builder, f *expression.Frame, place string) ([]string, bool, *fault.Error) {
	if isChosen, err := p.after.chosen(f); err != nil || !isChosen {
		return nil, false, err
	}
	cells := []string{place}
	for _, v := range p.values {
		found, err := v.value.Evaluate(f)
		if err != nil {
			return nil, false, err
		}
		if found, err = b.translator.fitted(f.Context.Settings, found, v.column); err != nil {
			return nil, false, err
		}
		text := encode(f.Context.Settings, found)
		if text == nil {
			text = []byte(nullCell)
		}
		cells = append(cells, string(text))
	}
	return cells, true, nil
}

// modified translates column.modify(...), which changes a value of xml, and column.WRITE(...), which changes a part of a long one.
func (g *targeting) modified(node *ast.MethodCall) (assignment, *fault.Error) {
	a := assignment{slot: -1}
	target, is := node.Target.(*ast.ColumnReference)
	if !is {
		return a, expression.Unsupported("." + node.Method + "() in UPDATE")
	}
	if a.column = g.table.find(target.Name.Object()); a.column == nil {
		return a, fault.New(207, target.Name.Object())
	}
	e, err := g.computed(a.column, func(scope goScope) (*expression.Expression, *fault.Error) {
		held := scope.leaf(sqlExpression{sql: g.source.reading + "." + quote(a.column.name), typ: a.column.typ})
		if strings.EqualFold(node.Method, "WRITE") {
			return expression.Write(node, a.column.name, held, scope)
		}
		return expression.Modification(node, a.column.name, held, scope)
	})
	a.value = e
	return a, err
}
