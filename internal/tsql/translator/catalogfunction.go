package translator

import (
	"context"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/parser"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// catalogQueries answer functions of the catalog. The first argument is the name or the number of an object.
var catalogQueries = map[string]struct {
	result value.Type
	letter string
	sql    string
}{
	"OBJECT_NAME": {sysname, "b?a", "select o.name::text from (" + objectsQuery + ") as o where o.object_id = $1::text::bigint"},
	"OBJECT_SCHEMA_NAME": {
		sysname, "b?a", "select n.nspname from (" + objectsQuery + ") as o" +
			" join pg_catalog.pg_namespace as n on n.oid = o.schema_id where o.object_id = $1::text::bigint",
	},
	"SCHEMA_NAME": {
		sysname, "?b", "select nspname from pg_catalog.pg_namespace" +
			" where oid = coalesce(nullif($1::text, '')::oid, 'dbo'::regnamespace)",
	},
	"SCHEMA_ID": {
		value.Of(value.Int), "?t", "select s.oid::text from pg_catalog.pg_namespace as s" +
			" where s.oid = " + connection.SchemaNamed("coalesce(nullif($1::text, ''), 'dbo')"),
	},
	"TYPE_ID": {
		value.Of(value.Int), "t", "select t.id::text from (" + typesQuery + ") as t (name, id)" +
			" where t.name = lower((parse_ident($1::text, false))[array_length(parse_ident($1::text, false), 1)])" +
			" union all select u.id::text from (" + userTypes + `) as u
where lower(u.name) = lower((parse_ident($1::text, false))[array_length(parse_ident($1::text, false), 1)])
  and u.schema_name::text collate "C" = (select h.nspname::text from pg_catalog.pg_namespace as h where h.oid = ` +
			connection.SchemaNamed(schemaOfFirst) + `)`,
	},
}

// catalogFunction gives a function of the catalog.
func (t *Translator) catalogFunction(name string) (*function.Function, bool) {
	if name == "OBJECT_ID" {
		return &function.Function{
			Name: name, Parameters: "t?t", IsVolatile: true,
			Result: func([]function.Argument) (value.Type, *fault.Error) { return value.Of(value.Int), nil },
			Call: func(_ *function.Context, _ value.Type, arguments []value.Value) (value.Value, *fault.Error) {
				kind := ""
				if len(arguments) > 1 {
					kind = arguments[1].Raw()
				}
				return t.objectID(arguments[0].Raw(), kind)
			},
		}, true
	}
	if name == "NAME OF A DATABASE" {
		return &function.Function{
			Name: "DB_NAME", Parameters: "b", IsVolatile: true,
			Result: func([]function.Argument) (value.Type, *fault.Error) { return sysname, nil },
			Call: func(c *function.Context, result value.Type, arguments []value.Value) (value.Value, *fault.Error) {
				return t.answer(result, databaseNamed(), c.Settings.Text(arguments[0]))
			},
		}, true
	}
	q, known := catalogQueries[name]
	if !known {
		return t.propertyFunction(name)
	}
	return &function.Function{
		Name: name, Parameters: q.letter, IsVolatile: true,
		Result: func([]function.Argument) (value.Type, *fault.Error) { return q.result, nil },
		Call: func(c *function.Context, _ value.Type, arguments []value.Value) (value.Value, *fault.Error) {
			argument := ""
			if len(arguments) > 0 {
				argument = c.Settings.Text(arguments[0])
			}
			if takesName[name] {
				written, is := identifiers(argument)
				if !is {
					return value.Null(q.result), nil
				}
				argument = written
			}
			return t.answer(q.result, q.sql, argument)
		},
	}, true
}

// answer gives the first value of a query of the catalog; NULL without a row.
func (t *Translator) answer(result value.Type, sql string, arguments ...string) (value.Value, *fault.Error) {
	ctx := context.Background()
	if err := t.prepare(ctx); err != nil {
		return value.Value{}, err
	}
	v := value.Null(result)
	var failed error
	err := t.rows(ctx, sql, arguments, func(row []string) { v, failed = decode(result, []byte(row[0])) })
	if failed != nil {
		return v, &fault.Error{Number: 50000, Severity: 16, State: 1, Message: failed.Error()}
	}
	return v, err
}

// objectID finds an object by its name, which may have a database and a schema, and by the letters of its type.
func (t *Translator) objectID(name, kind string) (value.Value, *fault.Error) {
	null := value.Null(value.Of(value.Int))
	parts := nameParts(name)
	if parts == nil {
		return null, nil
	}
	object := parts[len(parts)-1]
	ctx := context.Background()
	if err := t.prepare(ctx); err != nil {
		return null, err
	}
	if strings.HasPrefix(object, "#") {
		for _, s := range slices.Backward(t.scopes) {
			if known, is := s.temporary[strings.ToLower(object)]; is {
				return t.answer(null.Type(), "select c.oid::text from pg_catalog.pg_class as c where c.relname = $1::text", known)
			}
		}
		return null, nil
	}
	schema := "dbo"
	if len(parts) > 1 && parts[len(parts)-2] != "" {
		schema = parts[len(parts)-2]
	}
	if len(parts) > 2 && parts[len(parts)-3] != "" && !t.isCurrent(ctx, parts[len(parts)-3]) {
		return null, nil
	}
	return t.answer(null.Type(), "select o.object_id::text from ("+systemViews["sys.objects"].sql+") as o"+
		" join pg_catalog.pg_namespace as s on s.oid = o.schema_id where lower(o.name::text) = lower($1::text)"+
		" and s.oid = "+connection.SchemaNamed("$2::text")+
		" and ($3::text = '' or btrim(o.type::text) = upper(btrim($3::text))) order by o.name::text = $1::text desc limit 1",
		object, schema, kind)
}

// takesName has the functions whose first argument is the name of an object, with its schema and its quotes.
var takesName = map[string]bool{"TYPE_ID": true, "COL_LENGTH": true, "IDENT_CURRENT": true, "IDENT_SEED": true, "IDENT_INCR": true}

// identifiers writes a name with the quotes of PostgreSQL; false for a text that is no name.
func identifiers(name string) (string, bool) {
	parts := nameParts(name)
	if parts == nil {
		return "", false
	}
	quoted := make([]string, len(parts))
	for i, part := range parts {
		if part == "" {
			part = "dbo" // between two points
		}
		quoted[i] = quote(part)
	}
	return strings.Join(quoted, "."), true
}

// nameParts reads a name with its quotes; nil for one that is none.
func nameParts(name string) []string {
	parsed, err := parser.Parse("drop table "+name, parser.Options{})
	if err != nil {
		return nil
	}
	return droppedName(parsed)
}
