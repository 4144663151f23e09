package downgrade_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/parley-broker/parley/internal/mail/downgrade"
	"github.com/parley-broker/parley/internal/mail/message"
)

// converted gives the converted form of a message, and requires that it is read in pieces as at once, and is as long as the plan says.
func converted(t testing.TB, text string) string {
	t.Helper()
	plan, err := downgrade.NewPlan(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil })
	if err != nil {
		t.Fatalf("%v: %.300q", err, text)
	}
	got, err := io.ReadAll(plan.Reader(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	slow, err := io.ReadAll(plan.Reader(iotest.OneByteReader(strings.NewReader(text))))
	if err != nil || !bytes.Equal(got, slow) {
		t.Errorf("read byte by byte it is %q and not %q (%v)", slow, got, err)
	}
	if int64(len(got)) != plan.Size {
		t.Errorf("it has %d bytes, and the plan says %d", len(got), plan.Size)
	}
	return string(got)
}

func crlf(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

func TestPartsBecomeQuotedPrintable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, given, want string }{
		{"ASCII", "A: 1\nContent-Type: text/plain\n\n.x  \n", "A: 1\nContent-Type: text/plain\n\n.x  \n"},
		{"declared without need", "Content-Transfer-Encoding: 8bit\n\nx\n", "Content-Transfer-Encoding: 7bit\n\nx\n"},
		{
			"declared", "MIME-Version: 1.0\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: 8bit\n\nf\xfcr =\n.\nx \n",
			"MIME-Version: 1.0\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nf=FCr =3D\n.\nx=20\n",
		},
		{
			"nothing declared, UTF-8", "Subject: x\n\nfür\n",
			"Subject: x\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\nf=C3=BCr\n",
		},
		{
			"nothing declared, of an unknown charset", "Subject: x\n\nf\xfcr\n",
			"Subject: x\nMIME-Version: 1.0\nContent-Type: text/plain; charset=unknown-8bit\nContent-Transfer-Encoding: quoted-printable\n\nf=FCr\n",
		},
		{
			"part by part", "Content-Type: multipart/mixed; odd=\"; boundary=\"b c\"\nContent-Transfer-Encoding: 8bit\n\npreamble ü\n--b c\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nä\n--b c  \nContent-Type: text/html; charset=utf-8\n\nö\n--b c\nContent-Transfer-Encoding: 8bit\n\nplain\n--b c\n\nbare ü\n--b c\nContent-Transfer-Encoding: base64\n\nAAAA\n--b c--\nepilogue ü\n",
			"Content-Type: multipart/mixed; odd=\"; boundary=\"b c\"\nContent-Transfer-Encoding: 7bit\n\npreamble ??\n--b c\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n=C3=A4\n--b c  \nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n=C3=B6\n--b c\nContent-Transfer-Encoding: 7bit\n\nplain\n--b c\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\nbare =C3=BC\n--b c\nContent-Transfer-Encoding: base64\n\nAAAA\n--b c--\nepilogue ??\n",
		},
		{
			"parts in parts", "Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: multipart/alternative; boundary=i\n\n--i\n\nä\n--i--\n--o\n\nx\n--o--\n",
			"Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: multipart/alternative; boundary=i\n\n--i\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n=C3=A4\n--i--\n--o\n\nx\n--o--\n",
		},
		{
			"a message in it", "Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: message/rfc822\nContent-Transfer-Encoding: 8bit\n\nSubject: ä b\n\nü\n--o--\n",
			"Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: message/rfc822\nContent-Transfer-Encoding: 7bit\n\nSubject: =?utf-8?B?w6Q=?= b\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n=C3=BC\n--o--\n",
		},
		{"quoted-printable with bytes above 127", "Content-Transfer-Encoding: Quoted-Printable\n\n=C3=\nä =3D\n", "Content-Transfer-Encoding: Quoted-Printable\n\n=C3=\n=C3=A4 =3D\n"},
		{"a report", "Content-Type: message/delivery-status\n\nA: ä\n", "Content-Type: message/delivery-status\n\nA: ??\n"},
		{"a line that is too long", "A: 1\nMIME-Version: 1.0\nContent-Type: text/x\n\n" + strings.Repeat("z", 999) + "\n", "A: 1\nMIME-Version: 1.0\nContent-Type: text/x\nContent-Transfer-Encoding: quoted-printable\n\n" + strings.Repeat(strings.Repeat("z", 75)+"=\n", 13) + strings.Repeat("z", 24) + "\n"},
		{"a header without an end", "A: ä\n", "A: ??\n"},
	} {
		if got := converted(t, crlf(c.given)); got != crlf(c.want) {
			t.Errorf("%s:\n%q, want\n%q", c.name, got, crlf(c.want))
		}
	}
}

