package submission_test

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"net/mail"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/message"
)

// Next hops refuse lines of more than 998 bytes: a message that has one is refused, and values of JSON are folded or encoded.
func TestLinesAreNotTooLong(t *testing.T) {
	t.Parallel()
	h, s := newHandler(t)
	h.MessageBytes = 100_000
	const head = "From: ann@example.com\nTo: bob@example.net\n"
	for text, want := range map[string]int{
		head + "\n" + strings.Repeat("z", 998) + "\n": 202, head + "\n" + strings.Repeat("z", 999): 400, head + "\n\r\n" + strings.Repeat("\u00e4", 500): 400,
		head + "X: " + strings.Repeat("z", 996) + "\n\nx": 400, head + "X: " + strings.Repeat("z", 995) + "\n\nx": 202,
	} {
		if status, answer := post(t, h, "message/rfc822", text); status != want || want == 400 && !strings.Contains(answer, "may have 998") {
			t.Errorf("%.80q: %d %s", text, status, answer)
		}
	}
	long := strings.Repeat("z", 3000)
	status, answer := post(t, h, "application/json", `{"from": "ann@example.com", "to": ["`+long+` <bob@example.net>", "`+strings.Repeat("ü", 2000)+` <bob@example.org>"], "subject": "`+long+`", "text": "`+long+`",
		"headers": {"X-A": "`+long+`", "References": "`+strings.Repeat("<a@b> ", 300)+`"}}`)
	if status != http.StatusAccepted || message.LinesOf([]byte(s.text)).AreTooLong() {
		t.Fatalf("%d %s: the longest line has %d bytes", status, answer, message.LinesOf([]byte(s.text)).Longest)
	}
	m, err := mail.ReadMessage(strings.NewReader(s.text))
	if err != nil {
		t.Fatal(err)
	}
	if subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil || subject != long || !strings.HasPrefix(m.Header.Get("References"), "<a@b> <a@b>") {
		t.Errorf("the header is %v: %v", m.Header, err)
	}
}

// A message is attached as it is (RFC 2046 section 5.2.1), and one with bytes above 127 says so as a whole.
func TestMessageIsAttachedToJSON(t *testing.T) {
	t.Parallel()
	h, s := newHandler(t)
	const asked = `{"from": "ann@example.com", "to": ["bob@example.net"], "text": "x", "attachments": [{"name": "%s", "content_type": "%s", "content": "%s"}]}`
	for _, c := range []struct {
		inner, encoding string
		body            message.BodyType
	}{
		{"From: a@b\nSubject: inner\n\nhello", "7bit", ""}, {"From: a@b\r\n\r\nf\xfcr\r\n", "8bit", "8BITMIME"},
	} {
		status, answer := post(t, h, "application/json", fmt.Sprintf(asked, "", "message/rfc822", base64.StdEncoding.EncodeToString([]byte(c.inner))))
		want := "Content-Disposition: attachment\r\nContent-Transfer-Encoding: " + c.encoding + "\r\nContent-Type: message/rfc822\r\n\r\n" +
			strings.ReplaceAll(strings.ReplaceAll(c.inner, "\r\n", "\n"), "\n", "\r\n") + "\r\n"
		if status != http.StatusAccepted || !strings.Contains(s.text, want) || s.envelope.BodyType != c.body {
			t.Fatalf("%d %s: body type %q, message %q", status, answer, s.envelope.BodyType, s.text)
		}
		if m, err := mail.ReadMessage(strings.NewReader(s.text)); err != nil || m.Header.Get("Content-Transfer-Encoding") != c.encoding {
			t.Errorf("as a whole it is %q (%v)", m.Header.Get("Content-Transfer-Encoding"), err)
		}
	}
	if status, _ := post(t, h, "application/json", fmt.Sprintf(asked, "x", "message/partial", "")); status != http.StatusBadRequest {
		t.Errorf("another kind of message got %d", status)
	}
}

// Each text is one address, whatever its name has, as in SQL.
func TestNameOfAnAddressNeedsNoQuotes(t *testing.T) {
	t.Parallel()
	h, s := newHandler(t)
	for written, want := range map[string]string{
		"Doe, John <john@example.net>": `"Doe, John" <john@example.net>`, "Dr. Doe; (x) <john@example.net>": `"Dr. Doe; (x)" <john@example.net>`,
		"M\u00fcller, Karl <k@example.net>": "=?utf-8?B?TcO8bGxlciwgS2FybA==?= <k@example.net>",
		"a@b.c, d@e.f":                      "", "a@b.c <d@e.f>": `"a@b.c" <d@e.f>`, "x <y> <a@b.c>": `"x <y>" <a@b.c>`, "Doe, John <john>": "",
	} {
		status, answer := post(t, h, "application/json", `{"from": "ann@example.com", "to": ["`+written+`"], "text": "x"}`)
		switch {
		case want == "" && status != http.StatusBadRequest:
			t.Errorf("%q got %d", written, status)
		case want != "" && (status != http.StatusAccepted || !strings.Contains(s.text, "\r\nTo: "+want+"\r\n")):
			t.Errorf("%q: %d %s: %q", written, status, answer, s.text)
		}
	}
}
