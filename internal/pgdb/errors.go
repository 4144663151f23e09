package pgdb

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Error is an error of the broker. It wraps the *pgconn.PgError that brought it.
type Error struct {
	// Number is the SQL Server error number, such as 8426. The broker sends it in the SQLSTATE: class SB, then the
	// number in base 36.
	Number int
	// Message states the fact, Detail the values, Hint the remedy.
	Message, Detail, Hint string

	cause *pgconn.PgError
}

// NoBroker is the number of the error that nobody has installed the schema parley in this database.
const NoBroker = 8442

func (e *Error) Error() string { return fmt.Sprintf("%s (error %d)", e.Message, e.Number) }

// Unwrap gives the error that PostgreSQL sent.
func (e *Error) Unwrap() error { return e.cause }

// SQLState gives the SQLSTATE of an error of the server, wherever it is in the chain of err; "" for every other error.
func SQLState(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Code
	}
	return ""
}

// TookTooLong reports whether the server ended a statement because its time was over, or because somebody cancelled it.
func TookTooLong(err error) bool { return SQLState(err) == "57014" }

// ErrorNumber gives the number of an error of the broker, wherever it is in the chain of err; false for every other error.
func ErrorNumber(err error) (int, bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Number, true
	}
	return numberOf(SQLState(err))
}

// numberOf reads the number out of a SQLSTATE of class SB.
func numberOf(sqlstate string) (int, bool) {
	digits, ok := strings.CutPrefix(sqlstate, "SB")
	if !ok || len(digits) != 3 {
		return 0, false
	}
	number, err := strconv.ParseInt(digits, 36, 32)
	return int(number), err == nil
}

// StatementError adds what was tried to an error, and makes an Error of one that the broker raised.
func StatementError(err error, statement string) error {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		if number, ok := numberOf(pgErr.Code); ok {
			err = &Error{Number: number, Message: pgErr.Message, Detail: pgErr.Detail, Hint: pgErr.Hint, cause: pgErr}
		}
		if pgErr.Code == "3F000" && strings.Contains(pgErr.Message, `"parley"`) {
			err = &Error{
				Number: NoBroker, Message: "there is no broker in this database", Detail: pgErr.Message,
				Hint: "Connect to the database of the broker, or install one: parley install.", cause: pgErr,
			}
		}
	}
	return fmt.Errorf("%s: %w", statement, err)
}
