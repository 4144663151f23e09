package translator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/parser"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A trigger of a table: its text is the comment of a trigger of PostgreSQL, which stops clients that do not run it.
type trigger struct {
	name      string
	author    string // the owner of the table
	text      string
	isEnabled bool
	node      *ast.Trigger
}

const triggerQuery = `select g.tgname, pg_catalog.obj_description(g.oid, 'pg_trigger'), (g.tgenabled <> 'D')::text,
  pg_catalog.pg_get_userbyid(c.relowner), concat(g.oid, '/', g.tgenabled)
from pg_catalog.pg_trigger as g join pg_catalog.pg_class as c on c.oid = g.tgrelid
where g.tgrelid = $1::text::oid and not g.tgisinternal
  and pg_catalog.obj_description(g.oid, 'pg_trigger') ~* '^\s*(create|alter)' order by g.oid`

// triggersOf reads the triggers of a table.
func (t *Translator) triggersOf(ctx context.Context, r *relation) *fault.Error {
	if r.kind != 'r' && r.kind != 'p' && r.kind != 'v' || strings.HasPrefix(r.schema, "pg_temp") {
		return nil
	}
	var failed *fault.Error
	err := t.rows(ctx, triggerQuery, []string{itoa(int(r.oid))}, func(row []string) {
		parsed, err := parser.Parse(row[1], parser.Options{})
		if err != nil || len(parsed.Statements) != 1 {
			failed = fault.New(102, row[0])
			return
		}
		if node, is := parsed.Statements[0].(*ast.Trigger); is {
			r.triggers = append(r.triggers, &trigger{name: row[0], text: row[1], isEnabled: row[2] == "true", author: row[3], node: node})
			r.fires += row[4] + ","
		}
	})
	if err == nil {
		err = failed
	}
	return err
}

// hasTrigger reports whether a change fires a trigger.
func (r *relation) hasTrigger(event string) bool {
	return len(r.fired(event)) > 0 || r.hasInsteadOf(event)
}

// fired gives the triggers that run after a change.
func (r *relation) fired(event string) (fired []*trigger) {
	for _, g := range r.triggers {
		if g.isEnabled && !g.isInsteadOf() && slices.Contains(g.node.Events, event) {
			fired = append(fired, g)
		}
	}
	return fired
}

// createTrigger compiles CREATE, ALTER and CREATE OR ALTER TRIGGER on a table.
func (t *Translator) createTrigger(node *ast.Trigger) (interpreter.Statement, *fault.Error) {
	if node.On != "TABLE" || node.External != nil {
		return nil, fault.New(40510, node.Verb+" TRIGGER ON "+node.On)
	}
	return t.defines(node.Verb+" TRIGGER", func(ctx context.Context) ([]string, *fault.Error) {
		r, err := t.relationOf(ctx, node.Table)
		isInstead := node.Timing == "INSTEAD OF"
		if err != nil || r.kind == 's' || r.kind == 'v' && !isInstead || strings.HasPrefix(node.Table.Object(), "#") {
			return nil, fault.New(8197, node.Table.String())
		}
		if isInstead {
			if err := t.refusesInstead(ctx, node, r); err != nil {
				return nil, err
			}
		}
		var statements []string
		name := node.Name.Object()
		for _, known := range r.triggers {
			if !strings.EqualFold(known.name, name) {
				continue
			}
			if node.Verb == "CREATE" {
				return nil, fault.New(2714, name)
			}
			statements = append(statements, "drop trigger "+quote(known.name)+" on "+r.sql)
		}
		if len(statements) == 0 && node.Verb == "ALTER" {
			return nil, fault.New(208, name)
		}
		return append(statements, r.triggerStatements(name, node)...), nil
	}), nil
}

// triggerStatements make the trigger of PostgreSQL. One of a view takes the place of each row, because a view has no other triggers.
func (r *relation) triggerStatements(name string, node *ast.Trigger) []string {
	when, each, argument := " before ", "statement", ""
	if node.Timing == "INSTEAD OF" {
		argument = "'INSTEAD OF'"
	}
	if r.kind == 'v' {
		when, each = " instead of ", "row"
	}
	creation := "create trigger " + quote(name) + when + strings.ToLower(strings.Join(node.Events, " or ")) + " on " + r.sql +
		" for each " + each + " execute function "
	return []string{
		"do " + quoteText(fmt.Sprintf(guardedTrigger, r.oid, guardBody, quoteText(creation), quoteText("("+argument+")"))),
		"comment on trigger " + quote(name) + " on " + r.sql + " is " + quoteText(node.Text),
	}
}

