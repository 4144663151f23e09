package session

import (
	"bufio"
	"encoding/json"
	"io"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A JSONSink writes one object a line for programs: {"columns": [{"name": ..., "type": ...}]}, {"row": [...]}, {"rows_affected": n}
// and {"message": {...}}. Values are texts as a result set shows them; NULL is null.
type JSONSink struct {
	out *bufio.Writer
}

// NewJSONSink gives a sink that writes to out.
func NewJSONSink(out io.Writer) *JSONSink { return &JSONSink{out: bufio.NewWriter(out)} }

func (j *JSONSink) write(object any) error {
	encoder := json.NewEncoder(j.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(object)
}

// Columns writes the names and types of a result set.
func (j *JSONSink) Columns(columns []Column) error {
	type column struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	described := make([]column, len(columns))
	for i, c := range columns {
		described[i] = column{c.Name, c.Type.String()}
	}
	return j.write(map[string]any{"columns": described})
}

// Row writes a row.
func (j *JSONSink) Row(row []value.Value) error {
	cells := make([]*string, len(row))
	for i, v := range row {
		if !v.IsNull() {
			text := value.Display(v)
			cells[i] = &text
		}
	}
	return j.write(map[string]any{"row": cells})
}

// Done writes the count of rows.
func (j *JSONSink) Done(done Done) error {
	if !done.HasCount {
		return nil
	}
	return j.write(map[string]any{"rows_affected": done.Count})
}

// Message writes an error or a text.
func (j *JSONSink) Message(m *fault.Error) error { return j.write(map[string]any{"message": m}) }

// Flush writes what is held back.
func (j *JSONSink) Flush() error { return j.out.Flush() }
