package database

import (
	"context"
	"strconv"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// Function gives DB_ID: the number of a database by its name, of the session's own without one, as sys.databases has it.
// FULLTEXTSERVICEPROPERTY is 0: full-text search is not installed.
func (t *Translator) Function(name string) (*function.Function, bool) {
	if name == "FULLTEXTSERVICEPROPERTY" {
		return &function.Function{
			Name: name, Parameters: "t", Result: func([]function.Argument) (value.Type, *fault.Error) { return value.Of(value.Int), nil },
			Call: func(*function.Context, value.Type, []value.Value) (value.Value, *fault.Error) {
				return value.NewInt(0), nil
			},
		}, true
	}
	if name != "DB_ID" {
		return t.Translator.Function(name)
	}
	return &function.Function{
		Name: name, Parameters: "?t", IsVolatile: true,
		Result: func([]function.Argument) (value.Type, *fault.Error) { return value.Of(value.Int), nil },
		Call: func(_ *function.Context, result value.Type, arguments []value.Value) (value.Value, *fault.Error) {
			ctx := context.Background()
			database, err := t.connection.Current(ctx)
			if err == nil && len(arguments) > 0 {
				database = folded(arguments[0].Raw())
			}
			number := ""
			if err == nil {
				const sql = "select case d.datname when 'postgres' then 1 else d.oid::bigint end " +
					"from pg_catalog.pg_database as d where d.datname = $1"
				number, err = t.here(ctx, sql, database)
			}
			if err != nil {
				return value.Value{}, connection.Fault(err, name)
			}
			if number == "" {
				return value.Null(result), nil
			}
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return value.Value{}, connection.Fault(err, name)
			}
			return value.Integer(value.Int, n), nil
		},
	}, true
}
