package script

import (
	"fmt"
	"strings"
)

// Origin is a line of a file.
type Origin struct {
	File string
	Line int // from 1
}

// Batch is the text between two GO.
type Batch struct {
	Text        string
	Count       int  // how often GO runs it; 1 without a number
	StopOnError bool // :on error exit, or -b, holds for it
	Exits       bool // EXIT(query): the script ends behind it, with the first column of its last row as the exit code
	origins     []origin
}

// origin says from which line of which file a line of the batch, and those behind it, came.
type origin struct {
	line int
	from Origin
}

// Origin gives the file and the line from which a line of the batch, counted from 1, came.
func (b *Batch) Origin(line int) Origin {
	found := Origin{Line: line}
	for _, o := range b.origins {
		if o.line > line {
			break
		}
		found = Origin{File: o.from.File, Line: o.from.Line + line - o.line}
	}
	return found
}

// isBlank says that the batch has no text, which SQL Server is never sent.
func (b *Batch) isBlank() bool { return strings.TrimSpace(b.Text) == "" }

// Error is a fault of the script around the batches.
type Error struct {
	Origin
	Message string
	Hint    string
}

func (e *Error) Error() string {
	if e.File == "" {
		return fmt.Sprintf("line %d: %s", e.Line, e.Message)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}
