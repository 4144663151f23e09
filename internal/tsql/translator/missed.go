package translator

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// missedMark begins the text whose conversion fails where a row was missed. No text of a user begins like it.
const missedMark = "\x02parley missed "

// missedRows fails, before any row is given, where fewer rows were changed than were found. PostgreSQL locks the newest version of a row,
// but the statement looks for that version in its own, older snapshot. A row that several rows of other tables meet counts once.
const missedRows = ` where case when (select count(distinct found.k1) from found) <> (select count(*) from changed)
  then ('` + missedMark + `' || (select count(*) from found))::integer = 0 else false end`

// missed is the error of a statement that missed rows each time.
var missed = &fault.Error{
	Number: 50000, Severity: 16, State: 1,
	Message: "Other transactions changed the rows of the statement each time that it ran. Run it again, or give the table a primary key.",
}

// maxAttempts is how often a statement runs that misses rows. Each time another transaction has gone on.
const maxAttempts = 100

// Run changes the rows, gives those of OUTPUT, and notes the new identity.
func (c *change) Run(ctx context.Context, f *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
	once, connection := &headedOnce{Sink: sink}, c.builder.translator.connection
	if c.found != "" && connection.IsOpen() && !connection.IsProtected() { // its transaction began for its triggers
		if err := connection.Protect(ctx); err != nil {
			return 0, true, lost(err)
		}
	}
	for attempt := 1; ; attempt++ {
		n, err := c.attempt(ctx, f, once)
		if err != missed || attempt == maxAttempts {
			return n, true, err
		}
		if !connection.IsOpen() {
			continue
		}
		if err := connection.Recover(ctx); err != nil {
			return 0, true, lost(err)
		}
	}
}

// A headedOnce gives the headings of a result once, however often its statement runs.
type headedOnce struct {
	session.Sink
	isHeaded bool
}

// Columns gives the headings the first time.
func (h *headedOnce) Columns(columns []session.Column) error {
	if h.isHeaded {
		return nil
	}
	h.isHeaded = true
	return h.Sink.Columns(columns)
}
