package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// databaseNamed gives the name of the database with the number $1.
func databaseNamed() string {
	return "select d.name::text from (" + systemViews["sys.databases"].sql + ") as d where d.database_id = $1::text::bigint"
}

// numbered gives the query of a function of the catalog whose arguments are all numbers; false for any other.
func numbered(name string) (sql string, result value.Type, arguments int, is bool) {
	switch name {
	case "DB_NAME":
		return databaseNamed(), sysname, 1, true
	case "OBJECT_NAME", "OBJECT_SCHEMA_NAME", "SCHEMA_NAME":
		q := catalogQueries[name]
		return q.sql, q.result, 1, true
	case "COL_NAME", "TYPE_NAME", "OBJECT_DEFINITION":
		p := properties[name]
		return p.sql, p.result, len(p.parameters), true
	}
	return "", value.Type{}, 0, false
}

// catalogCall translates such a function for rows of the database: its query asks for the numbers of each row. They come from a row of
// their own, so that no name of the query hides one of the statement.
func (b *builder) catalogCall(node *ast.Call, name string) (sqlExpression, bool, *fault.Error) {
	sql, result, n, is := numbered(name)
	if !is || len(node.Arguments) != n {
		return sqlExpression{}, false, nil
	}
	var numbers []string
	for _, argument := range node.Arguments {
		e, err := b.expression(argument)
		if err != nil {
			return e, true, err
		}
		if e, err = b.convert(e, value.Of(value.BigInt), implicit); err != nil {
			return e, true, err
		}
		numbers = append(numbers, "("+e.sql+")::text")
	}
	sql = strings.NewReplacer("$1::text", "of_call.a1", "$2::text", "of_call.a2").Replace(sql)
	names := []string{"a1", "a2"}[:n]
	sql = "(select (" + sql + " limit 1) from (select " + strings.Join(numbers, ", ") + ") as of_call (" + strings.Join(names, ", ") + "))"
	return sqlExpression{sql: textOf(sql), typ: result}, true, nil
}
