package definitions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Place is a position in a file. Line and column count from 1, the column in characters; both are 0 where a whole file is meant.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// A Fault is something wrong with definitions, where, and what to do about it.
type Fault struct { //nolint:errname // It is data with a place and a remedy first, and an error second.
	Place
	Path    []string `json:"path,omitempty"` // keys and numbers of elements from the root of the merged document, of what the database found
	Message string   `json:"message"`
	Remedy  string   `json:"remedy"`
}

func (f Fault) Error() string {
	if f.File == "" && len(f.Path) > 1 {
		return fmt.Sprintf("%s %q, which is defined in the database: %s", f.Path[0], f.Path[1], f.Message)
	}
	if f.File == "" {
		return f.Message
	}
	return f.String() + ": " + f.Message
}

// Faults are all that is wrong, in the order of files and lines.
type Faults []Fault //nolint:errname // as above

func (f Faults) Error() string {
	texts := make([]string, len(f))
	for i, fault := range f {
		texts[i] = fault.Error()
	}
	return strings.Join(texts, "\n")
}

// Sorted puts them in the order of files and lines.
func (f Faults) Sorted() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return f
}

// faultList collects faults while reading goes on.
type faultList struct{ faults Faults }

func (l *faultList) add(place Place, remedy, format string, arguments ...any) {
	l.faults = append(l.faults, Fault{Place: place, Message: fmt.Sprintf(format, arguments...), Remedy: remedy})
}
