package cli

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

// encodeJSON writes one document on one line, as programs read it.
func encodeJSON(out io.Writer, document any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(document)
}

// newTable aligns columns that are separated by tabs.
func newTable(out io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
}

// orNone gives a cell of a table something to show.
func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// onOff is how Service Broker's statements write a switch.
func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

// moment writes a time in a table.
func moment(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.Local().Format("2006-01-02 15:04:05")
}

// oneLine makes a text fit a cell of a table: it is cut to so many characters (0: not at all), and control characters,
// which a terminal would obey, become blanks.
func oneLine(text string, limit int) string {
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

// bodyWidth is how much of a body a table shows.
const bodyWidth = 60

// orZero gives a count that may be missing.
func orZero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// counted writes a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// reportLimit reports that there may be more.
func reportLimit(out io.Writer, shown, limit int) error {
	if limit == 0 || shown < limit {
		return nil
	}
	_, err := fmt.Fprintf(out, "%d shown; there may be more (--limit)\n", shown)
	return err
}

// isTerminal reports whether the output is a terminal.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
