package report_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

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

// A line of what is returned is cut at 998 bytes wherever the pieces end in which the message is read.
func TestLinesAreCutHoweverTheyAreRead(t *testing.T) {
	t.Parallel()
	text := "A: b\r\n\r\n" + strings.Repeat("x", 998) + "\r\n" + strings.Repeat("y", 999) + "\r\nz\r\n"
	want := "A: b\r\n\r\n" + strings.Repeat("x", 998) + "\r\n" + strings.Repeat("y", 998) + "\r\n y\r\nz\r\n"
	readers := map[string]io.Reader{"in bytes": iotest.OneByteReader(strings.NewReader(text))}
	for at := range len(text) {
		readers[fmt.Sprintf("to byte %d", at)] = io.MultiReader(strings.NewReader(text[:at]), strings.NewReader(text[at:]))
	}
	for name, reader := range readers {
		r := sample(report.Failed)
		r.Original = reader
		if got := parse(t, r).parts[2]; got != want {
			t.Errorf("read %s, %d bytes are returned, want %d", name, len(got), len(want))
		}
	}
}

// The part that people read first: what has happened, in a subject and a sentence, why, and how long it is still tried.
func TestReportSaysWhatItIsAbout(t *testing.T) {
	t.Parallel()
	const why, until = "There is no such mailbox", "It is tried until 24 Nov 2026 10:00 +0000."
	for action, c := range map[report.Action]struct {
		subject, opening string
		hasWhy, hasUntil bool
	}{
		report.Failed:    {"Undelivered mail: a message could not be delivered", "Your message could not be delivered", true, false},
		report.Delayed:   {"Delayed mail: a message is still waiting", "Your message has not been delivered", true, true},
		report.Delivered: {"Delivered mail: a message has arrived", "Your message was delivered", false, false},
		report.Relayed:   {"Relayed mail: a message was passed on", "Your message was passed on", false, false},
		report.Expanded:  {"Expanded mail: a message went to a group", "Your message went to the groups", false, false},
	} {
		got := parse(t, sample(action))
		text := strings.ReplaceAll(got.parts[0], "=\r\n", "")
		if got.header.Get("Subject") != c.subject || got.header.Get("Message-Id") != "<1@hub.example>" || !strings.Contains(text, c.opening) {
			t.Errorf("%s: %v\n%s", action, got.header, text)
		}
		if strings.Contains(text, why) != c.hasWhy || strings.Contains(text, until) != c.hasUntil || strings.Count(text, "It is tried until") > 1 {
			t.Errorf("%s: the text says\n%s", action, text)
		}
	}
}

// All of ASCII stays as it is, up to the tilde; what stands behind it is replaced, and makes an address one of another type.
func TestASCIIEndsWithTheTilde(t *testing.T) {
	t.Parallel()
	r := sample(report.Failed)
	r.Recipients[0].Final, r.Recipients[0].Text, r.Recipients[1].Status = "~b@b.example", "see /~b for caf\u00e9", "5.9.9"
	got := parse(t, r)
	if got.types[1] != "message/delivery-status" || got.groups[1].Get("Final-Recipient") != "rfc822; ~b@b.example" ||
		got.groups[1].Get("Diagnostic-Code") != "smtp; 550 see /~b for caf?" {
		t.Errorf("%s: %v", got.types[1], got.groups[1])
	}
	if strings.Contains(got.parts[0], "    \r\n") || strings.Contains(got.parts[0], "=20") {
		t.Errorf("of a status that nobody has explained the text has an empty line: %q", got.parts[0])
	}
}
