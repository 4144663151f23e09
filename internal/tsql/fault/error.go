// Package fault has the errors and messages of SQL Server: number, severity, state, line, module and text, and how far an
// error reaches when no TRY catches it.
package fault

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An Error is an error or an informational message as SQL Server gives it to a client.
type Error struct {
	Number    int    `json:"number"`
	Severity  int    `json:"severity"` // 0 to 10 inform, 11 to 19 are errors, from 20 on the session ends
	State     int    `json:"state"`
	Line      int    `json:"line"` // of the batch or module, from 1; 0 where it is not known
	Procedure string `json:"procedure,omitempty"`
	Message   string `json:"message"`
	Reach     Reach  `json:"-"`
	// KeepsTransaction says that XACT_ABORT does not count for it: RAISERROR.
	KeepsTransaction bool `json:"-"`
	// IsOutdated says that the statement was compiled for definitions that have changed, and is compiled anew to run once more.
	IsOutdated bool `json:"-"`
	// Elsewhere is the other database to which the statement belongs as a whole: a synonym of this one leads there.
	Elsewhere string `json:"-"`
	// Deferred is not 0 for an error of a statement that was sent later than it was reached: its place among those that waited, from 1.
	Deferred int `json:"-"`
}

// Error gives the header and the text as sqlcmd prints them, in one line.
func (e *Error) Error() string {
	if e.Procedure != "" {
		return fmt.Sprintf("Msg %d, Level %d, State %d, Procedure %s, Line %d: %s",
			e.Number, e.Severity, e.State, e.Procedure, e.Line, e.Message)
	}
	return fmt.Sprintf("Msg %d, Level %d, State %d, Line %d: %s", e.Number, e.Severity, e.State, e.Line, e.Message)
}

// IsInformational reports whether the message is no error: severities to 10 set nothing and stop nothing.
func (e *Error) IsInformational() bool { return e.Severity <= 10 }

// At gives the error with its place, unless it has one.
func (e *Error) At(line int, procedure string) *Error {
	if e.Line != 0 || e.Procedure != "" {
		return e
	}
	placed := *e
	placed.Line, placed.Procedure = line, procedure
	return &placed
}

// A Reach says what an error ends when XACT_ABORT is OFF and no TRY surrounds it.
type Reach uint8

const (
	// Statement ends its statement alone: the batch goes on, in the same transaction.
	Statement Reach = iota
	// Scope ends the batch or module in which it stands; the caller goes on, the transaction stays.
	Scope
	// Abort ends every module and the batch; the transaction stays: THROW.
	Abort
	// Batch ends every module and the batch, and rolls the transaction back; inside TRY it dooms the transaction.
	Batch
	// Compile refuses the whole batch before any of it runs; the transaction stays.
	Compile
)

// New gives an error of the table with its text filled in. A number outside the table is a fault of the caller, and panics.
func New(number int, arguments ...any) *Error {
	m, known := table()[number]
	if !known {
		panic(fmt.Sprintf("fault: %d has no row in messages.tsv", number))
	}
	return &Error{Number: number, Severity: m.severity, State: m.state, Message: Format(m.text, arguments...), Reach: m.reach}
}

// InState gives the error with another state.
func (e *Error) InState(state int) *Error {
	e.State = state
	return e
}

// Because gives the error with the reason, or with a remedy, at the end of its text.
func (e *Error) Because(reason string) *Error {
	explained := *e
	explained.Message = strings.TrimSuffix(e.Message, ".") + ": " + reason + "."
	return &explained
}

// Message is a system message as sys.messages has it: its text is unfilled.
type Message struct {
	Number, Severity int
	Text             string
}

// Messages gives the system messages in the order of their numbers.
func Messages() []Message {
	var all []Message
	for number, m := range table() {
		all = append(all, Message{Number: number, Severity: m.severity, Text: m.text})
	}
	slices.SortFunc(all, func(a, b Message) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// Text gives the unfilled text and the severity of a system message, as sys.messages has them.
func Text(number int) (text string, severity int, known bool) {
	m, known := table()[number]
	return m.text, m.severity, known
}
