package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A change is a translated INSERT, UPDATE or DELETE.
type change struct {
	builder  *builder
	verb     string
	table    *relation
	written  string // the target as the statement names it
	sql      string
	returned []sqlExpression // what it gives back, in this order
	output   *output
	identity int   // of the returned, the new value of IDENTITY; -1 without one
	watched  int   // of the returned, counted from 1, whether an aggregate left NULL out; 0 without one
	slots    []int // of variables that UPDATE sets, from the values returned last
	assigned []*expression.Expression
	gathered *reading // of INSERT: rows that Go computes
	insert   *insertion
	sent     []rowsSent // to other tables
	needsRow bool       // the row under a cursor must be there: error 16947
	found    string     // of a table without a key: the query that finds and locks the rows
	// isPreviewed says that Go reads the rows before, in the same transaction.
	isPreviewed bool
	// isInstead says that the statement fills the tables of a trigger, which runs in its place.
	isInstead bool
	fires     *firing
	// Of MERGE: statements that run before it, its assignments, and its triggers by event.
	before []string
	sets   []assignment
	events []*firing
}

// IsWrite says that a doomed transaction refuses it.
func (*change) IsWrite() bool { return true }

func (c *change) attempt(ctx context.Context, f *expression.Frame, sink session.Sink) (int64, *fault.Error) {
	if c.gathered != nil {
		rows, err := c.gathered.gather(ctx, f)
		if err != nil {
			return 0, err
		}
		return c.insert.rows(ctx, f, rows, sink)
	}
	if c.fires != nil {
		return c.withTables(ctx, f, sink)
	}
	for _, g := range c.events {
		if err := c.builder.translator.makeTables(ctx, g); err != nil {
			return 0, err
		}
	}
	return c.run(ctx, f, sink)
}

// run makes the change, where the table has no triggers or those that are known.
func (c *change) run(ctx context.Context, f *expression.Frame, sink session.Sink) (int64, *fault.Error) {
	if c.table != nil && len(c.table.triggers) > 0 {
		if err := c.builder.translator.announce(ctx, c.table); err != nil {
			return 0, err
		}
	}
	return c.runNow(ctx, f, sink)
}

func (c *change) runNow(ctx context.Context, f *expression.Frame, sink session.Sink) (int64, *fault.Error) {
	if c.output != nil && c.output.isShown {
		if err := sink.Columns(c.output.columns); err != nil {
			return 0, lost(err)
		}
	}
	types := make([]value.Type, len(c.returned))
	for i, e := range c.returned {
		types[i] = e.typ
	}
	var given identities
	outer := f.Row
	defer func() { f.Row = outer }()
	var take func([][]byte) *fault.Error
	if len(types) > 0 {
		take = func(cells [][]byte) *fault.Error {
			row, err := decodeRow(types, cells)
			if err != nil {
				return err
			}
			f.Row = row
			c.note(row, &given)
			if err := c.assign(f); err != nil {
				return err
			}
			if c.output == nil || !c.output.isShown {
				return nil
			}
			return c.output.give(f, sink)
		}
	}
	if err := c.runBefore(ctx, f); err != nil {
		return 0, err
	}
	n, err := c.builder.execute(ctx, c.sql, c.verb, c.table, f, take)
	if err == nil && n == 0 && c.needsRow {
		err = fault.New(16947)
	}
	if err != nil {
		return n, err
	}
	c.builder.translator.noteIdentity(given.last, c.table, n)
	if given.hasDropped {
		warn(f)
	}
	if err := c.builder.translator.advance(ctx, c.table, given.numbers); err != nil {
		return n, err
	}
	if c.fires != nil {
		return n, c.builder.translator.fire(ctx, c.fires, n)
	}
	for _, g := range c.events {
		if err := c.builder.translator.fire(ctx, g, n); err != nil {
			return n, err
		}
	}
	return n, nil
}

// runBefore runs the statements before MERGE.
func (c *change) runBefore(ctx context.Context, f *expression.Frame) *fault.Error {
	for _, sql := range c.before {
		if _, err := c.builder.execute(ctx, sql, c.verb, c.table, f, nil); err != nil {
			return err
		}
	}
	return nil
}

