package translator

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A relation is a table or a view of the database, or a query that stands for a view of the system.
type relation struct {
	schema, name string
	sql          string // how FROM writes it
	kind         byte   // of pg_class.relkind: r table, v view; s for a view of the system
	columns      []*column
	key          []string // of the primary key
	constraints  map[string]constraint
	fires        string // the triggers as announceQuery gives them
	triggers     []*trigger
	oid          uint32
}

// A constraint of a table, also a unique index without one.
type constraint struct {
	kind    byte // p, u, f, c; i for an index
	columns string
	target  string // the table to which a foreign key refers, with its schema
}

// A column of a relation.
type column struct {
	name       string
	typ        value.Type
	isNullable bool
	isIdentity bool
	isComputed bool
	hasDefault bool
	named      string // the name of its default; empty where it was given none
	number     int
	table      *relation
}

// relationQuery finds a relation by its names without regard to case, with its columns in one row each.
var relationQuery = `
select n.nspname, c.relname, c.relkind::text, c.oid::text, a.attname, a.attnum::text,
  coalesce(pg_catalog.col_description(c.oid, a.attnum), ''), pg_catalog.format_type(a.atttypid, a.atttypmod),
  a.attnotnull::text, (a.attidentity <> '')::text, (a.attgenerated <> '')::text, a.atthasdef::text
from pg_catalog.pg_class as c
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
join pg_catalog.pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relkind in ('r', 'v', 'p', 'm', 'f')
  and c.oid = (
    select k.oid from pg_catalog.pg_class as k join pg_catalog.pg_namespace as s on s.oid = k.relnamespace
    where lower(k.relname) = lower($2::text) and k.relkind in ('r', 'v', 'p', 'm', 'f')
      and (case when $1::text = 'pg_temp' then s.oid = pg_catalog.pg_my_temp_schema()
        else s.oid = ` + connection.SchemaNamed("$1::text") + ` end)
    order by (k.relname = $2::text) desc limit 1)
order by a.attnum`

const constraintQuery = `
select k.conname, k.contype::text, coalesce(rn.nspname || '.' || r.relname, ''),
  coalesce((select string_agg(a.attname, ', ' order by u.place) from unnest(k.conkey) with ordinality as u (number, place)
    join pg_catalog.pg_attribute as a on a.attrelid = k.conrelid and a.attnum = u.number), ''),
  coalesce((select string_agg(a.attname, ', ' order by u.place) from unnest(k.confkey) with ordinality as u (number, place)
    join pg_catalog.pg_attribute as a on a.attrelid = k.confrelid and a.attnum = u.number), '')
from pg_catalog.pg_constraint as k
left join pg_catalog.pg_class as r on r.oid = k.confrelid
left join pg_catalog.pg_namespace as rn on rn.oid = r.relnamespace
where k.conrelid = $1::text::oid or k.confrelid = $1::text::oid`

// lookUp finds a relation; nil where there is none.
func (t *Translator) lookUp(ctx context.Context, schema, name string) (*relation, *fault.Error) {
	key := strings.ToLower(schema + "." + name)
	if known, is := t.relations[key]; is {
		return known, nil
	}
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	var r *relation
	err := t.rows(ctx, relationQuery, []string{schema, name}, func(row []string) {
		if r == nil {
			r = &relation{schema: row[0], name: row[1], kind: row[2][0], constraints: map[string]constraint{}}
			r.sql = quote(r.schema) + "." + quote(r.name)
			oid, _ := strconv.ParseUint(row[3], 10, 32)
			r.oid = uint32(oid)
		}
		number, _ := strconv.Atoi(row[5])
		comment, named, _ := strings.Cut(row[6], "\n")
		r.columns = append(r.columns, &column{
			table: r, name: row[4], number: number, typ: typeOfColumn(comment, row[7]), isNullable: row[8] != "true",
			isIdentity: row[9] == "true",
			isComputed: row[10] == "true", hasDefault: row[11] == "true",
			named: named,
		})
	})
	if err != nil || r == nil {
		return nil, err
	}
	err = t.rows(ctx, constraintQuery, []string{strconv.FormatUint(uint64(r.oid), 10)}, func(row []string) {
		c := constraint{kind: row[1][0], columns: row[3], target: row[2]}
		if c.kind == 'f' {
			c.columns = row[4]
		}
		r.constraints[row[0]] = c
		if c.kind == 'p' && row[2] == "" {
			r.key = strings.Split(row[3], ", ")
		}
	})
	if err != nil {
		return nil, err
	}
	if err := t.triggersOf(ctx, r); err != nil {
		return nil, err
	}
	t.relations[key] = r
	return r, nil
}

// rows runs a query of the catalog whose results are text; NULL is empty.
func (t *Translator) rows(ctx context.Context, sql string, arguments []string, take func(row []string)) *fault.Error {
	parameters := make([][]byte, len(arguments))
	for i, a := range arguments {
		parameters[i] = []byte(a)
	}
	_, err := t.connection.Run(ctx, connection.Statement{
		SQL: sql, Parameters: parameters, Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
			texts := make([]string, len(row))
			for i, cell := range row {
				texts[i] = string(cell)
			}
			take(texts)
			return nil
		},
	})
	if err != nil {
		return t.fault(err, "SELECT", nil)
	}
	return nil
}

