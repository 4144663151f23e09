package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// An assignment is an element of SET.
type assignment struct {
	column *column
	value  sqlExpression
	slot   int // of the variable that takes the value, or -1
	typ    value.Type
}

func (t *Translator) update(ctx context.Context, node *ast.Update, s expression.Scope) (interpreter.Statement, *fault.Error) {
	parts := alteration{"UPDATE", node.With, &node.Target, node.From, node.Top, node.Where}
	return t.altered(ctx, s, parts, func(g *targeting, c *change) (interpreter.Statement, *fault.Error) {
		var assignments []assignment
		for _, set := range node.Set {
			a, err := g.assignment(set)
			if err != nil {
				return nil, err.At(set.Line, "")
			}
			assignments = append(assignments, a)
		}
		assignments = g.withRowVersion(assignments)
		instead, err := t.insteadOf(g.table, "UPDATE")
		if err != nil {
			return nil, err
		}
		if cursor, is := node.Where.(*ast.CurrentOf); is {
			switch {
			case g.preview != nil:
				return nil, expression.Unsupported("WHERE CURRENT OF with a value that the database cannot compute")
			case instead != nil:
				return nil, expression.Unsupported("WHERE CURRENT OF with an INSTEAD OF trigger")
			}
			return t.updateCurrent(c, g, cursor, assignments)
		}
		if err := g.choose(c); err != nil {
			return nil, err
		}
		if instead != nil {
			return g.updateInstead(c, node, assignments, instead)
		}
		if g.isPlain() && node.Output == nil && !assigns(assignments) && !g.table.hasTrigger("UPDATE") {
			c.write(g.prefix, "update "+g.into+" as "+g.source.reading+" set "+settings(assignments)+g.chosen)
			return c, nil
		}
		return g.updateRows(c, node, assignments)
	})
}

func assigns(assignments []assignment) bool {
	for _, a := range assignments {
		if a.slot >= 0 {
			return true
		}
	}
	return false
}

func settings(assignments []assignment) string {
	var parts []string
	for _, a := range assignments {
		if a.column != nil {
			parts = append(parts, quote(a.column.name)+" = "+a.value.sql)
		}
	}
	return strings.Join(parts, ", ")
}

// assignment translates an element of SET.
func (g *targeting) assignment(set *ast.SetClause) (assignment, *fault.Error) {
	a := assignment{slot: -1}
	if set.Method != nil {
		return g.modified(set.Method)
	}
	to := value.Type{}
	if !set.Column.IsEmpty() {
		a.column = g.table.find(set.Column.Object())
		switch {
		case a.column == nil:
			return a, fault.New(207, set.Column.Object())
		case a.column.isComputed:
			return a, fault.New(271, a.column.name)
		case a.column.typ.Kind == value.RowVersion:
			return a, fault.New(272)
		case a.column.isIdentity:
			return a, fault.New(8102, a.column.name)
		}
		to = a.column.typ
	}
	if set.Variable != "" {
		slot, t, known := g.scope.Variable(set.Variable)
		if !known {
			return a, fault.New(137, set.Variable)
		}
		a.slot, a.typ = slot, t
		if a.column == nil {
			to = t
		}
	}
	e, err := g.assignedValue(set, a.column, to)
	a.value = e
	return a, err
}

func (g *targeting) assignedValue(set *ast.SetClause, c *column, to value.Type) (sqlExpression, *fault.Error) {
	if literal, is := set.Value.(*ast.Literal); is && literal.Kind == ast.Default {
		return sqlExpression{sql: "default", typ: to}, nil
	}
	if word, is := set.Value.(*ast.Keyword); is && word.Word == "DEFAULT" {
		return sqlExpression{sql: "default", typ: to}, nil
	}
	isPlain := set.Operator == "=" || set.Operator == ""
	if isPlain && c != nil && !g.readsRows(set.Value) {
		e, err := expression.Compile(set.Value, goScope{builder: g.builder})
		if err != nil {
			return sqlExpression{}, err
		}
		return g.stored(e, c)
	}
	e, err := g.expression(set.Value)
	if err != nil && err.Number == unsupported && isPlain && c != nil {
		return g.computed(c, func(scope goScope) (*expression.Expression, *fault.Error) {
			return expression.Compile(set.Value, scope)
		})
	}
	if err != nil {
		return e, err
	}
	if !isPlain {
		var left sqlExpression
		if c != nil {
			left = sqlExpression{sql: g.source.reading + "." + quote(c.name), typ: c.typ}
		} else {
			left, err = g.expression(&ast.Variable{Name: set.Variable})
		}
		if err != nil {
			return e, err
		}
		if e, err = g.operation(strings.TrimSuffix(set.Operator, "="), left, e); err != nil {
			return e, err
		}
	}
	return g.convert(e, to, implicit)
}

