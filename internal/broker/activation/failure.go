package activation

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
)

// Numbers under which Service Broker logs what goes wrong with a reader.
const (
	outputOfProcedure   = 9724
	transactionLeftOpen = 8415
	queueDropped        = 28085
	queueDisabled       = 28086
	nothingReceived     = 28087
	readerFailed        = 28088
)

const (
	// notStartedPause is when to try a reader again that was not started: this daemon may lead no more.
	notStartedPause = 100 * time.Millisecond
	// stallTime is how long readers may run without receiving what waits before another one is tried.
	stallTime = time.Second
)

// stateError is a failure that has a SQLSTATE though the database did not raise it.
type stateError struct {
	state  string
	number int
	text   string
}

func (e *stateError) Error() string { return e.text }

// errNothingReceived: messages waited before the reader began, and the same ones wait now.
var errNothingReceived = &stateError{state: "", number: nothingReceived, text: "the reader received nothing, though messages wait"}

// failure is why readers of a queue are not started at once.
type failure struct {
	times       int
	since       time.Time
	err         error
	nextAttempt time.Time
	// The last error that was logged, so that the same one does not fill the log.
	logged     string
	loggedAt   time.Time
	suppressed int
}

// logInterval is how often the same error of a queue is logged.
const logInterval = 30 * time.Second

// met records that a reader failed, and reports whether that is worth a line in the log.
func (f *failure) met(err error, now time.Time) (isNews bool) {
	if f.times == 0 {
		f.since = now
	}
	f.times++
	f.err = err
	f.nextAttempt = now.Add(backoff.Reader.Pause(f.times))
	if f.logged == err.Error() && now.Sub(f.loggedAt) < logInterval {
		f.suppressed++
		return false
	}
	f.logged, f.loggedAt = err.Error(), now
	return true
}

// over records a success.
func (f *failure) over() {
	f.times, f.err = 0, nil
	f.since, f.nextAttempt = time.Time{}, time.Time{}
}

// sqlState gives the SQLSTATE of an error, or "".
func sqlState(err error) string {
	var raised *pgconn.PgError
	var known *stateError
	switch {
	case errors.As(err, &raised):
		return raised.Code
	case errors.As(err, &known):
		return known.state
	}
	return ""
}

// withState adds the SQLSTATE of an error, if it has one, to what is logged of it.
func withState(err error, attributes ...any) []any {
	if state := sqlState(err); state != "" {
		attributes = append(attributes, "sqlstate", state)
	}
	return attributes
}

// numberOf gives the number under which Service Broker would log the end of a reader of a queue.
func numberOf(err error, queue string) int {
	var known *stateError
	if errors.As(err, &known) && known.number != 0 {
		return known.number
	}
	// The reader may have asked for another queue than its own.
	var raised *pgconn.PgError
	if number, _ := parley.ErrorNumber(err); errors.As(err, &raised) && strings.Contains(raised.Message, strconv.Quote(queue)) {
		switch number {
		case parley.QueueNotFound:
			return queueDropped
		case parley.QueueDisabled:
			return queueDisabled
		}
	}
	return readerFailed
}