// findTrigger finds a trigger by its name, which is one of its schema.
func (t *Translator) findTrigger(ctx context.Context, name ast.Name) (table, trigger string, err *fault.Error) {
	schema := name.Schema()
	if schema == "" {
		schema = "dbo"
	}
	err = t.rows(ctx, `select quote_ident(n.nspname) || '.' || quote_ident(c.relname), quote_ident(g.tgname)
from pg_catalog.pg_trigger as g join pg_catalog.pg_class as c on c.oid = g.tgrelid
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where not g.tgisinternal and lower(g.tgname) = lower($1::text) and n.oid = `+connection.SchemaNamed("$2::text")+`
order by g.tgname = $1::text desc limit 1`,
		[]string{name.Object(), schema}, func(row []string) { table, trigger = row[0], row[1] })
	return table, trigger, err
}

func (t *Translator) dropTriggers(ctx context.Context, node *ast.Drop) ([]string, *fault.Error) {
	return dropEach(node, func(name ast.Name) (string, bool, *fault.Error) {
		table, found, err := t.findTrigger(ctx, name)
		return "drop trigger " + found + " on " + table, found != "", err
	}, func(name ast.Name) *fault.Error { return fault.New(3701, "drop", "trigger", name.String()) })
}

func (t *Translator) switchTrigger(node *ast.SwitchTrigger) (interpreter.Statement, *fault.Error) {
	if node.On != "TABLE" { // there are none of the database and the server
		return t.defines("ENABLE TRIGGER", func(context.Context) ([]string, *fault.Error) {
			if node.All {
				return nil, nil
			}
			return nil, fault.New(4902, node.Names[0].String())
		}), nil
	}
	return t.defines("ENABLE TRIGGER", func(ctx context.Context) ([]string, *fault.Error) {
		r, err := t.relationOf(ctx, node.Table)
		if err != nil {
			return nil, fault.New(1088, node.Table.String())
		}
		var names []string
		for _, name := range node.Names {
			names = append(names, name.Object())
		}
		return t.switched(ctx, r, names, node.All, node.Enable)
	}), nil
}

// switched turns triggers of a table on or off.
func (*Translator) switched(_ context.Context, r *relation, names []string, all, on bool) ([]string, *fault.Error) {
	verb := "disable"
	if on {
		verb = "enable"
	}
	if r.kind == 'v' {
		return nil, expression.Unsupported(strings.ToUpper(verb) + " TRIGGER of a view")
	}
	var statements []string
	for _, g := range r.triggers {
		if all || slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, g.name) }) {
			statements = append(statements, "alter table "+r.sql+" "+verb+" trigger "+quote(g.name))
		}
	}
	if !all && len(statements) < len(names) {
		return nil, fault.New(4902, names[0])
	}
	return statements, nil
}

// A firing is what a change with triggers leaves for them: its rows before and after, in temporary tables.
type firing struct {
	table    *relation
	event    string
	triggers []*trigger
	inserted *relation
	deleted  *relation
	columns  []string // that UPDATE sets; all columns for INSERT
	// isInstead says that the trigger runs in place of the change.
	isInstead bool
}

// prepareTriggers sends the changed rows to the tables inserted and deleted of a trigger.
func (c *change) prepareTriggers(event string, inserted, deleted *source) {
	t := c.builder.translator
	triggers := c.table.fired(event)
	if len(triggers) == 0 || t.firingOn[c.table.oid] {
		return
	}
	c.fires = &firing{table: c.table, event: event, triggers: triggers}
	for _, part := range []struct {
		name string
		from *source
		to   **relation
	}{{"inserted", inserted, &c.fires.inserted}, {"deleted", deleted, &c.fires.deleted}} {
		copied := c.table.copied(part.name)
		*part.to = copied
		if part.from == nil {
			continue
		}
		sent := rowsSent{into: "insert into " + copied.sql + " "}
		for _, column := range part.from.columns {
			sent.from = append(sent.from, c.returning(sqlExpression{sql: column.sql, typ: column.typ}))
		}
		c.sent = append(c.sent, sent)
	}
	if event == "INSERT" {
		for _, column := range c.table.columns {
			c.fires.columns = append(c.fires.columns, column.name)
		}
	}
}

