package report_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/mail/report"
)

const original = "From: a@a.example\r\nSubject: hello\r\n\r\nbody\r\n"

func sample(action report.Action) report.Report {
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	return report.Report{
		Action: action, ReportingMTA: "hub.example", Postmaster: "postmaster@hub.example", To: "a@a.example", EnvelopeID: "QQ31",
		ReceivedFrom: "client.example", Arrived: at, Date: at.Add(time.Hour), MessageID: "1@hub.example", Original: strings.NewReader(original),
		Recipients: []report.Recipient{
			{Final: "b@b.example", Original: "rfc822;list@c.example", Status: "5.1.1", Text: "5.1.1 no such user", Remote: "mx.b.example", Code: 550, LastAttempt: at},
			{Final: "c@b.example", Status: "5.4.7", Text: "expired", RetryUntil: at.Add(24 * time.Hour), LogID: "17"},
		},
	}
}

// parsed is a report as a mail program sees it.
type parsed struct {
	header mail.Header
	parts  []string
	types  []string
	groups []textproto.MIMEHeader
}

func parse(t interface{ Fatal(...any) }, r report.Report) parsed {
	var written bytes.Buffer
	if err := r.Write(&written); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(bytes.ReplaceAll(written.Bytes(), []byte("\r\n"), nil), []byte("\n")) {
		t.Fatal("a line does not end with CRLF")
	}
	message, err := mail.ReadMessage(&written)
	if err != nil {
		t.Fatal(err)
	}
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/report" {
		t.Fatal(kind, err)
	}
	result := parsed{header: message.Header}
	reader := multipart.NewReader(message.Body, parameters["boundary"])
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if kind != "message/"+parameters["report-type"] && strings.HasSuffix(kind, "status") {
			t.Fatal("the report is of type", parameters["report-type"], "and has a part of type", kind)
		}
		result.types, result.parts = append(result.types, kind), append(result.parts, string(content))
	}
	if len(result.parts) != 3 {
		t.Fatal("parts are", result.types)
	}
	lines := textproto.NewReader(bufio.NewReader(strings.NewReader(result.parts[1] + "\r\n\r\n")))
	for {
		group, err := lines.ReadMIMEHeader()
		if len(group) > 0 {
			result.groups = append(result.groups, group)
		}
		if err != nil || len(group) == 0 {
			return result
		}
	}
}

func TestReportHasItsThreeParts(t *testing.T) {
	t.Parallel()
	got := parse(t, sample(report.Failed))
	if strings.Join(got.types, " ") != "text/plain message/delivery-status message/rfc822" {
		t.Errorf("parts are %v", got.types)
	}
	if got.header.Get("Auto-Submitted") != "auto-replied" || got.header.Get("To") != "<a@a.example>" {
		t.Errorf("header is %v", got.header)
	}
	if got.parts[2] != original {
		t.Errorf("returned %q", got.parts[2])
	}
	for _, wanted := range []string{"b@b.example", "There is no such mailbox", "550 5.1.1 no such user"} {
		if !strings.Contains(got.parts[0], wanted) {
			t.Errorf("the text does not say %q:\n%s", wanted, got.parts[0])
		}
	}
}

func TestFieldsAreThoseOfRFC3464(t *testing.T) {
	t.Parallel()
	got := parse(t, sample(report.Delayed))
	if len(got.groups) != 3 {
		t.Fatalf("groups are %v", got.groups)
	}
	for i, want := range []map[string]string{
		{
			"Original-Envelope-Id": "QQ31", "Reporting-Mta": "dns; hub.example", "Received-From-Mta": "dns; client.example",
			"Arrival-Date": "Mon, 23 Nov 2026 10:00:00 +0000",
		},
		{
			"Original-Recipient": "rfc822;list@c.example", "Final-Recipient": "rfc822; b@b.example", "Action": "delayed", "Status": "5.1.1",
			"Remote-Mta": "dns; mx.b.example", "Diagnostic-Code": "smtp; 550 5.1.1 no such user", "Last-Attempt-Date": "Mon, 23 Nov 2026 10:00:00 +0000",
		},
		{
			"Final-Recipient": "rfc822; c@b.example", "Action": "delayed", "Status": "5.4.7", "Diagnostic-Code": "x-parley; expired",
			"Final-Log-Id": "17", "Will-Retry-Until": "Tue, 24 Nov 2026 10:00:00 +0000",
		},
	} {
		if len(got.groups[i]) != len(want) {
			t.Errorf("group %d is %v", i, got.groups[i])
		}
		for name, value := range want {
			if got.groups[i].Get(name) != value {
				t.Errorf("%s is %q, want %q", name, got.groups[i].Get(name), value)
			}
		}
	}
}

func TestHeadersAloneAreReturned(t *testing.T) {
	t.Parallel()
	r := sample(report.Failed)
	r.HeadersOnly = true
	got := parse(t, r)
	if got.types[2] != "text/rfc822-headers" || got.parts[2] != "From: a@a.example\r\nSubject: hello\r\n" {
		t.Errorf("returned %s %q", got.types[2], got.parts[2])
	}
}

func TestAddressBeyondASCIIHasATypeOfItsOwn(t *testing.T) {
	t.Parallel()
	r := sample(report.Failed)
	r.Recipients[0].Final = "jürgen@b.example"
	got := parse(t, r)
	if got.types[2] != "message/global" {
		t.Errorf("what is returned has the type %s", got.types[2])
	}
	if got.types[1] != "message/global-delivery-status" || got.groups[1].Get("Final-Recipient") != "utf-8; jürgen@b.example" {
		t.Errorf("%s %v", got.types[1], got.groups[1])
	}
}

