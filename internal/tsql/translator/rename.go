package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
)

// rename compiles what sp_rename does. Texts of procedures, functions and triggers keep the old name, as in SQL Server; a view of
// PostgreSQL goes on reading the table. Of a procedure, whose text the interpreter keeps, it checks the new name alone.
func (t *Translator) rename(node *ast.Rename) interpreter.Statement {
	return &definitionStatement{run: func(ctx context.Context, _ *expression.Frame) *fault.Error {
		defer t.forget()
		statements, err := t.renaming(ctx, node)
		if err == nil {
			err = t.run(ctx, "sp_rename", statements...)
		}
		switch {
		case err == nil || err.Number != 229:
			return err
		case node.Kind == "COLUMN" || node.Kind == "INDEX" || node.Kind == "USERDATATYPE": // what a role may not alter is not there for it
			return fault.New(15248, node.Kind)
		}
		return t.notNamed(node)
	}}
}

// notNamed is the error of an object that is not there.
func (t *Translator) notNamed(node *ast.Rename) *fault.Error {
	kind := node.Kind
	if kind == "" {
		kind = "(null)"
	}
	return fault.New(15225, node.Written, t.database, kind)
}

// renaming gives the statements that rename.
func (t *Translator) renaming(ctx context.Context, node *ast.Rename) ([]string, *fault.Error) {
	if len(node.NewName) > maxName {
		return nil, expression.Unsupported("a name of more than 63 bytes")
	}
	if database := node.Name.Database(); database != "" && node.Kind != "COLUMN" && node.Kind != "INDEX" && !t.isCurrent(ctx, database) {
		return nil, fault.New(15333, database)
	}
	switch node.Kind {
	case "COLUMN":
		return t.renameColumn(ctx, node)
	case "INDEX":
		return t.renameIndex(ctx, node)
	case "USERDATATYPE":
		return t.renameType(ctx, node)
	case "PROCEDURE":
		return nil, t.isFree(ctx, node.Name, node.NewName)
	case "", "OBJECT":
		return t.renameObject(ctx, node)
	}
	return nil, fault.New(15249, node.Kind)
}

// renamedTable gives the table of a column or an index that is named behind it. Error 15248 where there is none.
func (t *Translator) renamedTable(ctx context.Context, node *ast.Rename) (*relation, *fault.Error) {
	wrong := fault.New(15248, node.Kind)
	count := len(node.Name.Parts)
	if count < 2 {
		return nil, wrong
	}
	r, err := t.relationOf(ctx, ast.Name{Parts: node.Name.Parts[:count-1]})
	if err != nil || r.kind != 'r' && r.kind != 'p' || strings.HasPrefix(r.schema, "pg_temp") {
		return nil, wrong
	}
	return r, nil
}

// enforcedQuery asks whether a check or a computed column reads a column.
const enforcedQuery = `select (exists (
  select from pg_catalog.pg_constraint as k
  where k.conrelid = $1::text::oid and k.contype = 'c' and $2::text::smallint = any (k.conkey) and k.conname !~ '^(length|range) of '
) or exists (
  select from pg_catalog.pg_depend as p join pg_catalog.pg_attrdef as d on d.oid = p.objid
  where p.classid = 'pg_catalog.pg_attrdef'::regclass and p.refclassid = 'pg_catalog.pg_class'::regclass
    and p.refobjid = $1::text::oid and p.refobjsubid = $2::text::integer and d.adnum <> $2::text::smallint
))::text`

func (t *Translator) renameColumn(ctx context.Context, node *ast.Rename) ([]string, *fault.Error) {
	r, err := t.renamedTable(ctx, node)
	if err != nil {
		return nil, err
	}
	c := r.find(node.Name.Object())
	if c == nil {
		return nil, fault.New(15248, node.Kind)
	}
	if other := r.find(node.NewName); other != nil && other != c {
		return nil, fault.New(15335, node.NewName, node.Kind)
	}
	isEnforced := false
	err = t.rows(ctx, enforcedQuery, []string{itoa(int(r.oid)), itoa(c.number)}, func(row []string) { isEnforced = row[0] == "true" })
	switch {
	case err != nil:
		return nil, err
	case isEnforced:
		return nil, fault.New(15336, node.Written)
	}
	statements := []string{"alter table " + r.sql + " rename column " + quote(c.name) + " to " + quote(node.NewName)}
	for _, prefix := range []string{lengthPrefix, rangePrefix} { // Parley's own checks name their column
		if old := shortened(prefix + c.name); r.constraints[old].kind != 0 {
			statements = append(statements, "alter table "+r.sql+" rename constraint "+quote(old)+" to "+quote(shortened(prefix+node.NewName)))
		}
	}
	return statements, nil
}

// indexesQuery has the indexes of a table by the names that SQL Server would show.
const indexesQuery = `select c.relname, split_part(c.relname, chr(160), 1), (strpos(c.relname, chr(160)) > 0)::text
from pg_catalog.pg_index as i join pg_catalog.pg_class as c on c.oid = i.indexrelid where i.indrelid = $1::text::oid`

func (t *Translator) renameIndex(ctx context.Context, node *ast.Rename) ([]string, *fault.Error) {
	r, err := t.renamedTable(ctx, node)
	if err != nil {
		return nil, err
	}
	found, isTaken := "", false
	become := node.NewName
	err = t.rows(ctx, indexesQuery, []string{itoa(int(r.oid))}, func(row []string) {
		isSame := strings.EqualFold(row[1], node.Name.Object()) || row[0] == indexName(r, node.Name.Object())
		switch {
		case isSame && row[2] == "true":
			found, become = row[0], indexName(r, node.NewName)
		case isSame:
			found = row[0]
		case strings.EqualFold(row[1], node.NewName):
			isTaken = true
		}
	})
	switch {
	case err != nil:
		return nil, err
	case found == "":
		return nil, fault.New(15248, node.Kind)
	case isTaken:
		return nil, fault.New(15335, node.NewName, node.Kind)
	}
	return []string{"alter index " + quote(r.schema) + "." + quote(found) + " rename to " + quote(become)}, nil
}

