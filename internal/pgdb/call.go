package pgdb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Call is the call of a function of the schema, each of whose arguments is named and may be left out.
type Call struct {
	Function string

	names     []string
	arguments []any
}

// Give gives an argument; kind is its type in SQL.
func (c *Call) Give(name, kind string, value any) {
	c.arguments = append(c.arguments, value)
	c.names = append(c.names, fmt.Sprintf("%s => $%d::%s", name, len(c.arguments), kind))
}

// Give gives an argument unless it is nil.
func Give[T any](c *Call, name, kind string, value *T) {
	if value != nil {
		c.Give(name, kind, *value)
	}
}

// GiveMilliseconds gives a duration unless it is nil.
func GiveMilliseconds(c *Call, name string, value *time.Duration) {
	if value != nil {
		c.Give(name, "integer", Milliseconds(*value))
	}
}

// Exec makes the call; what says in an error what was tried.
func (c *Call) Exec(ctx context.Context, db DB, what string) error {
	if _, err := db.Exec(ctx, c.statement(), c.arguments...); err != nil {
		return StatementError(err, what)
	}
	return nil
}

// QueryRow makes the call, which gives one row.
func (c *Call) QueryRow(ctx context.Context, db DB) pgx.Row {
	return db.QueryRow(ctx, c.statement(), c.arguments...)
}

func (c *Call) statement() string {
	return "select parley." + c.Function + "(" + strings.Join(c.names, ", ") + ")"
}
