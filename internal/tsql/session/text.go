package session

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A TextSink writes as sqlcmd does: headings, dashes, rows in columns, row counts, and messages with their header.
type TextSink struct {
	Server     string // the name that stands in the header of an error; none where it is empty
	MaxWidth   int    // of columns of (max) types and xml, in characters; 0 for sqlcmd's own 256
	out        *bufio.Writer
	columns    []Column
	widths     []int
	HasErrors  bool // a message of severity 11 or more was written
	worstLevel int
}

// maxTypeWidth is sqlcmd's width of columns of (max) types.
const maxTypeWidth = 256

// NewTextSink gives a sink that writes to out.
func NewTextSink(out io.Writer) *TextSink { return &TextSink{out: bufio.NewWriter(out)} }

// Columns writes the headings.
func (t *TextSink) Columns(columns []Column) error {
	t.columns, t.widths = columns, t.widths[:0]
	names, dashes := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		width := value.DisplayWidth(c.Type)
		if width < 0 {
			width = maxTypeWidth
			if t.MaxWidth > 0 {
				width = t.MaxWidth
			}
		}
		width = max(width, utf8.RuneCountInString(c.Name), len("NULL"))
		t.widths = append(t.widths, width)
		names[i], dashes[i] = pad(c.Name, width), strings.Repeat("-", width)
	}
	_, err := fmt.Fprintf(t.out, "%s\n%s\n", strings.Join(names, " "), strings.Join(dashes, " "))
	return err
}

// Row writes a row: numbers to the right, all else to the left.
func (t *TextSink) Row(row []value.Value) error {
	cells := make([]string, len(row))
	for i, v := range row {
		text := value.Display(v)
		if k := t.columns[i].Type.Kind; k.IsNumber() && k != value.Bit || k == value.Unknown {
			cells[i] = strings.Repeat(" ", max(t.widths[i]-len(text), 0)) + text
		} else {
			cells[i] = pad(text, t.widths[i])
		}
	}
	_, err := fmt.Fprintf(t.out, "%s\n", strings.Join(cells, " "))
	return err
}

func pad(text string, width int) string {
	length := utf8.RuneCountInString(text)
	if length > width {
		return string([]rune(text)[:width])
	}
	return text + strings.Repeat(" ", width-length)
}

// Done writes the count of rows, and a blank line before it.
func (t *TextSink) Done(done Done) error {
	text := ""
	switch {
	case done.HasCount:
		text = fmt.Sprintf("\n(%d rows affected)\n", done.Count)
	case done.HasRows:
		text = "\n"
	}
	_, err := t.out.WriteString(text)
	return err
}

// Message writes a text of severities to 10 alone, and an error below its header.
func (t *TextSink) Message(m *fault.Error) error {
	if m.IsInformational() {
		_, err := fmt.Fprintf(t.out, "%s\n", m.Message)
		return err
	}
	t.HasErrors, t.worstLevel = true, max(t.worstLevel, m.Severity)
	header := fmt.Sprintf("Msg %d, Level %d, State %d", m.Number, m.Severity, m.State)
	if t.Server != "" {
		header += ", Server " + t.Server
	}
	if m.Procedure != "" {
		header += ", Procedure " + m.Procedure
	}
	_, err := fmt.Fprintf(t.out, "%s, Line %d\n%s\n", header, m.Line, m.Message)
	return err
}

// WorstLevel gives the greatest severity of the errors so far, 0 without one.
func (t *TextSink) WorstLevel() int { return t.worstLevel }

// Flush writes what is held back.
func (t *TextSink) Flush() error { return t.out.Flush() }
