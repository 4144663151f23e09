package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/report"
)

// fieldsOf gives the lines of the part that programs read.
func fieldsOf(t *testing.T, r report.Report) []string {
	t.Helper()
	var written bytes.Buffer
	if err := r.Write(&written); err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(written.String(), "Content-Type: message/delivery-status\r\n\r\n")
	part, _, _ = strings.Cut(part, "\r\n--")
	return strings.Split(part, "\r\n")
}

// A field is folded at a blank where its line would have more than 78 bytes; what has 78 is not. A word of more than 900 bytes is cut.
func TestFieldsAreFoldedAtSeventyEightBytes(t *testing.T) {
	t.Parallel()
	const name = "Diagnostic-Code: smtp; 550 "
	fits := strings.Repeat("x", 78-len(name)-2)
	for text, want := range map[string]string{
		fits + " y":                name + fits + " y",
		fits + "z y":               name + fits + "z|  y",
		fits + " y z":              name + fits + " y|  z",
		strings.Repeat("w ", 100):  "",
		strings.Repeat("q", 900):   name[:len(name)-1] + "|  " + strings.Repeat("q", 900),
		strings.Repeat("q", 901):   name[:len(name)-1] + "|  " + strings.Repeat("q", 900) + "|  q",
		strings.Repeat("ab ", 200): "",
	} {
		r := sample(report.Failed)
		r.Original, r.Recipients[0].Text = strings.NewReader(original), text
		lines := fieldsOf(t, r)
		found := ""
		for i, line := range lines {
			if strings.HasPrefix(line, "Diagnostic-Code: smtp") {
				found = line
				for _, rest := range lines[i+1:] {
					if !strings.HasPrefix(rest, " ") {
						break
					}
					found += "| " + rest
				}
			}
			if len(line) > 78 && len(strings.Fields(line)) > 1 && want == "" {
				t.Errorf("of %.20q a line has %d bytes: %q", text, len(line), line)
			}
		}
		if want != "" && found != want {
			t.Errorf("%.100q is written as\n%q, want\n%q", text, found, want)
		}
	}
}

// Of a header 256 KB are returned.
func TestHeaderThatIsReturnedIsBounded(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]int{6000: 6000, 256<<10 - 4: 256<<10 - 4, 256<<10 + 2: 256 << 10, 1 << 20: 256 << 10} {
		r := sample(report.Failed)
		r.HeadersOnly = true
		header := strings.Repeat("X: y\r\n", length/6+1)[:length-2] + "\r\n"
		r.Original = strings.NewReader(header + "\r\nbody")
		if got := parse(t, r).parts[2]; len(got) != want || !strings.HasPrefix(header, got) {
			t.Errorf("of a header of %d bytes %d are returned, want %d", length, len(got), want)
		}
	}
}