// updateRows changes the rows that a query finds and locks: it knows their old values, and each row is changed once.
func (g *targeting) updateRows(c *change, node *ast.Update, assignments []assignment) (interpreter.Statement, *fault.Error) {
	b := g.builder
	reading := quote(b.alias("t"))
	selected, matched := g.rowKey(reading)
	var sets []string
	values := map[int]string{}
	for i, a := range assignments {
		name := "v" + itoa(i+1)
		if a.value.sql == "default" {
			sets = append(sets, quote(a.column.name)+" = default")
			continue
		}
		selected = append(selected, a.value.sql+" as "+name)
		values[i] = foundRows + "." + name
		if a.column != nil {
			sets = append(sets, quote(a.column.name)+" = "+values[i])
		}
	}
	if len(sets) == 0 { // only variables are set
		sets = append(sets, quote(g.table.columns[0].name)+" = "+reading+"."+quote(g.table.columns[0].name))
	}
	deleted := &source{alias: "deleted", table: g.table, isHidden: true}
	for i, column := range g.table.columns {
		name := "o" + itoa(i+1)
		selected = append(selected, g.source.reading+"."+quote(column.name)+" as "+name)
		deleted.columns = append(deleted.columns, sourceColumn{name: column.name, typ: column.typ, sql: foundRows + "." + name})
	}
	inserted := sourceOf(g.table, "inserted", reading)
	inserted.isHidden = true
	sources := []*source{inserted, deleted}
	if node.Output != nil {
		others, cells := g.copies()
		sources, selected = append(sources, others...), append(selected, cells...)
	}
	if err := c.returns(node.Output, sources); err != nil {
		return nil, err
	}
	if err := c.assignsVariables(assignments, values); err != nil {
		return nil, err
	}
	c.prepareTriggers("UPDATE", inserted, deleted)
	c.setColumns(assignments)
	g.write(c, selected, "update "+g.into+" as "+reading+" set "+strings.Join(sets, ", ")+" from ", " where "+matched)
	return c, nil
}

// copies gives the other sources, whose columns OUTPUT may name, as the rows that are found have them.
func (g *targeting) copies() (others []*source, cells []string) {
	for n, s := range g.names.sources {
		if s == g.source {
			continue
		}
		copied := &source{alias: s.alias, table: s.table}
		for i, column := range s.columns {
			name := "s" + itoa(n) + "_" + itoa(i+1)
			cells = append(cells, column.sql+" as "+name)
			copied.columns = append(copied.columns, sourceColumn{name: column.name, typ: column.typ, sql: foundRows + "." + name})
		}
		others = append(others, copied)
	}
	return others, cells
}

// assignsVariables has the rows give their values to the variables that the statement sets.
func (c *change) assignsVariables(assignments []assignment, values map[int]string) *fault.Error {
	for i, a := range assignments {
		if a.slot < 0 {
			continue
		}
		at := c.returning(sqlExpression{sql: values[i], typ: a.value.typ})
		read, err := ofRow(a.value.typ, at).As(a.typ)
		if err != nil {
			return err
		}
		c.slots, c.assigned = append(c.slots, a.slot), append(c.assigned, read)
	}
	return nil
}

// ofRow gives a column of the row that the database gave.
func ofRow(t value.Type, at int) *expression.Expression {
	return &expression.Expression{Type: t, Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) { return f.Row[at], nil }}
}
