package pgdb

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// DescribeFailure gives the SQLSTATE, if there is one, and a text that PostgreSQL takes, whatever the error says.
func DescribeFailure(failure error) (sqlstate *string, text string) {
	if pgErr, ok := errors.AsType[*pgconn.PgError](failure); ok {
		sqlstate = &pgErr.Code
	}
	return sqlstate, Storable(failure.Error())
}

// Storable gives a text that PostgreSQL takes.
func Storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
}