func TestWordsOfTheHeaderAreEncoded(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"Subject: Grüße an alle hier":                                    "Subject: =?utf-8?B?R3LDvMOfZQ==?= an alle hier",
		"Subject: an Jörg Müller":                                        "Subject: an =?utf-8?B?SsO2cmcgTcO8bGxlcg==?=",
		"From: Jörg Müller <j@x>":                                        "From: =?utf-8?B?SsO2cmcgTcO8bGxlcg==?= <j@x>",
		"To: \"Müller, J\\\"\" <j@x>, plain@y, K <k@z>":                  "To: =?utf-8?B?TcO8bGxlciwgSiI=?= <j@x>, plain@y, K <k@z>",
		"To: a@b, \"ü\" <c@d>":                                           "To: a@b, =?utf-8?B?w7w=?= <c@d>",
		"Cc: a@b (Jörg), c@d":                                            "Cc: a@b (=?utf-8?B?SsO2cmc=?=), c@d",
		"To: Bücher: a@b, c@d;":                                          "To: =?utf-8?B?QsO8Y2hlcg==?= : a@b, c@d;",
		"Content-Disposition: attachment; filename=\"ü; 1.pdf\"; size=1": "Content-Disposition: attachment; filename*=utf-8''%C3%BC%3B%201.pdf; size=1",
		"Content-Type: text/plain; name=\"\xfc\"":                        "Content-Type: text/plain; name*=unknown-8bit''%FC",
		"X: \xfc": "X: =?unknown-8bit?B?/A==?=",
	} {
		if got := converted(t, crlf(given+"\n\nx\n")); got != crlf(want+"\n\nx\n") {
			t.Errorf("%q is %q, want %q", given, got, want)
		}
	}
	for _, address := range []string{"From: jörg@b.example", "To: <jörg@b.example>", "To: a@b, J <a@bücher.example>", "Sender: <ü", "From: ü@x (c)"} {
		_, err := downgrade.NewPlan(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(address + "\r\n\r\nx\r\n")), nil })
		if !errors.Is(err, downgrade.ErrAddress) {
			t.Errorf("%q: %v", address, err)
		}
	}
	long := "X: " + strings.Repeat("word ", 400) + "ü"
	if got := converted(t, long+"\r\n\r\n"); message.LinesOf([]byte(got)).AreTooLong() {
		t.Errorf("a line has %d bytes", message.LinesOf([]byte(got)).Longest)
	}
}

func TestStructureIsBounded(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"depth":    strings.Repeat("Content-Type: message/rfc822\r\n\r\n", 200) + "ü\r\n",
		"a header": "A: " + strings.Repeat("ü\r\n ", 400_000) + "\r\n\r\n",
	} {
		_, err := downgrade.NewPlan(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil })
		if !errors.Is(err, downgrade.ErrStructure) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Another implementation reads the same from a message before and after.
func TestMessageIsReadAsBefore(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there")
	}
	read := func(text string) string {
		command := exec.CommandContext(t.Context(), python, "-c", `
import sys, json, email, email.policy, email.header
m = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.default)
print(json.dumps([str(m["subject"]), str(m["from"]), [[p.get_content_type(), p.get_filename(), p.get_content_charset(), "" if p.is_multipart() else p.get_payload(decode=True).decode("latin-1")] for p in m.walk()]]))`)
		command.Stdin = strings.NewReader(text)
		output, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		var all any
		if err := json.Unmarshal(output, &all); err != nil {
			t.Fatal(err)
		}
		return string(output)
	}
	for _, text := range []string{
		"Subject: Grüße\nFrom: \"Müller, Jörg\" <j@b.example>\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nfür = 1\n \nend of it\t\n",
		"Subject: x\nFrom: Jörg <j@b.example>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=o\nContent-Transfer-Encoding: 8bit\n\n--o\nContent-Type: text/plain; charset=iso-8859-15\nContent-Transfer-Encoding: 8bit\n\n\xa4 \xfc\n--o\nContent-Type: application/pdf\nContent-Disposition: attachment; filename*=utf-8''%C3%BC.pdf\nContent-Transfer-Encoding: binary\n\n\x01\xff\xfe\n--o\nContent-Type: message/rfc822\n\nSubject: in\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\ninner ü\n--o--\n",
	} {
		text = crlf(text)
		got := converted(t, text)
		if lines := message.LinesOf([]byte(got)); lines.IsEightBit || lines.AreTooLong() {
			t.Errorf("it has 8 bits or a long line: %q", got)
		}
		if before, after := read(text), read(got); before != after {
			t.Errorf("it is read as\n%s, and was\n%s", after, before)
		}
	}
}

// The result has no bytes above 127 for any input, and is the input where that has none.
func FuzzConvert(f *testing.F) {
	f.Add("Content-Type: multipart/mixed; boundary=o\r\n\r\n--o\r\n\r\n\xff\r\n--o--\r\n")
	f.Add("From: \"\xfc\\\" (\xfc) <a@b>, x\r\nContent-Type: text/plain; a=\"\xfc\r\n\r\n\xff")
	f.Add("Content-Type: message/rfc822\r\n\r\nA: \xfc\r\n b\r\n\r\n\xff")
	f.Fuzz(func(t *testing.T, text string) {
		plan, err := downgrade.NewPlan(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil })
		if err != nil {
			return
		}
		got, err := io.ReadAll(plan.Reader(strings.NewReader(text)))
		if err != nil || int64(len(got)) != plan.Size {
			t.Fatalf("%d bytes of %d: %v", len(got), plan.Size, err)
		}
		if message.LinesOf(got).IsEightBit {
			t.Errorf("%q has bytes above 127", got)
		}
	})
}