// assign gives the variables that the statement sets the values of the row.
func (c *change) assign(f *expression.Frame) *fault.Error {
	for i, e := range c.assigned {
		v, err := e.Evaluate(f)
		if err != nil {
			return err
		}
		if c.slots[i] >= 0 {
			f.Variables[c.slots[i]] = v
		}
	}
	return nil
}

// noteIdentity keeps @@IDENTITY and SCOPE_IDENTITY(). An INSERT into a table without IDENTITY makes @@IDENTITY NULL.
func (t *Translator) noteIdentity(identity value.Value, table *relation, rows int64) {
	if table == nil || rows == 0 || identity.Kind() == value.Unknown {
		return
	}
	v, err := value.Defaults().Assign(identity, identityType)
	if err != nil {
		return
	}
	t.lastID, t.scope().identity = v, v
}

// target resolves the object that DML changes: an alias of FROM, a table variable, a table.
func (b *builder) target(node *ast.Target, _ []ast.TableSource) (*relation, string, *fault.Error) {
	if node.Variable != "" {
		return b.variable(node.Variable)
	}
	r, err := b.translator.reads(b.ctx, node.Name)
	if err != nil {
		return nil, "", err
	}
	if r.kind == 's' {
		return nil, "", fault.New(259)
	}
	return r, r.sql, nil
}

func (t *Translator) insert(ctx context.Context, node *ast.Insert, s expression.Scope) (interpreter.Statement, *fault.Error) {
	i, err := t.insertion(ctx, node, s)
	if err != nil {
		return nil, err
	}
	prefix, done, err := i.with(node.With)
	defer done()
	if err != nil {
		return nil, err
	}
	i.prefix, i.isCut = prefix, t.isCutting() && !node.IsDefault
	switch {
	case node.IsDefault:
		return i.finished("default values")
	case node.Rows != nil:
		return i.values()
	case node.Query != nil:
		return i.query()
	}
	return nil, expression.Unsupported("INSERT of this form")
}

// values inserts rows of VALUES. Each value is converted as its column asks; DEFAULT is the column's.
func (i *insertion) values() (interpreter.Statement, *fault.Error) {
	var rows []string
	for _, row := range i.node.Rows {
		if len(row) != len(i.columns) {
			return nil, i.countFault(len(row), true)
		}
		var cells []string
		for n, node := range row {
			sql, err := i.cell(node, i.columns[n])
			if err != nil {
				return nil, err
			}
			cells = append(cells, sql)
		}
		rows = append(rows, "("+strings.Join(cells, ", ")+")")
	}
	i.isCut = i.isCut && len(rows) > 1
	return i.finished("values " + strings.Join(rows, ", "))
}

// countFault gives the error for a number of values that is not that of the columns.
func (i *insertion) countFault(count int, isValues bool) *fault.Error {
	switch {
	case len(i.node.Columns) == 0:
		return fault.New(213)
	case isValues && count > len(i.columns):
		return fault.New(110)
	case isValues:
		return fault.New(109)
	case count > len(i.columns):
		return fault.New(121)
	}
	return fault.New(120)
}

func (i *insertion) cell(node ast.Expression, c *column) (string, *fault.Error) {
	if literal, is := node.(*ast.Literal); is && literal.Kind == ast.Default {
		return "default", nil
	}
	if word, is := node.(*ast.Keyword); is && word.Word == "DEFAULT" {
		return "default", nil
	}
	if c.typ.Kind == value.RowVersion {
		return "", fault.New(273)
	}
	if !i.readsRows(node) {
		e, err := expression.Compile(node, goScope{builder: i.builder})
		if err != nil {
			return "", err
		}
		stored, err := i.stored(e, c)
		return stored.sql, err
	}
	e, err := i.expression(node)
	if err != nil {
		return "", err
	}
	e, err = i.convert(e, c.typ, implicit)
	return e.sql, err
}

// stored makes a parameter of a value of Go for a column: error 2628 where it is too long.
func (b *builder) stored(e *expression.Expression, c *column) (sqlExpression, *fault.Error) {
	if err := value.CheckAssignable(e.Type.Kind, c.typ.Kind); err != nil {
		return sqlExpression{}, err
	}
	t := b.translator
	return b.parameter(&expression.Expression{Type: c.typ, Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) {
		v, err := e.Evaluate(f)
		if err != nil {
			return v, err
		}
		return t.fitted(f.Context.Settings, v, c)
	}}, ""), nil
}