// The part that programs read has 7-bit lines, and the message that is returned may have others: a whole says that of its parts.
func TestBytesBeyondASCIIStandWhereTheReportSaysSo(t *testing.T) {
	t.Parallel()
	r := sample(report.Failed)
	r.Recipients[0].Text = "kein Postfach für b"
	r.Original = strings.NewReader("Subject: x\r\n\r\nfür\r\n")
	got := parse(t, r)
	if text := got.groups[1].Get("Diagnostic-Code"); text != "smtp; 550 kein Postfach f?r b" {
		t.Errorf("the diagnostic is %q", text)
	}
	if got.header.Get("Content-Transfer-Encoding") != "8bit" || !strings.Contains(got.parts[2], "für") {
		t.Errorf("header %v, returned %q", got.header, got.parts[2])
	}
}

// A reply is repeated as it was received: without a status that the host did not say, and with that which it said of another class.
func TestReplyIsRepeatedAsItWasReceived(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"no such user", "5.1.1 no such user", "2.1.0 odd", "5.7.1 no; 5.7.1 see https://x", ""} {
		r := sample(report.Failed)
		r.Original, r.Recipients[0].Text = strings.NewReader(original), text
		got := parse(t, r)
		if want := strings.TrimSpace("smtp; 550 " + text); got.groups[1].Get("Diagnostic-Code") != want {
			t.Errorf("the diagnostic is %q, want %q", got.groups[1].Get("Diagnostic-Code"), want)
		}
		if got.groups[1].Get("Status") != "5.1.1" {
			t.Errorf("the status is %s", got.groups[1].Get("Status"))
		}
	}
}

// No line has more than 998 bytes, whatever a host has replied: other hosts refuse longer ones.
func TestLinesOfAReportAreNotTooLong(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("x", 1000), strings.Repeat("word ", 200), "a " + strings.Repeat("y", 950), strings.Repeat("ü", 500)} {
		r := sample(report.Failed)
		r.Original = strings.NewReader("A: " + strings.Repeat("h", 3000) + "\r\nB: " + strings.Repeat("i", 995) + "\r\n\r\n" + strings.Repeat("j", 1997) + "\r\nend")
		r.Recipients[0].Text, r.Recipients[0].Remote = text, strings.Repeat("m", 255)
		var written bytes.Buffer
		if err := r.Write(&written); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(written.String(), "\r\n") {
			if len(line) > 998 {
				t.Errorf("a line has %d bytes: %.60s", len(line), line)
			}
		}
		for letter, want := range map[string]int{"h": 3000, "i": 995, "j": 1997} {
			if n := strings.Count(written.String(), strings.Repeat(letter, 900)); n != want/995 {
				t.Errorf("%d lines of %s", n, letter)
			}
		}
		if !strings.Contains(written.String(), "A: "+strings.Repeat("h", 995)+"\r\n "+strings.Repeat("h", 997)+"\r\n ") ||
			!strings.Contains(written.String(), "\r\nB: "+strings.Repeat("i", 995)+"\r\n\r\n") {
			t.Error("the header is not cut where it has to be")
		}
		r.Original = strings.NewReader(original)
		got := strings.ReplaceAll(parse(t, r).groups[1].Get("Diagnostic-Code"), " ", "")
		if want := strings.ReplaceAll("smtp; 550 "+strings.ReplaceAll(text, "ü", "?"), " ", ""); got != want {
			t.Errorf("the diagnostic is %q", got)
		}
	}
}

// A host without a name has its address in brackets.
func TestAddressOfAHostStandsInBrackets(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.7": "dns; [192.0.2.7]", "2001:db8::7": "dns; [IPv6:2001:db8::7]", "::ffff:192.0.2.7": "dns; [192.0.2.7]",
		"[192.0.2.7]": "dns; [192.0.2.7]", "mx.b.example": "dns; mx.b.example",
	} {
		r := sample(report.Failed)
		r.Original, r.Recipients[0].Remote, r.ReceivedFrom = strings.NewReader(original), remote, remote
		got := parse(t, r)
		if got.groups[1].Get("Remote-Mta") != want || got.groups[0].Get("Received-From-Mta") != want {
			t.Errorf("%s is %v", remote, got.groups[:2])
		}
	}
}

// An address that the host could not take is written as it was: a header is no address.
func TestTextSaysWhatTheHostCannotTake(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{
		"5.6.7": "addresses with other than ASCII letters", "5.6.9": "other than ASCII letters in its header", "5.6.3": "with these contents",
		"5.4.4": "not known where mail for this domain goes",
	} {
		r := sample(report.Failed)
		r.Original, r.Recipients[0].Status = strings.NewReader(original), status
		if got := parse(t, r); !strings.Contains(got.parts[0], want) {
			t.Errorf("of %s it says %s", status, got.parts[0])
		}
	}
}

func TestNothingFromOutsideAddsAField(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hostile := rapid.StringOf(rapid.SampledFrom([]rune("a:\r\n -=_\x00é"))).Draw(t, "hostile")
		r := sample(report.Failed)
		r.Original = strings.NewReader(original)
		r.Recipients[0].Text, r.Recipients[0].Remote, r.EnvelopeID = hostile, "x"+hostile, "x"+hostile
		got := parse(t, r)
		if len(got.groups) != 3 || len(got.groups[1]) != 7 || len(got.groups[0]) != 4 {
			t.Fatal("fields are", got.groups)
		}
	})
}
