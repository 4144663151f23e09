package verb

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// EncodeJSON writes one document on one line, as programs read it.
func EncodeJSON(out io.Writer, document any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(document)
}

// NewTable aligns columns that are separated by tabs.
func NewTable(out io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
}

// OrNone gives a cell of a table something to show.
func OrNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// OnOff is how Service Broker's statements write a switch.
func OnOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

// Moment writes a time in a table.
func Moment(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.Local().Format("2006-01-02 15:04:05")
}

// OneLine makes a text fit a cell of a table: it is cut to so many characters (0: not at all), and control characters,
// which a terminal would obey, become blanks.
func OneLine(text string, limit int) string {
	count := 0
	for i := range text {
		count++
		if limit > 0 && count > limit {
			text = text[:i] + "…"
			break
		}
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// BodyWidth is how much of a body a table shows.
const BodyWidth = 60

// OrZero gives a count that may be missing.
func OrZero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// OrEmpty gives a text that may be missing.
func OrEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// Counted writes a number with its noun.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ReportLimit reports that there may be more.
func ReportLimit(out io.Writer, shown, limit int) error {
	if limit == 0 || shown < limit {
		return nil
	}
	_, err := fmt.Fprintf(out, "%d shown; there may be more (--limit)\n", shown)
	return err
}

// IsTerminal reports whether the output is a terminal.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