// fitted converts a value to a column's type; what would be cut is error 2628.
func (t *Translator) fitted(s *value.Settings, v value.Value, c *column) (value.Value, *fault.Error) {
	k := v.Kind()
	limit := int(c.typ.Length)
	isCut := !v.IsNull() && limit > 0 && (c.typ.Kind.IsBinary() && k.IsBinary() && len(v.Raw()) > limit ||
		c.typ.Kind.IsCharacter() && k.IsCharacter() && value.UnitsOf(strings.TrimRight(v.Raw(), " ")) > limit)
	if isCut {
		return v, fault.New(2628, t.shownTable(c.table), c.name, value.CutUnits(v.Raw(), 0, int(c.typ.Length)))
	}
	return s.Assign(v, c.typ)
}

// shownTable names a table as messages do: with its database and its schema.
func (t *Translator) shownTable(r *relation) string {
	switch {
	case r == nil:
		return t.database
	case r.schema == "pg_temp" || strings.HasPrefix(r.schema, "pg_temp_"):
		return "tempdb.dbo." + shownName(r.name)
	}
	return t.database + "." + r.schema + "." + r.name
}

// query inserts the rows of a query: in the database, or through Go where a result has no form in SQL.
func (i *insertion) query() (interpreter.Statement, *fault.Error) {
	i.fallsBack = true
	sql, columns, err := i.derived(i.node.Query)
	i.fallsBack = false
	if err != nil && err.Number != unsupported {
		return nil, err
	}
	if err != nil {
		r, err := i.translator.reading(i.ctx, i.scope, i.node.With, i.node.Query)
		if err != nil {
			return nil, err
		}
		if len(r.columns) != len(i.columns) && r.documents == nil {
			return nil, i.countFault(len(r.columns), false)
		}
		return &change{builder: i.builder, gathered: r, insert: i, identity: -1}, nil
	}
	if len(columns) != len(i.columns) {
		return nil, i.countFault(len(columns), false)
	}
	name := i.alias("r")
	var written, results []string
	for n, c := range columns {
		cell := "c" + itoa(n+1)
		written = append(written, cell)
		e, err := i.convert(sqlExpression{sql: name + "." + cell, typ: c.typ}, i.columns[n].typ, implicit)
		if err != nil {
			return nil, err
		}
		results = append(results, e.sql)
	}
	return i.finished("select " + strings.Join(results, ", ") + " from (" + sql + ") as " + name + " (" + strings.Join(written, ", ") + ")")
}

// unsupported is the error of a construct that has no form in SQL.
const unsupported = 40517

// finished adds what the statement gives back.
func (i *insertion) finished(rows string) (*change, *fault.Error) {
	c := &change{builder: i.builder, verb: "INSERT", table: i.table, written: i.node.Target.Name.String(), identity: -1}
	names := make([]string, len(i.columns))
	for n, column := range i.columns {
		names[n] = column.name
	}
	list := ""
	if len(names) > 0 && !i.node.IsDefault {
		list = " (" + quoteAll(names) + ")"
	}
	limits, err := i.limitOfChange(i.node.Top, rows)
	if err != nil {
		return nil, err
	}
	rows += limits
	reading, into := quote(i.alias("t")), i.into
	instead, err := i.translator.insteadOf(i.table, "INSERT")
	if err != nil {
		return nil, err
	}
	if instead != nil {
		c.takesPlace(instead, "INSERT", nil, nil)
		into = c.fires.inserted.sql
	}
	sql := "insert into " + into + " as " + reading + list + " " + rows
	inserted := sourceOf(i.table, "inserted", reading)
	inserted.isHidden = true
	if err := c.returns(i.node.Output, []*source{inserted}); err != nil {
		return nil, err
	}
	if instead != nil {
		c.isInstead = false // it is an INSERT all the same
		c.write(i.prefix, sql)
		return c, nil
	}
	if id := i.table.identity(); id != nil {
		c.identity = c.returning(sqlExpression{sql: reading + "." + quote(id.name), typ: id.typ})
	}
	c.prepareTriggers("INSERT", inserted, nil)
	c.write(i.prefix, sql)
	return c, nil
}
