package module

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
)

// A Store keeps procedures in the database of a connection.
type Store struct{ connection *connection.Connection }

// New gives the procedures of a connection's database.
func New(c *connection.Connection) *Store { return &Store{c} }

// found is the procedure of PostgreSQL that holds a module. Its text is left out where the version is the one that the caller has.
var found = `select v.version, case when v.version = $3 then null else p.prosrc end, n.nspname,
  pg_catalog.has_function_privilege(p.oid, 'execute'), pg_catalog.pg_get_userbyid(p.proowner), current_user
from pg_catalog.pg_proc as p
join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
cross join lateral (select pg_catalog.concat(p.oid, ' ', p.xmin)) as v (version)
where n.oid = ` + connection.SchemaNamed("$1::text") + ` and p.proname = $2 and p.prokind = 'p' and p.pronargs = 0
  and pg_catalog.starts_with(p.prosrc, '-- T-SQL ')
limit 1`

// Find gives a procedure, nil where there is none. Its text is empty where version is the one that the caller has.
func (s *Store) Find(ctx context.Context, schema, name, version string) (*interpreter.Kept, *fault.Error) {
	var kept *interpreter.Kept
	_, err := s.connection.Run(ctx, connection.Statement{
		SQL: found, Parameters: [][]byte{[]byte(schema), []byte(NameOf(name)), []byte(version)},
		Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
			kept = &interpreter.Kept{
				Schema: string(row[2]), Name: name, Version: string(row[0]), MayExecute: string(row[3]) == "t", Owner: string(row[4]),
				User: string(row[5]),
			}
			if row[1] == nil {
				return nil
			}
			h, text, is := textOf(string(row[1]))
			if is {
				kept.Name, kept.Text, kept.QuotedIdentifier = h.Name, text, h.Quoted
			}
			return nil
		},
	})
	if err != nil {
		return nil, connection.Fault(err, "EXECUTE")
	}
	return kept, nil
}

// place finds the schema and says whether an object has the name: r for a table or view, p for a procedure of PostgreSQL.
var place = `select n.nspname, coalesce(
  (select 'r' from pg_catalog.pg_class as c
    where c.relnamespace = n.oid and pg_catalog.lower(c.relname) = pg_catalog.lower($2) and c.relkind in ('r', 'v', 'S', 'p') limit 1),
  (select 'p' from pg_catalog.pg_proc as p
    where p.pronamespace = n.oid and p.proname = $3 and not pg_catalog.starts_with(p.prosrc, '-- T-SQL ') limit 1), '')
from pg_catalog.pg_namespace as n where n.oid = ` + connection.SchemaNamed("$1::text")

// creation writes the statements that create a procedure, or replace one, as one of PL/pgSQL: the server quotes what it is given.
const creation = `select pg_catalog.format('do %L', pg_catalog.format(E'begin\n  execute %L;\n  execute %L;\nend',
  pg_catalog.format('create or replace procedure %I.%I() language plpgsql as %L', $1::text, $2::text, $3::text),
  case when $4::boolean then pg_catalog.format('revoke execute on procedure %I.%I() from public', $1::text, $2::text) else 'select' end))`

// Create keeps a procedure in place of the one of its name, if there is one. Its owner alone may execute a new one.
func (s *Store) Create(ctx context.Context, kept interpreter.Kept, isNew bool) *fault.Error {
	schema, err := s.schema(ctx, kept)
	if err != nil {
		return err
	}
	body, bad := bodyOf(header{Schema: schema, Name: kept.Name, Quoted: kept.QuotedIdentifier}, kept.Text)
	if bad != nil {
		return connection.Fault(bad, "CREATE PROCEDURE")
	}
	fresh := "false"
	if isNew {
		fresh = "true"
	}
	return s.written(ctx, "CREATE PROCEDURE", creation, schema, NameOf(kept.Name), body, fresh)
}

// schema gives the schema as the database spells it. Schema dbo is made where it is missing.
func (s *Store) schema(ctx context.Context, kept interpreter.Kept) (string, *fault.Error) {
	schema, taken := "", ""
	look := connection.Statement{
		SQL: place, Parameters: [][]byte{[]byte(kept.Schema), []byte(kept.Name), []byte(NameOf(kept.Name))},
		Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
			schema, taken = string(row[0]), string(row[1])
			return nil
		},
	}
	if _, err := s.connection.Run(ctx, look); err != nil {
		return "", connection.Fault(err, "CREATE PROCEDURE")
	}
	switch {
	case taken != "":
		return "", fault.New(2714, kept.Name)
	case schema != "":
		return schema, nil
	case !strings.EqualFold(kept.Schema, "dbo"):
		return "", fault.New(2760, kept.Schema)
	}
	if err := s.connection.Alone(ctx, "create schema if not exists dbo"); err != nil {
		return "", connection.Fault(err, "CREATE SCHEMA")
	}
	return "dbo", nil
}

// renaming gives the procedure of PostgreSQL another name, and its first line too.
const renaming = `select pg_catalog.format('do %L', pg_catalog.format(E'begin\n  execute %L;\n  execute %L;\nend',
  pg_catalog.format('alter procedure %I.%I() rename to %I', $1::text, $2::text, $3::text),
  pg_catalog.format('create or replace procedure %I.%I() language plpgsql as %L', $1::text, $3::text, $4::text)))`

// Rename gives a procedure another name. Rights on it stay, and its text keeps the old name, as in SQL Server.
func (s *Store) Rename(ctx context.Context, kept interpreter.Kept, newName string) *fault.Error {
	body, bad := bodyOf(header{Schema: kept.Schema, Name: newName, Quoted: kept.QuotedIdentifier}, kept.Text)
	if bad != nil {
		return connection.Fault(bad, "sp_rename")
	}
	return s.written(ctx, "sp_rename", renaming, kept.Schema, NameOf(kept.Name), NameOf(newName), body)
}

const removal = `select pg_catalog.format('drop procedure %I.%I()', $1::text, $2::text)`

// Drop removes a procedure; error 3701 where there is none, or none that the role may drop.
func (s *Store) Drop(ctx context.Context, schema, name string) *fault.Error {
	kept, err := s.Find(ctx, schema, name, "")
	if err != nil {
		return err
	}
	if kept == nil {
		return fault.New(3701, "drop", "procedure", name)
	}
	err = s.written(ctx, "DROP PROCEDURE", removal, kept.Schema, NameOf(name))
	if err != nil && err.Number == 229 {
		return fault.New(3701, "drop", "procedure", name)
	}
	return err
}

// written has the server write a statement from names and texts, and runs it.
func (s *Store) written(ctx context.Context, verb, writer string, arguments ...string) *fault.Error {
	parameters := make([][]byte, len(arguments))
	for i, a := range arguments {
		parameters[i] = []byte(a)
	}
	text := ""
	ask := connection.Statement{SQL: writer, Parameters: parameters, Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
		text = string(row[0])
		return nil
	}}
	if _, err := s.connection.Run(ctx, ask); err != nil {
		return connection.Fault(err, verb)
	}
	if _, err := s.connection.Run(ctx, connection.Statement{SQL: text}); err != nil {
		return connection.Fault(err, verb)
	}
	return nil
}
