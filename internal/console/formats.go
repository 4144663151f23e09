package console

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// formats are the functions of the templates.
var formats = template.FuncMap{
	"count":   formatCount,
	"rate":    formatRate,
	"seconds": formatSeconds,
	"size":    formatSize,
	"moment":  formatMoment,
	"state":   stateClass,
	"segment": url.PathEscape,
	"at":      func(t time.Time) *time.Time { return &t },
}

// formatCount writes 1234567 as 1,234,567.
func formatCount(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// formatRate writes a number a second; nil is a dash.
func formatRate(r *float64) string {
	switch {
	case r == nil:
		return "–"
	case *r >= 100:
		return formatCount(int64(*r + 0.5))
	case *r >= 0.05:
		return strconv.FormatFloat(*r, 'f', 1, 64)
	}
	return "0"
}

// formatSeconds writes a span in its largest unit or two, such as 3 min 20 s; nil is a dash.
func formatSeconds(s *float64) string {
	if s == nil {
		return "–"
	}
	span := time.Duration(*s * float64(time.Second))
	switch {
	case span < 10*time.Second:
		return strconv.FormatFloat(span.Seconds(), 'f', 1, 64) + " s"
	case span < time.Minute:
		return strconv.Itoa(int(span.Seconds())) + " s"
	case span < time.Hour:
		return fmt.Sprintf("%d min %d s", int(span.Minutes()), int(span.Seconds())%60)
	case span < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(span.Hours()), int(span.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(span.Hours()/24))
}

// formatSize writes a number of bytes in its unit.
func formatSize(n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, name := float64(n)/unit, "KB"
	for _, next := range []string{"MB", "GB", "TB"} {
		if value < unit {
			break
		}
		value, name = value/unit, next
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + name
}

// formatMoment writes a time to the second, in UTC; nil is a dash.
func formatMoment(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// stateClass is the class of a state in the styles: good, bad, waiting, or plain.
func stateClass(state string) string {
	switch strings.ToUpper(state) {
	case "ON", "OK", "STARTED", "ENABLED", "CONVERSING", "CONNECTED", "READY", "ACTIVE", "SERVING", "NORMAL", "YES", "DELIVER", "OPEN":
		return "good"
	case "POISONED", "ERROR", "FAILED", "FAIL", "DISCONNECTED", "HIGH", "DEAD", "SUSPENDED":
		return "bad"
	case "OFF", "WARNING", "FULL", "RETRY", "PAUSED", "MEDIUM", "DEFERRED", "STOPPED", "DISCONNECTED_INBOUND", "DISCONNECTED_OUTBOUND":
		return "warning"
	}
	return "plain"
}

// bodyMost is how many bytes of a body a page shows.
const bodyMost = 16 << 10

// body is a message's body as a page shows it.
type body struct {
	Text      string
	IsBinary  bool
	IsCut     bool
	Bytes     int64
	IsMissing bool
}

// showBody gives the beginning of a body: as text where it is text, in UTF-8 or UTF-16 with a mark, else in hexadecimal.
func showBody(content []byte, total int64) body {
	b := body{Bytes: total, IsCut: total > int64(len(content)), IsMissing: content == nil}
	text := content
	if b.IsCut {
		for len(text) > 0 && !utf8.RuneStart(text[len(text)-1]) {
			text = text[:len(text)-1]
		}
		if len(text) > 0 && text[len(text)-1] >= utf8.RuneSelf {
			text = text[:len(text)-1]
		}
	}
	if isText(text) {
		b.Text = string(text)
		return b
	}
	b.IsBinary = true
	var lines strings.Builder
	const perLine = 16
	for at := 0; at < len(content) && at < bodyMost/8; at += perLine {
		line := content[at:min(at+perLine, len(content))]
		fmt.Fprintf(&lines, "%08x  % -47x  ", at, line)
		for _, one := range line {
			if one < ' ' || one > '~' {
				one = '.'
			}
			lines.WriteByte(one)
		}
		lines.WriteByte('\n')
	}
	b.Text = lines.String()
	return b
}

func isText(content []byte) bool {
	if !utf8.Valid(content) {
		return false
	}
	for _, r := range string(content) {
		if unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
	}
	return true
}
