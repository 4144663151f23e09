package session

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A Format is how a TextSink writes, as the options of sqlcmd say. It may change between two statements.
type Format struct {
	Separator   string // between columns: -s
	HeadingRows int    // rows between two headings: -h. 0 for one heading a result set, -1 for none
	IsTrimmed   bool   // no blanks at the end of columns: -W
	Width       int    // of a line in characters: -w. 0 for no end
	MaxVariable int    // of columns of (max) types and xml in characters: -y. 0 for no end
	MaxFixed    int    // of columns of other text and binary types: -Y. 0 for no end
	Control     int    // control characters: 0 as they are, 1 as a blank each, 2 as a blank for several: -k
	ErrorLevel  int    // the least severity of messages that are shown: -m. -1 for all, with headers
	IsStream    bool   // values alone, one behind the other, without headings and counts: :xml on
}

// DefaultFormat is that of sqlcmd without options, but that lines do not end at 80 characters.
func DefaultFormat() Format { return Format{Separator: " ", MaxVariable: 256} }

// width gives the width of a column; -1 for one that has none.
func (f *Format) width(c Column) int {
	width, most := value.DisplayWidth(c.Type), f.most(c)
	if f.IsTrimmed || width < 0 && most == 0 {
		return -1
	}
	if width < 0 || most > 0 && most < width {
		width = most
	}
	return max(width, utf8.RuneCountInString(c.Name), len("NULL"))
}

// most gives how many characters of a value are shown; 0 for all.
func (f *Format) most(c Column) int {
	switch k := c.Type.Kind; {
	case value.DisplayWidth(c.Type) < 0:
		return f.MaxVariable
	case k.IsCharacter(), k.IsBinary(), k == value.Variant:
		return f.MaxFixed
	}
	return 0
}

// cell gives the text of a value of a column, cut but not padded.
func (f *Format) cell(v value.Value, c Column) string {
	text := value.Display(v)
	most := f.most(c)
	if most > 0 && utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most])
	}
	if f.Control > 0 {
		text = f.withoutControls(text)
	}
	if f.IsTrimmed {
		text = strings.TrimRight(text, " ")
	}
	return text
}

// withoutControls puts blanks in the place of control characters.
func (f *Format) withoutControls(text string) string {
	var b strings.Builder
	wasControl := false
	for _, r := range text {
		isControl := unicode.IsControl(r)
		switch {
		case !isControl:
			b.WriteRune(r)
		case f.Control == 1 || !wasControl:
			b.WriteByte(' ')
		}
		wasControl = isControl
	}
	return b.String()
}

// lines gives a line, cut where the screen ends.
func (f *Format) lines(line string) string {
	if f.Width <= 0 || utf8.RuneCountInString(line) <= f.Width {
		return line + "\n"
	}
	var b strings.Builder
	for runes := []rune(line); len(runes) > 0; {
		n := min(f.Width, len(runes))
		b.WriteString(string(runes[:n]) + "\n")
		runes = runes[n:]
	}
	return b.String()
}

// shows reports whether a message is shown, and whether below a header.
func (f *Format) shows(m *fault.Error) (isShown, hasHeader bool) {
	return m.Severity >= f.ErrorLevel, !m.IsInformational() || f.ErrorLevel < 0
}
