package connection

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestErrorsOfTheDatabaseAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from pgconn.PgError
		want string
	}{
		{
			pgconn.PgError{Code: "23505", SchemaName: "dbo", TableName: "item", ConstraintName: "item_pkey", Detail: "Key (id, name)=(1, (x)) already exists."},
			"Msg 2627, Level 14, State 1, Line 0: Violation of UNIQUE KEY constraint 'item_pkey'. Cannot insert duplicate key in object 'dbo.item'. The duplicate key value is (1, (x)).",
		},
		{
			pgconn.PgError{Code: "23502", SchemaName: "dbo", TableName: "item", ColumnName: "name"},
			"Msg 515, Level 16, State 2, Line 0: Cannot insert the value NULL into column 'name', table 'dbo.item'; column does not allow nulls. INSERT fails.",
		},
		{pgconn.PgError{Code: "42P01", Message: `relation "item" does not exist`}, "Msg 208, Level 16, State 1, Line 0: Invalid object name 'item'."},
		{pgconn.PgError{Code: "22003", Message: "integer out of range"}, "Msg 8115, Level 16, State 2, Line 0: Arithmetic overflow error converting expression to data type int."},
		{pgconn.PgError{Code: "SB6HQ", Message: "broker"}, "Msg 8414, Level 16, State 1, Line 0: broker"},
		{pgconn.PgError{Code: "XX000", Message: "odd"}, "Msg 50000, Level 16, State 1, Line 0: odd (SQLSTATE XX000)"},
	} {
		got, known := FaultOf(fmt.Errorf("running: %w", &c.from), "INSERT")
		if !known || got.Error() != c.want {
			t.Errorf("%s\n got %v\nwant %s", c.from.Code, got, c.want)
		}
	}
	if _, known := FaultOf(errors.New("broken pipe"), "INSERT"); known {
		t.Error("a lost connection is an error of T-SQL")
	}
}
