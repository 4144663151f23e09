package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// part writes the part of a clause: the change of the rows that took it, and these rows in the form that all parts have: the action, the
// new values, the old ones, and the columns of the source.
func (m *merge) part(number string, w *ast.MergeWhen) *fault.Error {
	m.acts[w.Action] = true
	m.see(w.Kind != "NOT MATCHED BY TARGET", w.Kind != "NOT MATCHED BY SOURCE")
	name, taken := "merge_"+number, " where "+mergeReading+".act = "+number
	if w.Action == "INSERT" {
		return m.insertPart(name, taken, w)
	}
	sql := "delete from " + m.into + " as " + m.source.reading + " using "
	if w.Action == "UPDATE" {
		sets, err := m.sets(w)
		if err != nil {
			return err
		}
		sql = "update " + m.into + " as " + m.source.reading + " set " + sets + " from "
	}
	var cells []string
	for i, c := range m.table.columns {
		cell := m.source.reading + "." + quote(c.name)
		if w.Action == "DELETE" { // NULL of the column's type
			cell = "case when false then " + cell + " end"
		}
		cells = append(cells, cell+" as n"+itoa(i+1))
	}
	for i := range m.table.columns {
		cells = append(cells, mergeReading+".o"+itoa(i+1))
	}
	for _, c := range m.copied {
		cells = append(cells, c.sql)
	}
	m.parts = append(m.parts, name+" as ("+sql+mergeChosen+" as "+mergeReading+taken+" and "+m.isRow()+
		" returning '"+w.Action+"'::text as action, "+strings.Join(cells, ", ")+")")
	m.rows = append(m.rows, "select * from "+name)
	return nil
}

// sets writes the assignments of an UPDATE.
func (m *merge) sets(w *ast.MergeWhen) (string, *fault.Error) {
	var assignments []assignment
	for _, set := range w.Set {
		a, err := m.assignment(set)
		if err != nil {
			return "", err.At(set.Line, "")
		}
		if a.slot >= 0 {
			return "", expression.Unsupported("MERGE that sets a variable")
		}
		assignments = append(assignments, a)
	}
	m.change.sets = append(m.change.sets, assignments...)
	return settings(m.withRowVersion(assignments)), nil
}

// insertPart writes the INSERT of a clause. PostgreSQL gives the new rows back in the order of the source, so that the numbers of both
// put the source's columns beside them.
func (m *merge) insertPart(name, taken string, w *ast.MergeWhen) *fault.Error {
	i := &insertion{builder: m.builder, node: &ast.Insert{Columns: w.Columns}, table: m.table, into: m.into}
	if err := i.resolve(); err != nil {
		return err
	}
	var columns, cells []string
	if !w.IsDefault {
		if len(w.Values) != len(i.columns) {
			return i.countFault(len(w.Values), true)
		}
		for n, node := range w.Values {
			cell, err := i.cell(node, i.columns[n])
			if err != nil {
				return err
			}
			if cell != "default" {
				columns, cells = append(columns, i.columns[n].name), append(cells, cell)
			}
		}
	}
	list := ""
	if columns != nil {
		list = " (" + quoteAll(columns) + ")"
	}
	var given, taking []string
	for n, c := range m.table.columns {
		given = append(given, m.source.reading+"."+quote(c.name)+" as n"+itoa(n+1))
		taking = append(taking, "i.n"+itoa(n+1))
	}
	for n := range m.table.columns {
		taking = append(taking, "case when false then i.n"+itoa(n+1)+" end as o"+itoa(n+1))
	}
	for _, c := range m.copied {
		taking = append(taking, c.sql)
	}
	chosen := " from " + mergeChosen + " as " + mergeReading + taken
	m.parts = append(m.parts, name+" as (insert into "+m.into+" as "+m.source.reading+list+" select "+strings.Join(cells, ", ")+chosen+
		" order by "+mergeReading+".rn returning "+strings.Join(given, ", ")+")")
	m.rows = append(m.rows, "select 'INSERT'::text as action, "+strings.Join(taking, ", ")+
		" from (select row_number() over () as place, * from "+name+") as i"+
		" join (select row_number() over (order by "+mergeReading+".rn) as place, *"+chosen+") as "+mergeReading+
		" on "+mergeReading+".place = i.place")
	return nil
}

// fires prepares the triggers of one event: each has tables of its own.
func (m *merge) fires(event string, inserted, deleted *source) {
	c := m.change
	triggers := m.table.fired(event)
	if len(triggers) == 0 || m.translator.firingOn[m.table.oid] {
		return
	}
	g := &firing{table: m.table, event: event, triggers: triggers}
	for _, part := range []struct {
		name    string
		from    *source
		to      **relation
		isEmpty bool
	}{{"inserted", inserted, &g.inserted, event == "DELETE"}, {"deleted", deleted, &g.deleted, event == "INSERT"}} {
		copied := *m.table
		copied.schema, copied.key, copied.triggers = "pg_temp", nil, nil
		copied.name = part.name + "\u00a0" + itoa(int(m.table.oid)) + "\u00a0" + event
		copied.sql = "pg_temp." + quote(copied.name)
		*part.to = &copied
		if part.isEmpty {
			continue
		}
		sent := rowsSent{into: "insert into " + copied.sql + " ", condition: mergeChanged + ".action = '" + event + "'"}
		for _, column := range part.from.columns {
			sent.from = append(sent.from, c.returning(sqlExpression{sql: column.sql, typ: column.typ}))
		}
		c.sent = append(c.sent, sent)
	}
	if event == "INSERT" {
		for _, column := range m.table.columns {
			g.columns = append(g.columns, column.name)
		}
	}
	for _, a := range c.sets {
		if event == "UPDATE" && a.column != nil {
			g.columns = append(g.columns, a.column.name)
		}
	}
	c.events = append(c.events, g)
}

// sql writes the INSERT of rows that MERGE sends to another table.
func (r rowsSent) sql(given []string) string {
	taken := make([]string, len(r.from))
	for i, at := range r.from {
		taken[i] = given[at]
	}
	sql := r.into + "select " + strings.Join(taken, ", ") + " from " + mergeChanged
	if r.condition != "" {
		sql += " where " + r.condition
	}
	return sql
}
