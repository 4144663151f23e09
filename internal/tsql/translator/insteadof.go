package translator

import (
	"context"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// insteadMark ends the names of inserted and deleted of an INSTEAD OF trigger: what its body changes may fire others on the same table.
const insteadMark = "\u00a0instead"

func (g *trigger) isInsteadOf() bool { return g.node.Timing == "INSTEAD OF" }

// insteadOf gives the trigger that runs in place of a change, nil where there is none. The changes of its own body change the table. Those
// of a view cannot: PostgreSQL leaves the view to the trigger.
func (t *Translator) insteadOf(r *relation, event string) (*trigger, *fault.Error) {
	at := slices.IndexFunc(r.triggers, func(g *trigger) bool {
		return g.isEnabled && g.isInsteadOf() && slices.Contains(g.node.Events, event)
	})
	switch {
	case at < 0:
		return nil, nil //nolint:nilnil // no trigger is no error
	case !t.insteadOn[r.oid]:
		return r.triggers[at], nil
	case r.kind == 'v':
		return nil, expression.Unsupported(event + " of a view in its own INSTEAD OF trigger")
	}
	return nil, nil //nolint:nilnil // the body of the trigger runs
}

// hasInsteadOf reports whether a trigger would run in place of a change, were it not running already.
func (r *relation) hasInsteadOf(event string) bool {
	return slices.ContainsFunc(r.triggers, func(g *trigger) bool {
		return g.isEnabled && g.isInsteadOf() && slices.Contains(g.node.Events, event)
	})
}

// takesPlace has a trigger run in place of the change: the statement fills inserted and deleted, and changes nothing else. A source that
// is nil has no rows, or the statement itself inserts them.
func (c *change) takesPlace(g *trigger, event string, inserted, deleted *source) {
	c.isInstead = true
	c.fires = &firing{table: c.table, event: event, triggers: []*trigger{g}, isInstead: true}
	c.fires.inserted = c.table.copied("inserted" + insteadMark)
	c.fires.deleted = c.table.copied("deleted" + insteadMark)
	for _, part := range []struct {
		from *source
		to   *relation
	}{{inserted, c.fires.inserted}, {deleted, c.fires.deleted}} {
		if part.from == nil {
			continue
		}
		var names []string
		sent := rowsSent{}
		for i, column := range part.from.columns {
			if part.from == inserted && c.table.columns[i].isComputed { // inserted computes it of the new values
				continue
			}
			names = append(names, column.name)
			sent.from = append(sent.from, c.returning(sqlExpression{sql: column.sql, typ: column.typ}))
		}
		sent.into = "insert into " + part.to.sql + " (" + quoteAll(names) + ") "
		c.sent = append(c.sent, sent)
	}
	if event == "INSERT" {
		for _, column := range c.table.columns {
			c.fires.columns = append(c.fires.columns, column.name)
		}
	}
}

// copied gives the temporary table of a name that has the columns of a relation.
func (r *relation) copied(name string) *relation {
	copied := *r
	copied.schema, copied.name, copied.key, copied.triggers, copied.kind = "pg_temp", name+"\u00a0"+itoa(int(r.oid)), nil, nil, 'r'
	copied.sql = "pg_temp." + quote(copied.name)
	return &copied
}

// defaultsQuery has the server write the columns of inserted of an INSTEAD OF trigger: with defaults and computed columns, because the rows
// are those that the table would get; without constraints, which the trigger's own changes meet. A number of IDENTITY is 0.
const defaultsQuery = `select string_agg(pg_catalog.format('%I %s%s%s', a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
    (select pg_catalog.format(' collate %I.%I', n.nspname, l.collname)
      from pg_catalog.pg_collation as l join pg_catalog.pg_namespace as n on n.oid = l.collnamespace
      where l.oid = a.attcollation and n.nspname <> 'pg_catalog'),
    case when a.attgenerated <> '' then ' generated always as (' || pg_catalog.pg_get_expr(d.adbin, d.adrelid) || ') stored'
      when a.attidentity <> '' then ' default 0'
      when d.oid is not null then ' default ' || pg_catalog.pg_get_expr(d.adbin, d.adrelid) end), ', ' order by a.attnum)
from pg_catalog.pg_attribute as a
left join pg_catalog.pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = $1::text::oid and a.attnum > 0 and not a.attisdropped`

// makeInserted makes inserted of an INSTEAD OF trigger, empty.
func (t *Translator) makeInserted(ctx context.Context, g *firing) *fault.Error {
	columns := ""
	if err := t.rows(ctx, defaultsQuery, []string{itoa(int(g.table.oid))}, func(row []string) { columns = row[0] }); err != nil {
		return err
	}
	return t.run(ctx, g.event, "drop table if exists "+g.inserted.sql,
		"create temporary table "+quote(g.inserted.name)+" ("+columns+")")
}

// updateInstead gives the rows that a query finds to the trigger, with their old and their new values.
func (g *targeting) updateInstead(
	c *change, node *ast.Update, assignments []assignment, instead *trigger,
) (interpreter.Statement, *fault.Error) {
	var selected []string
	values := map[int]string{}
	assigned := map[*column]string{}
	for i, a := range assignments {
		if a.value.sql == "default" {
			if a.column.typ.Kind == value.RowVersion {
				continue
			}
			return nil, expression.Unsupported("SET " + a.column.name + " = DEFAULT with an INSTEAD OF trigger")
		}
		values[i] = foundRows + ".v" + itoa(i+1)
		selected = append(selected, a.value.sql+" as v"+itoa(i+1))
		if a.column != nil {
			assigned[a.column] = values[i]
		}
	}
	deleted, inserted := &source{alias: "deleted", table: g.table, isHidden: true}, &source{alias: "inserted", table: g.table, isHidden: true}
	for i, column := range g.table.columns {
		old := sourceColumn{name: column.name, typ: column.typ, sql: foundRows + ".o" + itoa(i+1)}
		selected = append(selected, g.source.reading+"."+quote(column.name)+" as o"+itoa(i+1))
		deleted.columns = append(deleted.columns, old)
		if sql, is := assigned[column]; is {
			old.sql = sql
		}
		inserted.columns = append(inserted.columns, old)
	}
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
	c.takesPlace(instead, "UPDATE", inserted, deleted)
	c.setColumns(assignments)
	c.write(g.prefix, "(select "+g.once()+strings.Join(selected, ", ")+" from "+g.sources()+g.chosen+") as "+foundRows)
	return c, nil
}

// deleteInstead gives the rows that a query finds to the trigger.
func (g *targeting) deleteInstead(c *change, node *ast.Delete, instead *trigger) (interpreter.Statement, *fault.Error) {
	var selected []string
	deleted := &source{alias: "deleted", table: g.table, isHidden: true}
	for i, column := range g.table.columns {
		selected = append(selected, g.source.reading+"."+quote(column.name)+" as o"+itoa(i+1))
		deleted.columns = append(deleted.columns, sourceColumn{name: column.name, typ: column.typ, sql: foundRows + ".o" + itoa(i+1)})
	}
	if err := c.returns(node.Output, []*source{deleted}); err != nil {
		return nil, err
	}
	c.takesPlace(instead, "DELETE", nil, deleted)
	c.write(g.prefix, "(select "+g.once()+strings.Join(selected, ", ")+" from "+g.sources()+g.chosen+") as "+foundRows)
	return c, nil
}

// once has each row of a table stand once, however many rows of other tables it meets.
func (g *targeting) once() string {
	if g.from == "" || g.table.kind == 'v' {
		return ""
	}
	return "distinct on (" + g.source.reading + ".tableoid, " + g.source.reading + ".ctid) "
}

// refusesInstead gives the errors of an INSTEAD OF trigger: 2111 for a second one of an event, 2113 for a table whose foreign key cascades.
func (t *Translator) refusesInstead(ctx context.Context, node *ast.Trigger, r *relation) *fault.Error {
	kind := map[bool]string{true: "view", false: "table"}[r.kind == 'v']
	verb := map[bool]string{true: "alter", false: "create"}[node.Verb == "ALTER"]
	for _, known := range r.triggers {
		if !known.isInsteadOf() || strings.EqualFold(known.name, node.Name.Object()) {
			continue
		}
		for _, event := range node.Events {
			if slices.Contains(known.node.Events, event) {
				return fault.New(2111, verb, node.Name.String(), kind, node.Table.String(), event)
			}
		}
	}
	cascades := false
	err := t.rows(ctx, `select (exists (select from pg_catalog.pg_constraint as k where k.conrelid = $1::text::oid and k.contype = 'f'
  and ($2::text::boolean and k.confdeltype in ('c', 'n', 'd') or $3::text::boolean and k.confupdtype in ('c', 'n', 'd'))))::text`,
		[]string{itoa(int(r.oid)), boolText(slices.Contains(node.Events, "DELETE")), boolText(slices.Contains(node.Events, "UPDATE"))},
		func(row []string) { cascades = row[0] == "true" })
	if err == nil && cascades {
		return fault.New(2113, node.Name.String(), node.Table.String())
	}
	return err
}

func boolText(is bool) string {
	if is {
		return "true"
	}
	return "false"
}
