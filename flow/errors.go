package flow

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Error is an error of the integration engine. Number is the kind of it, on which programs decide; Message states the fact, Detail the
// values, Hint the remedy. It wraps the *pgconn.PgError that brought it.
type Error struct {
	Number                int
	Message, Detail, Hint string

	cause *pgconn.PgError
}

// Numbers that programs decide on; parley_flow.errors lists all.
const (
	PermissionDenied = 1  // the role does not hold PUBLISH
	PortNotFound     = 4  // there is no such receive port
	NotConfigured    = 5  // nothing is defined in this database
	Malformed        = 10 // properties, a type or a key that cannot be
	KeyOfAnother     = 11 // the key was used for a message with another body
	QuotaExceeded    = 13 // the role has published as much in the last minute as it may
	NotInstalled     = 99 // there is no schema parley_flow in this database
)

func (e *Error) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.cause.Code) }

// Unwrap gives the error that PostgreSQL sent.
func (e *Error) Unwrap() error { return e.cause }

// ErrorNumber returns the number of an error of the engine, wherever it is in the chain of err; false for every other error.
func ErrorNumber(err error) (int, bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Number, true
	}
	return 0, false
}

// statementError says what was tried, and makes an Error of one that the engine has raised.
func statementError(err error) error {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		e := &Error{Message: refused.Message, Detail: refused.Detail, Hint: refused.Hint, cause: refused}
		digits, isOurs := strings.CutPrefix(refused.Code, "PF")
		number, numberErr := strconv.Atoi(digits)
		switch {
		case isOurs && numberErr == nil:
			e.Number = number
			err = e
		case refused.Code == "3F000" && strings.Contains(refused.Message, `"parley_flow"`):
			e.Number, e.Message, e.Detail = NotInstalled, "there is no integration engine in this database", refused.Message
			e.Hint = "Connect to the database of the engine, or install one: parley install."
			err = e
		}
	}
	return fmt.Errorf("publish: %w", err)
}
