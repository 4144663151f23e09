package parley

import "github.com/parley-broker/parley/internal/pgdb"

// Error is an error of the broker. Number is the SQL Server error number, such as 8426; Message states the fact, Detail the values,
// Hint the remedy. It wraps the *pgconn.PgError that brought it.
type Error = pgdb.Error

// Numbers that programs decide on; the SQL reference, docs/reference/README.md, lists which function raises which.
const (
	ConversationNotFound      = 8426 // the handle is unknown, or its conversation has ended
	EndNotAllowed             = 8427 // this side has ended already
	SendNotAllowed            = 8429 // the state of this side allows no SEND
	ConversationGroupNotFound = 8436
	TimerNotAllowed           = 8458
	MessageTooLarge           = 8459
	NoBroker                  = pgdb.NoBroker // nobody has installed the schema parley in this database
	QueueDisabled             = 9617
	QueueFull                 = 10928 // its quota is used up
	PermissionDenied          = 229
	QueueNotFound             = 208
	WrongArgument             = 8402 // an argument that cannot be, or a queue of the other kind
	StillUsed                 = 3716 // somebody uses it, or a queue holds messages
)

// ErrorNumber returns the SQL Server number of an error of the broker, wherever it is in the chain of err.
// It is false for every other error.
func ErrorNumber(err error) (int, bool) { return pgdb.ErrorNumber(err) }
