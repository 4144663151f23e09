package parser

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/token"
)

// Error is a fault of syntax, with the number and the text that SQL Server gives it.
type Error struct {
	Number   int
	Severity int
	State    int
	Line     int // of the batch, from 1
	Column   int // in characters, from 1
	Offset   int // in bytes, from 0
	Message  string
	Expected string // the tokens that would have fitted, or empty
}

func (e *Error) Error() string {
	return fmt.Sprintf("Msg %d, Level %d, State %d, Line %d: %s", e.Number, e.Severity, e.State, e.Line, e.Message)
}

// fail refuses the current token. The list says which tokens would have fitted.
func (p *parser) fail(expected ...string) {
	p.failAt(p.at, expected...)
}

// failAt refuses a token by its number.
func (p *parser) failAt(at int, expected ...string) {
	t := &p.tokens[at]
	found := p.text[t.Offset:t.End]
	number, message := 102, "Incorrect syntax near '%s'."
	switch {
	case t.Kind == token.EOF:
		if at > 0 {
			last := &p.tokens[at-1]
			found = p.text[last.Offset:last.End]
		}
	case t.Is("WITH"):
		number = 319
		message = "Incorrect syntax near the keyword '%s'. If this statement is a common table expression, an xmlnamespaces clause or " +
			"a change tracking context clause, the previous statement must be terminated with a semicolon."
	case t.Reserved:
		number, message = 156, "Incorrect syntax near the keyword '%s'."
	case p.opensCommonTable(at):
		number = 336
		message = "Incorrect syntax near '%s'. If this is intended to be a common table expression, you need to explicitly terminate " +
			"the previous statement with a semi-colon."
	case t.Kind == token.Bracketed || t.Kind == token.DoubleQuoted || t.Kind == token.String || t.Kind == token.NationalString:
		found = t.Text
	}
	expected = slices.Compact(expected)
	panic(&Error{
		Number: number, Severity: 15, State: 1, Line: t.Line, Column: t.Column, Offset: t.Offset,
		Message: fmt.Sprintf(message, found), Expected: strings.Join(expected, ", "),
	})
}

// opensCommonTable says that a name stands behind WITH and before AS ( or a list of columns.
func (p *parser) opensCommonTable(at int) bool {
	if at == 0 || !p.tokens[at-1].Is("WITH") || !p.tokens[at].IsName() || at+1 >= len(p.tokens) {
		return false
	}
	return p.tokens[at+1].Is("AS")
}

// refuse raises an error other than one of syntax, at the place of a token.
func (p *parser) refuse(at, number, severity int, format string, arguments ...any) {
	refuseToken(&p.tokens[at], number, severity, format, arguments...)
}

func refuseToken(t *token.Token, number, severity int, format string, arguments ...any) {
	panic(&Error{
		Number: number, Severity: severity, State: 1, Line: t.Line, Column: t.Column, Offset: t.Offset,
		Message: fmt.Sprintf(format, arguments...),
	})
}