// namedQuery finds an object of a schema, and how SQL renames it.
var namedQuery = `select o.type, case when o.type in ('U', 'V') then format('alter %s %I.%I rename to ',
    case o.type when 'U' then 'table' else 'view' end, n.nspname, o.name)
  when o.type in ('PK', 'UQ', 'F', 'C')
    then format('alter table %s rename constraint %I to ', o.parent_object_id::oid::regclass, o.name)
  when o.type in ('FN', 'IF', 'TF') then format('alter function %I.%I() rename to ', n.nspname, o.name)
  when o.type = 'TR' then format('alter trigger %I on %s rename to ', o.name, o.parent_object_id::oid::regclass)
  when o.type = 'SN' then format('alter type %I.%I rename to ', n.nspname, o.name)
  when o.type = 'SO' then format('alter sequence %I.%I rename to ', n.nspname, o.name) end, n.nspname, o.name
from (
  select x.type::text, x.name::text collate "default", x.schema_id, x.parent_object_id from (` + objectsQuery + `) as x
  union all
  select 'SO', c.relname::text collate "default", c.relnamespace::integer, 0
  from pg_catalog.pg_class as c where c.relkind = 'S' and not exists (
    select from pg_catalog.pg_depend as d where d.objid = c.oid and d.classid = 'pg_catalog.pg_class'::regclass and d.deptype in ('a', 'i'))
) as o (type, name, schema_id, parent_object_id) join pg_catalog.pg_namespace as n on n.oid = o.schema_id::oid
where n.oid = ` + connection.SchemaNamed("$1::text") + ` and lower(o.name) = lower($2::text)
order by o.name = $2::text desc limit 1`

// schemaName gives the schema that a name of an object has, or dbo.
func schemaName(name ast.Name) string {
	if schema := name.Schema(); schema != "" {
		return schema
	}
	return "dbo"
}

// isFree gives error 15335 where an object of the same schema has the new name.
func (t *Translator) isFree(ctx context.Context, name ast.Name, newName string) *fault.Error {
	if strings.EqualFold(name.Object(), newName) {
		return nil
	}
	isTaken := false
	err := t.rows(ctx, namedQuery, []string{schemaName(name), newName}, func([]string) { isTaken = true })
	if err == nil && isTaken {
		err = fault.New(15335, newName, "object")
	}
	return err
}

func (t *Translator) renameObject(ctx context.Context, node *ast.Rename) ([]string, *fault.Error) {
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	kind, command, schema, found := "", "", "", ""
	err := t.rows(ctx, namedQuery, []string{schemaName(node.Name), node.Name.Object()}, func(row []string) {
		kind, command, schema, found = row[0], row[1], row[2], row[3]
	})
	switch {
	case err != nil:
		return nil, err
	case kind == "" || len(node.Name.Parts) > 2 && node.Name.Database() == "":
		return nil, t.notNamed(node)
	case command == "":
		return nil, expression.Unsupported("sp_rename of a queue")
	}
	if err := t.isFree(ctx, node.Name, node.NewName); err != nil {
		return nil, err
	}
	statements := []string{command + quote(node.NewName)}
	if kind != "U" {
		return statements, nil
	}
	r, err := t.lookUp(ctx, schema, found)
	if err != nil || r == nil {
		return nil, err
	}
	// The names of indexes in the database end in the table's.
	renamed := *r
	renamed.name = node.NewName
	isCut := false
	err = t.rows(ctx, indexesQuery, []string{itoa(int(r.oid))}, func(row []string) {
		switch {
		case row[2] == "true" && row[0] == indexName(r, row[1]):
			statements = append(statements, "alter index "+quote(schema)+"."+quote(row[0])+" rename to "+quote(indexName(&renamed, row[1])))
		case row[2] == "true":
			isCut = true
		}
	})
	if err == nil && isCut {
		err = expression.Unsupported("sp_rename of a table whose index has a long name")
	}
	return statements, err
}

var aliasTypeQuery = `select pg_catalog.format('alter %s %I.%I rename to ', case t.typtype when 'd' then 'domain' else 'type' end,
    n.nspname, t.typname)
from pg_catalog.pg_type as t join pg_catalog.pg_namespace as n on n.oid = t.typnamespace
where n.oid = ` + connection.SchemaNamed("$1::text") + ` and lower(t.typname) = lower($2::text) and t.typtype in ('d', 'c')
  and pg_catalog.obj_description(t.oid, 'pg_type') ~* '^\s*create'
order by t.typname = $2::text desc limit 1`

func (t *Translator) renameType(ctx context.Context, node *ast.Rename) ([]string, *fault.Error) {
	command, isTaken := "", false
	err := t.rows(ctx, aliasTypeQuery, []string{schemaName(node.Name), node.Name.Object()}, func(row []string) { command = row[0] })
	if err == nil {
		err = t.rows(ctx, aliasTypeQuery, []string{schemaName(node.Name), node.NewName}, func([]string) { isTaken = true })
	}
	switch {
	case err != nil:
		return nil, err
	case command == "":
		return nil, fault.New(15248, node.Kind)
	case isTaken:
		return nil, fault.New(15335, node.NewName, node.Kind)
	}
	return []string{command + quote(node.NewName)}, nil
}
