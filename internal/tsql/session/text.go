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
	Server string // the name that stands in the header of an error; none where it is empty
	Format Format
	// Messages says where a message goes; nil for where the rows go.
	Messages func(m *fault.Error) io.Writer

	out     *bufio.Writer
	columns []Column
	widths  []int
	rows    int // of the result set so far
}

// NewTextSink gives a sink that writes to out.
func NewTextSink(out io.Writer) *TextSink {
	return &TextSink{Format: DefaultFormat(), out: bufio.NewWriter(out)}
}

// Redirect writes to another place from now on. Lines that are held back go to the place before.
func (t *TextSink) Redirect(out io.Writer) error {
	err := t.out.Flush()
	t.out.Reset(out)
	return err
}

// Columns writes the headings.
func (t *TextSink) Columns(columns []Column) error {
	t.columns, t.widths, t.rows = columns, t.widths[:0], 0
	for _, c := range columns {
		t.widths = append(t.widths, t.Format.width(c))
	}
	if t.Format.HeadingRows < 0 || t.Format.IsStream {
		return nil
	}
	return t.headings()
}

func (t *TextSink) headings() error {
	names, dashes := make([]string, len(t.columns)), make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = pad(c.Name, t.widths[i])
		dashes[i] = strings.Repeat("-", utf8.RuneCountInString(names[i]))
	}
	return t.line(names, dashes)
}

// line writes lines of cells.
func (t *TextSink) line(lines ...[]string) error {
	for _, cells := range lines {
		if _, err := t.out.WriteString(t.Format.lines(strings.Join(cells, t.Format.Separator))); err != nil {
			return err
		}
	}
	return nil
}

// Row writes a row: numbers to the right, all else to the left.
func (t *TextSink) Row(row []value.Value) error {
	if t.Format.HeadingRows > 0 && t.rows > 0 && t.rows%t.Format.HeadingRows == 0 && !t.Format.IsStream {
		if _, err := t.out.WriteString("\n"); err != nil {
			return err
		}
		if err := t.headings(); err != nil {
			return err
		}
	}
	t.rows++
	cells := make([]string, len(row))
	for i, v := range row {
		text := t.Format.cell(v, t.columns[i])
		if t.Format.IsStream {
			if _, err := t.out.WriteString(text); err != nil {
				return err
			}
			continue
		}
		if k := t.columns[i].Type.Kind; k.IsNumber() && k != value.Bit || k == value.Unknown {
			cells[i] = strings.Repeat(" ", max(t.widths[i]-len(text), 0)) + text
		} else {
			cells[i] = pad(text, t.widths[i])
		}
	}
	if t.Format.IsStream {
		return nil
	}
	return t.line(cells)
}

// pad gives a text its width; -1 for a column that has none.
func pad(text string, width int) string {
	length := utf8.RuneCountInString(text)
	switch {
	case width < 0:
		return text
	case length > width:
		return string([]rune(text)[:width])
	}
	return text + strings.Repeat(" ", width-length)
}

// Done writes the count of rows, and a blank line before it.
func (t *TextSink) Done(done Done) error {
	text := ""
	switch {
	case t.Format.IsStream && done.HasRows:
		text = "\n"
	case t.Format.IsStream:
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
	isShown, hasHeader := t.Format.shows(m)
	if !isShown {
		return nil
	}
	text := ""
	if hasHeader {
		text = fmt.Sprintf("Msg %d, Level %d, State %d", m.Number, m.Severity, m.State)
		if t.Server != "" {
			text += ", Server " + t.Server
		}
		if m.Procedure != "" {
			text += ", Procedure " + m.Procedure
		}
		text += fmt.Sprintf(", Line %d\n", m.Line)
	}
	text += m.Message + "\n"
	if t.Messages != nil {
		if elsewhere := t.Messages(m); elsewhere != nil {
			// Rows that came before stand before it where both are one terminal.
			if err := t.out.Flush(); err != nil {
				return err
			}
			_, err := io.WriteString(elsewhere, text)
			return err
		}
	}
	_, err := t.out.WriteString(text)
	return err
}

// Flush writes what is held back.
func (t *TextSink) Flush() error { return t.out.Flush() }
