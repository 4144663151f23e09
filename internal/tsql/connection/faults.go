package connection

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// FaultOf gives the error of SQL Server for one that the database raised; verb is the statement, such as INSERT. False for an error
// that is none of the database: the connection is lost, or the context ended.
func FaultOf(err error, verb string) (*fault.Error, bool) {
	if known, is := errors.AsType[*fault.Error](err); is {
		return known, true
	}
	refused, is := errors.AsType[*pgconn.PgError](err)
	if !is {
		return nil, false
	}
	if number, isBroker := pgdb.ErrorNumber(err); isBroker {
		if absent := absentOf(number, refused.Message, verb); absent != nil {
			return absent, true
		}
		severity := 16
		if _, known, is := fault.Text(number); is {
			severity = known
		}
		return &fault.Error{Number: number, Severity: severity, State: 1, Message: refused.Message}, true
	}
	return translated(refused, verb), true
}

// absence finds the kind and the name of an object in the message that there is no such object.
var absence = regexp.MustCompile(`^([a-z ]+) "((?:[^"]|"")*)" does not exist$`)

// absentOf gives the error for an object that the broker does not find, with the deed that it was needed for: that of an ALTER or a
// DROP of this kind, otherwise to find it. Nil for another error.
func absentOf(number int, message, verb string) *fault.Error {
	found := absence.FindStringSubmatch(message)
	if number != 15151 || found == nil {
		return nil
	}
	kind, deed := found[1], "find"
	if kind == "role" {
		kind = "user"
	}
	if word, of, _ := strings.Cut(verb, " "); strings.EqualFold(of, kind) && (word == "ALTER" || word == "DROP") {
		deed = strings.ToLower(word)
	}
	return fault.New(15151, deed, kind, found[2])
}

func translated(e *pgconn.PgError, verb string) *fault.Error {
	table := e.SchemaName + "." + e.TableName
	switch e.Code {
	case "23505":
		return fault.New(2627, "UNIQUE KEY", e.ConstraintName, table, keyOf(e.Detail))
	case "23502":
		return fault.New(515, e.ColumnName, table, verb)
	case "23503":
		return fault.New(547, verb, "FOREIGN KEY", e.ConstraintName, e.SchemaName, table, "", "", "")
	case "23514":
		return fault.New(547, verb, "CHECK", e.ConstraintName, e.SchemaName, table, "", "", "")
	case "40P01":
		return fault.New(1205, 0, "lock")
	case "40001":
		if strings.Contains(e.Message, "read/write dependencies") { // SERIALIZABLE: locks of SQL Server would have met in a deadlock
			return fault.New(1205, 0, "lock")
		}
		return fault.New(3960, table, "")
	case "55P03":
		return fault.New(1222)
	case "22001":
		return fault.New(8152)
	case "22003":
		return fault.New(8115, "expression", typeOf(e.Message))
	case "22012":
		return fault.New(8134)
	case "21000":
		return fault.New(512)
	case "42P01", "3F000":
		return fault.New(208, quotedIn(e.Message))
	case "42703":
		return fault.New(207, quotedIn(e.Message))
	case "42501":
		return fault.New(229, verb, deniedIn(e.Message), "", e.SchemaName)
	case "42P07", "42710", "42723":
		return fault.New(2714, quotedIn(e.Message))
	}
	// An error without a brother in SQL Server keeps its text, and names its SQLSTATE.
	return &fault.Error{Number: 50000, Severity: 16, State: 1, Message: e.Message + " (SQLSTATE " + e.Code + ")"}
}

// keyOf gives the values of a detail such as: Key (a, b)=(1, x) already exists.
func keyOf(detail string) string {
	_, rest, found := strings.Cut(detail, ")=(")
	if !found {
		return ""
	}
	end := strings.LastIndex(rest, ")")
	if end < 0 {
		return ""
	}
	return "(" + rest[:end] + ")"
}

// quotedIn gives the first name in quotes of a message.
func quotedIn(message string) string {
	_, rest, found := strings.Cut(message, "\"")
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(rest, "\"")
	return name
}

// deniedIn gives the object of a message such as: permission denied for table orders.
func deniedIn(message string) string {
	if quoted := quotedIn(message); quoted != "" {
		return quoted
	}
	words := strings.Fields(message)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// typeOf gives SQL Server's name of the type that a message about a range begins with.
func typeOf(message string) string {
	names := map[string]string{"smallint": "smallint", "integer": "int", "bigint": "bigint", "numeric": "numeric", "double": "float"}
	first, _, _ := strings.Cut(message, " ")
	if name, known := names[first]; known {
		return name
	}
	return "numeric"
}

// lostSeverity is that of an error which ends the session.
const lostSeverity = 20

// Fault gives the error of SQL Server for any error of a statement: where the database answered none, the connection is lost or the
// caller has ended it, and the session cannot go on.
func Fault(err error, verb string) *fault.Error {
	if found, known := FaultOf(err, verb); known {
		return found
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, ErrLost) {
		return &fault.Error{Number: 3617, Severity: 16, State: 1, Message: "the batch was cancelled", Reach: fault.Abort}
	}
	return &fault.Error{Number: 10054, Severity: lostSeverity, State: 1, Message: err.Error()}
}
