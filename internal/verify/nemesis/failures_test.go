//go:build unix

package nemesis_test

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// These may happen to any session: the dialog has just ended, another session was first, a statement was cancelled, or two transactions
// worked on the same conversations in different order.
var harmless = map[string]bool{
	"40P01": true, "40001": true, "57014": true,
	broker(8426): true, broker(8427): true, broker(8429): true, broker(8436): true, broker(8438): true,
}

// isFault reports whether an error comes of a server that was stopped, of a session that was ended, or of a standby.
func isFault(err error) bool {
	if _, ok := errors.AsType[*pgconn.PgError](err); !ok {
		return true
	}
	switch c := code(err); {
	case strings.HasPrefix(c, "57P0"), strings.HasPrefix(c, "08"), c == "25006", c == "53300":
		return true
	}
	return false
}

// code is the SQLSTATE of an error, empty for none and for errors that do not come from the server.
func code(err error) string {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code
	}
	return ""
}

// broker gives the SQLSTATE that stands for an error number of Service Broker.
func broker(number int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return "SB" + string([]byte{digits[number/1296], digits[number/36%36], digits[number%36]})
}