// run runs statements that give no rows.
func (t *Translator) run(ctx context.Context, verb string, statements ...string) *fault.Error {
	if err := t.prepare(ctx); err != nil {
		return err
	}
	for _, sql := range statements {
		if _, err := t.connection.Run(ctx, connection.Statement{SQL: sql}); err != nil {
			return t.fault(err, verb, nil)
		}
	}
	return nil
}

// described writes the comment of a column, which keeps its type and the name of its default.
func (c *column) described(table string) string {
	text := c.typ.String()
	if c.named != "" {
		text += "\n" + c.named
	}
	return "comment on column " + table + "." + quote(c.name) + " is " + quoteText(text)
}

// defaultName gives the name of the column's default in a table.
func (c *column) defaultName(table string) string {
	if c.named != "" {
		return c.named
	}
	return "DF_" + table + "_" + c.name
}

// typeOfColumn gives the type that a column's comment names, or the one that its type of PostgreSQL is nearest to.
func typeOfColumn(comment, databaseTypeName string) value.Type {
	if t, ok := readType(comment); ok && strings.HasPrefix(databaseTypeName, firstWord(shownDatabaseType(t))) {
		return t
	}
	base, rest, _ := strings.Cut(databaseTypeName, "(")
	switch base {
	case "boolean":
		return value.Of(value.Bit)
	case "smallint":
		return value.Of(value.SmallInt)
	case "integer", "oid":
		return value.Of(value.Int)
	case "bigint":
		return value.Of(value.BigInt)
	case "numeric":
		if t, ok := readType("decimal(" + rest); ok && rest != "" {
			return t
		}
		return value.Numeric(value.MaxPrecision, 10)
	case "real":
		return value.Of(value.Real)
	case "double precision":
		return value.Of(value.Float)
	case "date":
		return value.Of(value.Date)
	case "uuid":
		return value.Of(value.UniqueIdentifier)
	case "xml":
		return value.Of(value.XML)
	case "bytea":
		return value.Sized(value.VarBinary, value.Max)
	}
	switch {
	case strings.HasPrefix(databaseTypeName, "timestamp") && strings.HasSuffix(databaseTypeName, "without time zone"):
		return value.Type{Kind: value.DateTime2, Scale: microseconds}
	case strings.HasPrefix(databaseTypeName, "timestamp"):
		return value.Type{Kind: value.DateTimeOffset, Scale: microseconds}
	case strings.HasPrefix(databaseTypeName, "time"):
		return value.Type{Kind: value.Time, Scale: microseconds}
	}
	return value.Sized(value.NVarChar, value.Max)
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, "(")
	word, _, _ = strings.Cut(word, " ")
	return word
}

// shownDatabaseType gives the type as format_type writes it.
func shownDatabaseType(t value.Type) string {
	shown := databaseType(t)
	if shown == "bpchar" {
		return "bpchar"
	}
	return shown
}

// readType reads a type as its String writes it.
func readType(written string) (value.Type, bool) {
	name, rest, hasAttributes := strings.Cut(written, "(")
	var attributes []int
	if hasAttributes {
		for part := range strings.SplitSeq(strings.TrimSuffix(rest, ")"), ",") {
			n, err := strconv.Atoi(strings.TrimSpace(part))
			if part == "max" {
				n, err = value.Max, nil
			}
			if err != nil {
				return value.Type{}, false
			}
			attributes = append(attributes, n)
		}
	}
	if name == "" {
		return value.Type{}, false
	}
	t, err := value.Named(name, value.Declaration, attributes...)
	return t, err == nil
}

// find gives a column by its name without regard to case, or nil.
func (r *relation) find(name string) *column {
	for _, c := range r.columns {
		if strings.EqualFold(c.name, name) {
			return c
		}
	}
	return nil
}

// identity gives the column of IDENTITY, or nil.
func (r *relation) identity() *column {
	for _, c := range r.columns {
		if c.isIdentity {
			return c
		}
	}
	return nil
}

// relationOf resolves the name of a table: a temporary table, a view of the system, a table of a schema. Error 208 where there is
// none.
func (t *Translator) relationOf(ctx context.Context, name ast.Name) (*relation, *fault.Error) {
	if name.Server() != "" {
		return nil, expression.Unsupported("a name with a server")
	}
	schema, object := name.Schema(), name.Object()
	if strings.HasPrefix(object, "#") {
		return t.temporary(ctx, name)
	}
	isServerWide := strings.EqualFold(name.Database(), "master") && isServerView(schema, object)
	if database := name.Database(); database != "" && !isServerWide && !t.isCurrent(ctx, database) {
		return nil, expression.Unsupported("a table of another database")
	}
	if system, err := t.systemView(ctx, schema, object); system != nil || err != nil {
		return system, err
	}
	if schema == "" {
		schema = "dbo"
	}
	r, err := t.lookUp(ctx, schema, object)
	if err == nil && r == nil {
		r, err = t.queue(ctx, schema, object)
	}
	if err == nil && r == nil {
		err = fault.New(208, name.String())
	}
	return r, err
}
