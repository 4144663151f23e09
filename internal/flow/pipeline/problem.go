package pipeline

import (
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// Problem is something wrong with definitions. Path leads to it from the root of the document, kind and name first. File, Line and Column
// are set where it is a schema that is wrong.
type Problem struct {
	Path         []string
	Message      string
	Remedy       string
	File         string
	Line, Column int
	Other        []string // the path of another definition with which this one does not go
}

func (p Problem) String() string {
	text := strings.Join(p.Path, ", ") + ": " + p.Message
	if p.File != "" {
		text += fmt.Sprintf(" (%s, line %d, column %d)", p.File, p.Line, p.Column)
	}
	if p.Remedy != "" {
		text += "; " + p.Remedy
	}
	return text
}

// Problems are the error of a pipeline that cannot be compiled.
type Problems []Problem //nolint:errname // They are data with paths and remedies first, and an error second.

func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i, one := range p {
		texts[i] = one.String()
	}
	return strings.Join(texts, "\n")
}

// ProblemOf makes a problem of an error, with the place in the schema that its fault has.
func ProblemOf(err error, path []string) Problem {
	f, is := fault.Of(err)
	if !is {
		return Problem{Path: path, Message: err.Error(), Remedy: "correct it"}
	}
	p := Problem{Path: path, Message: f.Message, Remedy: f.Remedy, File: f.File}
	if f.Field != "" && f.File != "" {
		p.Message = f.Field + ": " + p.Message
	}
	if f.Expected != "" {
		p.Message += "; expected " + f.Expected
	}
	if p.File != "" {
		p.Line, p.Column = int(f.Place.Line), f.Place.Column
	}
	return p
}
