package verbs

import (
	"strconv"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// The exit codes of EXIT(query) where the query has none.
const (
	exitAfterError = -100
	exitWithoutRow = -101
	exitNoNumber   = -102
)

// endingState is the state of a message of RAISERROR that ends the client, with its number as the exit code.
const endingState = 127

// A watcher notes what passes to a sink: errors, and the values that an exit code is made of.
type watcher struct {
	session.Sink
	bySeverity [26]int
	timeouts   int
	worst      int // the greatest severity of the errors so far
	ends       bool
	endsWith   int
	last       *value.Value // the first column of the last row of the batch
}

// begin forgets the rows of the batch before.
func (w *watcher) begin() { w.last = nil }

// count gives how many errors of a severity and above there were.
func (w *watcher) count(least int) (n int) {
	for severity := least; severity < len(w.bySeverity); severity++ {
		n += w.bySeverity[severity]
	}
	if least <= 11 {
		n += w.timeouts
	}
	return n
}

// Message counts an error.
func (w *watcher) Message(m *fault.Error) error {
	if !m.IsInformational() {
		w.bySeverity[min(m.Severity, len(w.bySeverity)-1)]++
		w.worst = max(w.worst, m.Severity)
	}
	if m.State == endingState && !w.ends {
		w.ends, w.endsWith = true, m.Number
	}
	return w.Sink.Message(m)
}

// Row keeps the first column.
func (w *watcher) Row(row []value.Value) error {
	if len(row) > 0 {
		w.last = &row[0]
	}
	return w.Sink.Row(row)
}

// exitCode gives the exit code of EXIT(query).
func (w *watcher) exitCode(hasFailed bool) int {
	switch {
	case hasFailed:
		return exitAfterError
	case w.last == nil:
		return exitWithoutRow
	}
	n, err := strconv.ParseInt(value.Display(*w.last), 10, 32)
	if err != nil {
		return exitNoNumber
	}
	return int(n)
}
