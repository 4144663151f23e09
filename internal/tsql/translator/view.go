package translator

import (
	"context"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
)

// createView compiles CREATE, ALTER and CREATE OR ALTER VIEW to a view of PostgreSQL, which reads its tables with the rights of its owner.
// ALTER keeps the rights on the view. PostgreSQL keeps them itself where the view keeps its columns; otherwise the view is made anew.
func (t *Translator) createView(node *ast.View) interpreter.Statement {
	return t.defines(node.Verb+" VIEW", func(ctx context.Context) ([]string, *fault.Error) {
		existing, err := t.relationOf(ctx, node.Name)
		switch {
		case err != nil && err.Number != 208:
			return nil, err
		case existing == nil && node.Verb == "ALTER":
			return nil, fault.New(208, node.Name.String())
		case existing != nil && (node.Verb == "CREATE" || existing.kind != 'v'):
			return nil, fault.New(2714, node.Name.Object())
		case existing != nil:
			delete(t.relations, strings.ToLower(existing.schema+"."+existing.name))
			return t.viewStatements(ctx, node, existing.sql, existing)
		}
		schema, err := t.schemaOf(ctx, node.Name.Schema())
		if err != nil {
			return nil, err
		}
		return t.viewStatements(ctx, node, quote(schema)+"."+quote(node.Name.Object()), nil)
	})
}

// viewStatements writes the statements that make a view, or replace an existing one.
func (t *Translator) viewStatements(ctx context.Context, node *ast.View, name string, existing *relation) ([]string, *fault.Error) {
	b := t.builder(ctx, noVariables{t})
	b.isDefinition = true
	prefix, done, err := b.with(node.With)
	defer done()
	if err != nil {
		return nil, err
	}
	sql, columns, err := b.derived(node.Query)
	if err != nil {
		return nil, err
	}
	columns = namedColumns(columns, node.Columns)
	var written []string
	for i, c := range columns {
		if c.name == "" {
			return nil, fault.New(4511, i+1)
		}
		written = append(written, c.name)
	}
	var statements, after []string
	create := "create view "
	switch {
	case existing == nil:
	case keepsColumns(existing, columns):
		create = "create or replace view "
	default:
		if after, err = t.viewRights(ctx, existing, columns); err != nil {
			return nil, err
		}
		statements = append(statements, "drop view "+name)
		for _, g := range existing.triggers { // they go with the view of PostgreSQL
			after = append(after, existing.triggerStatements(g.name, g.node)...)
		}
	}
	statements = append(statements, create+name+" ("+quoteAll(written)+") as "+prefix+sql)
	for _, c := range columns {
		statements = append(statements, "comment on column "+name+"."+quote(c.name)+" is "+quoteText(c.typ.String()))
	}
	statements = append(statements, "comment on view "+name+" is "+quoteText(node.Text))
	return append(statements, after...), nil
}

// keepsColumns reports whether the columns of a view stay, and others come behind them at most.
func keepsColumns(existing *relation, columns []sourceColumn) bool {
	if len(columns) < len(existing.columns) {
		return false
	}
	for i, c := range existing.columns {
		if c.name != columns[i].name || c.typ != columns[i].typ {
			return false
		}
	}
	return true
}

// viewRightsQuery writes the statements that give the view $2 the owner and the rights of $1, each with the column that it is about.
const viewRightsQuery = `select '', format('alter view %s owner to %I', $2::text, pg_get_userbyid(c.relowner))
from pg_catalog.pg_class as c where c.oid = $1::text::oid and pg_get_userbyid(c.relowner) <> current_user
union all
select r.attname, format('grant %s%s on %s to %s%s', a.privilege_type, ' (' || quote_ident(nullif(r.attname, '')) || ')', $2::text,
  case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end,
  case when a.is_grantable then ' with grant option' else '' end)
from (
  select ''::text as attname, c.relacl as acl, c.relowner from pg_catalog.pg_class as c where c.oid = $1::text::oid
  union all
  select a.attname::text, a.attacl, c.relowner from pg_catalog.pg_attribute as a join pg_catalog.pg_class as c on c.oid = a.attrelid
  where c.oid = $1::text::oid and a.attacl is not null
) as r cross join lateral aclexplode(r.acl) as a
where a.grantee <> r.relowner`

// viewRights gives the statements that give a view that is made anew its owner and its rights back, but those on columns that are gone.
func (t *Translator) viewRights(ctx context.Context, view *relation, columns []sourceColumn) ([]string, *fault.Error) {
	var statements []string
	err := t.rows(ctx, viewRightsQuery, []string{itoa(int(view.oid)), view.sql}, func(row []string) {
		isLeft := func(c sourceColumn) bool { return c.name == row[0] }
		if row[0] == "" || slices.ContainsFunc(columns, isLeft) {
			statements = append(statements, row[1])
		}
	})
	return statements, err
}

// systemView gives a view of the system as a query; nil for a name that is none of them.
func (t *Translator) systemView(ctx context.Context, schema, name string) (*relation, *fault.Error) {
	key := strings.ToLower(schema + "." + name)
	v, known := systemViews[key]
	if !known {
		if isSystemSchema(schema) {
			return nil, expression.Unsupported("the view " + schema + "." + name)
		}
		return nil, nil
	}
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	sql := v.sql
	if v.isOfBroker && !t.hasBroker {
		sql = v.empty()
	}
	r := &relation{schema: strings.ToLower(schema), name: name, kind: 's', sql: "(" + sql + ")"}
	for i, c := range v.columns {
		r.columns = append(r.columns, &column{name: c.name, typ: c.typ, isNullable: true, number: i + 1})
	}
	return r, nil
}

func isSystemSchema(schema string) bool {
	return strings.EqualFold(schema, "sys") || strings.EqualFold(schema, "INFORMATION_SCHEMA")
}

// serverViews are views of the server, which are the same in each database.
var serverViews = map[string]bool{
	"databases": true, "endpoints": true, "service_broker_endpoints": true, "server_principals": true, "sql_logins": true,
	"sysdatabases": true, "syslogins": true,
}

// isServerView reports whether master.schema.name may be read in each database.
func isServerView(schema, name string) bool {
	lower := strings.ToLower(name)
	isThere := isSystemSchema(schema) || schema == "" || strings.EqualFold(schema, "dbo")
	return isThere && (serverViews[lower] || strings.HasPrefix(lower, "dm_"))
}