// setColumns notes which columns an UPDATE sets.
func (c *change) setColumns(assignments []assignment) {
	if c.fires == nil {
		return
	}
	for _, a := range assignments {
		if a.column != nil {
			c.fires.columns = append(c.fires.columns, a.column.name)
		}
	}
}

// makeTables makes inserted and deleted, empty.
func (t *Translator) makeTables(ctx context.Context, g *firing) *fault.Error {
	made := []*relation{g.inserted, g.deleted}
	if g.isInstead {
		made = made[1:]
		if err := t.makeInserted(ctx, g); err != nil {
			return err
		}
	}
	for _, r := range made {
		err := t.run(ctx, g.event, "drop table if exists "+r.sql,
			"create temporary table "+quote(r.name)+" as select * from "+g.table.sql+" with no data")
		if err != nil {
			return err
		}
	}
	return nil
}

// Fires says that the statement needs a transaction around it and its triggers, or around it and what is read before it.
func (c *change) Fires() bool {
	return c.isPreviewed || c.fires != nil || c.before != nil || c.gathered != nil && c.insert.table.hasTrigger("INSERT")
}

// fire runs the triggers of a change of so many rows, also of none.
func (t *Translator) fire(ctx context.Context, g *firing, rows int64) *fault.Error {
	if t.host == nil {
		return expression.Unsupported("a trigger")
	}
	outer, changed := t.firing, t.changed
	t.firing = map[string]*relation{"inserted": g.inserted, "deleted": g.deleted}
	t.changed = g
	runs := t.firingOn
	if g.isInstead {
		runs = t.insteadOn
	}
	ran := runs[g.table.oid]
	runs[g.table.oid] = true
	t.depth++
	defer func() {
		t.depth--
		t.firing, t.changed = outer, changed
		runs[g.table.oid] = ran
		t.generation++ // what the body compiled fires no trigger of this table
	}()
	for _, r := range g.triggers {
		t.generation++ // the body sees other tables than before
		fired := interpreter.Fired{Name: r.name, Body: r.node.Body, Options: r.node.Options, Author: r.author, Rows: rows}
		if err := t.host.Fire(ctx, fired); err != nil {
			return err
		}
	}
	return nil
}

// A Host runs the bodies of triggers and functions; the interpreter's session is one.
type Host interface {
	Fire(ctx context.Context, fired interpreter.Fired) *fault.Error
	// Call runs a scalar function. CallTable runs one of several statements; read gives the rows of the table that it fills.
	Call(ctx context.Context, node *ast.Function, result value.Type, arguments []value.Value) (value.Value, *fault.Error)
	CallTable(ctx context.Context, node *ast.Function, arguments []value.Value, read func(value.Value) ([][]string, *fault.Error)) (
		[][]string, *fault.Error)
	// RowLimit gives the number of SET ROWCOUNT; 0 where all rows count.
	RowLimit() int64
}

// SetHost gives the session that runs triggers and functions.
func (t *Translator) SetHost(h Host) { t.host = h }

// updated is UPDATE(column) in a trigger: whether the statement names the column.
func (t *Translator) updated(column string) *expression.Condition {
	return &expression.Condition{Evaluate: func(*expression.Frame) (expression.Truth, *fault.Error) {
		if t.changed != nil && slices.ContainsFunc(t.changed.columns, func(name string) bool { return strings.EqualFold(name, column) }) {
			return expression.True, nil
		}
		return expression.False, nil
	}}
}

// columnsUpdated is COLUMNS_UPDATED(): a bit for each column, the first in the lowest bit of the first byte.
func (t *Translator) columnsUpdated() value.Value {
	if t.changed == nil {
		return value.Null(value.Sized(value.VarBinary, 128))
	}
	bits := make([]byte, (len(t.changed.table.columns)+7)/8)
	for i, c := range t.changed.table.columns {
		if slices.ContainsFunc(t.changed.columns, func(name string) bool { return strings.EqualFold(name, c.name) }) {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return value.BytesOf(value.Sized(value.VarBinary, 128), string(bits))
}

// withTables runs a change that fires triggers: their tables are made before it.
func (c *change) withTables(ctx context.Context, f *expression.Frame, sink session.Sink) (int64, *fault.Error) {
	if err := c.builder.translator.makeTables(ctx, c.fires); err != nil {
		return 0, err
	}
	return c.run(ctx, f, sink)
}
