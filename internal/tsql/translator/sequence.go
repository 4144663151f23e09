package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// sequenceQuery finds a sequence that stands alone by its names without regard to case: its comment has its type in T-SQL.
var sequenceQuery = `select quote_ident(n.nspname) || '.' || quote_ident(c.relname),
  coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), 'bigint')
from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.relkind = 'S' and n.oid = ` + connection.SchemaNamed("$1::text") + ` and lower(c.relname) = lower($2::text)
  and not exists (select from pg_catalog.pg_depend as d where d.objid = c.oid and d.deptype in ('a', 'i') and d.refobjsubid > 0)
order by c.relname = $2::text desc limit 1`

// sequenceOf gives how SQL writes a sequence, and the type of its numbers; an empty text where there is none.
func (t *Translator) sequenceOf(ctx context.Context, name ast.Name) (sql string, typ value.Type, err *fault.Error) {
	if err := t.prepare(ctx); err != nil {
		return "", typ, err
	}
	schema := name.Schema()
	if schema == "" {
		schema = "dbo"
	}
	typ = value.Of(value.BigInt)
	err = t.rows(ctx, sequenceQuery, []string{schema, name.Object()}, func(row []string) {
		sql = row[0]
		if read, ok := readType(row[1]); ok {
			typ = read
		}
	})
	return sql, typ, err
}

// sequence compiles CREATE and ALTER SEQUENCE. Numbers are those of PostgreSQL: a rollback does not give them back either.
func (t *Translator) sequence(node *ast.Sequence) (interpreter.Statement, *fault.Error) {
	typ := value.Of(value.BigInt)
	if node.HasType {
		found, err := expression.TypeOf(node.Type, value.Declaration)
		if err != nil {
			return nil, err
		}
		typ = found
	}
	if !typ.Kind.IsInteger() && (typ.Kind != value.Decimal || typ.Scale != 0) {
		return nil, fault.New(11702, node.Name.Object())
	}
	return t.defines(node.Verb+" SEQUENCE", func(ctx context.Context) ([]string, *fault.Error) {
		known, was, err := t.sequenceOf(ctx, node.Name)
		if err != nil {
			return nil, err
		}
		isNew := node.Verb == "CREATE"
		switch {
		case isNew && known != "":
			return nil, fault.New(2714, node.Name.Object())
		case !isNew && known == "":
			return nil, fault.New(208, node.Name.String())
		case !isNew:
			typ = was
		}
		options, err := t.sequenceOptions(node, typ, isNew)
		if err != nil {
			return nil, err
		}
		if !isNew {
			return []string{"alter sequence " + known + options}, nil
		}
		schema, err := t.schemaOf(ctx, node.Name.Schema())
		if err != nil {
			return nil, err
		}
		name := quote(schema) + "." + quote(node.Name.Object())
		kept := "bigint"
		if typ.Kind == value.Int || typ.Kind == value.SmallInt || typ.Kind == value.TinyInt {
			kept = databaseType(typ)
		}
		return []string{
			"create sequence " + name + " as " + kept + options, "comment on sequence " + name + " is " + quoteText(typ.String()),
		}, nil
	}), nil
}

// sequenceOptions writes the clauses of a sequence. A new one begins at the least number of its type, as SQL Server's does.
func (t *Translator) sequenceOptions(node *ast.Sequence, typ value.Type, isNew bool) (string, *fault.Error) {
	numbers := map[string]string{}
	words := map[string]string{"CYCLE": " cycle", "NO CYCLE": " no cycle"}
	var rest strings.Builder
	for _, o := range node.Options {
		if o.Value == nil || strings.HasSuffix(o.Name, "CACHE") {
			rest.WriteString(words[o.Name])
			if o.Name == "RESTART" {
				rest.WriteString(" restart")
			}
			continue
		}
		e, err := expression.CompileAs(o.Value, value.Of(value.BigInt), noVariables{t})
		if err != nil {
			return "", err
		}
		v, err := e.Evaluate(t.definitionFrame())
		if err != nil {
			return "", err
		}
		numbers[o.Name] = string(encode(value.Defaults(), v))
	}
	least, most := limitsOf(typ)
	isDown := strings.HasPrefix(numbers["INCREMENT BY"], "-")
	if isNew {
		if numbers["MINVALUE"] == "" {
			numbers["MINVALUE"] = least
		}
		if numbers["MAXVALUE"] == "" {
			numbers["MAXVALUE"] = most
		}
		switch {
		case numbers["START WITH"] != "":
		case isDown:
			numbers["START WITH"] = numbers["MAXVALUE"]
		default:
			numbers["START WITH"] = numbers["MINVALUE"]
		}
	}
	var sql strings.Builder
	for _, words := range []string{"INCREMENT BY", "MINVALUE", "MAXVALUE", "START WITH", "RESTART WITH"} {
		if n := numbers[words]; n != "" {
			sql.WriteString(" " + strings.ToLower(words) + " " + n)
		}
	}
	return sql.String() + rest.String(), nil
}

// limitsOf gives the least and the greatest number of a sequence of a type.
func limitsOf(t value.Type) (least, most string) {
	switch t.Kind {
	case value.TinyInt:
		return "0", "255"
	case value.SmallInt:
		return "-32768", "32767"
	case value.Int:
		return "-2147483648", "2147483647"
	default:
		return "-9223372036854775808", "9223372036854775807"
	}
}

func (t *Translator) dropSequences(ctx context.Context, node *ast.Drop) ([]string, *fault.Error) {
	return dropEach(node, func(name ast.Name) (string, bool, *fault.Error) {
		known, _, err := t.sequenceOf(ctx, name)
		return "drop sequence " + known, known != "", err
	}, func(name ast.Name) *fault.Error { return fault.New(3701, "drop", "sequence object", name.String()) })
}

// nextValue translates NEXT VALUE FOR: the next number, one for each row.
func (b *builder) nextValue(node *ast.NextValue) (sqlExpression, *fault.Error) {
	if node.Over != nil {
		return sqlExpression{}, expression.Unsupported("NEXT VALUE FOR ... OVER")
	}
	sequence, typ, err := b.translator.sequenceOf(b.ctx, node.Sequence)
	if err != nil {
		return sqlExpression{}, err
	}
	if sequence == "" {
		return sqlExpression{}, fault.New(208, node.Sequence.String())
	}
	return sqlExpression{sql: "(pg_catalog.nextval(" + quoteText(sequence) + ")::" + databaseType(typ) + ")", typ: typ}, nil
}
