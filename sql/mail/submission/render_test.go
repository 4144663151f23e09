package submission_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// part is one part of a message that has no parts in it.
type part struct {
	kind, disposition, filename, id string
	content                         string
}

// parseMail reads a message by Go's packages: headers, decoded, and the parts in their order with the nesting in front.
func parseMail(t *testing.T, message []byte) (mail.Header, []part, string) {
	t.Helper()
	parsed, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		t.Fatalf("%v in\n%s", err, message)
	}
	var parts []part
	nesting := readPart(t, map[string][]string(parsed.Header), parsed.Body, &parts)
	return parsed.Header, parts, nesting
}

func readPart(t *testing.T, header map[string][]string, body io.Reader, parts *[]part) (nesting string) {
	t.Helper()
	first := func(name string) string {
		if values := header[name]; len(values) > 0 {
			return values[0]
		}
		return ""
	}
	kind, parameters, err := mime.ParseMediaType(first("Content-Type"))
	if err != nil {
		t.Fatalf("%v: %q", err, first("Content-Type"))
	}
	if strings.HasPrefix(kind, "multipart/") {
		var inside []string
		reader := multipart.NewReader(body, parameters["boundary"])
		for {
			next, err := reader.NextRawPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			inside = append(inside, readPart(t, next.Header, next, parts))
		}
		return strings.TrimPrefix(kind, "multipart/") + "(" + strings.Join(inside, " ") + ")"
	}
	switch first("Content-Transfer-Encoding") {
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	}
	content, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	disposition, named, _ := mime.ParseMediaType(first("Content-Disposition"))
	*parts = append(*parts, part{kind, disposition, named["filename"], first("Content-Id"), string(content)})
	return kind
}

// asPython reads a message by Python's email package.
func asPython(t *testing.T, message []byte) (read struct {
	Headers map[string][]string
	Parts   []struct{ Type, Filename, Content string }
	Defects []string
},
) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not there")
	}
	command := exec.CommandContext(t.Context(), python, "-c", `
import sys, json, base64, email, email.policy
m = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.default)
parts = [p for p in m.walk() if not p.is_multipart()]
h = {}
for k, v in m.items(): h.setdefault(k.lower(), []).append(str(v))
print(json.dumps({"Headers": h, "Defects": [repr(d) for p in m.walk() for d in list(p.defects) + [e for v in p.values() for e in v.defects]],
  "Parts": [{"Type": p.get_content_type(), "Filename": p.get_filename() or "", "Content": base64.b64encode(p.get_payload(decode=True)).decode()} for p in parts]}))`)
	command.Stdin = bytes.NewReader(message)
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(output, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// rendered submits a message by the arguments behind those of everybody, and gives what is stored.
func rendered(s sqltest.Session, arguments string) []byte {
	s.Helper()
	id := sqltest.Value[int64](s, "select parley_mail.send('ann', array['x@example.com'], "+arguments+")")
	return sqltest.Value[[]byte](s, `
		select coalesce(m.body, (select string_agg(k.body, '' order by k.number) from parley_store.read_content(m.content_id, 'mail', m.message_id) as k))
		from parley_mail._p_message as m where m.message_id = $1`, id)
}

func TestRenderedMailIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	long := strings.Repeat("многа букв, and some more of them. ", 20)
	unbroken := strings.Repeat("x", 3000)
	filename := "отчёт за год, окончательный вариант, исправленный.pdf"
	for _, c := range []struct {
		name, arguments, nesting string
		subject                  string
		contents                 []string
	}{
		{"text", `'Order 7', text => E'Thank you\n.\nFrom us\n'`, "text/plain", "Order 7", []string{"Thank you\r\n.\r\nFrom us\r\n\r\n"}},
		{"nothing", `text => ''`, "text/plain", "", []string{"\r\n"}},
		{"other line ends", `'x', text => E'a\r\nb\rc'`, "text/plain", "x", []string{"a\r\nb\r\nc\r\n"}},
		{"HTML", `'x', html => '<p>ä</p>'`, "text/html", "x", []string{"<p>ä</p>"}},
		{"both", `'x', text => 'a', html => '<p>a'`, "alternative(text/plain text/html)", "x", []string{"a", "<p>a"}},
		{"a long subject", `'` + long + `', text => '` + long + `'`, "text/plain", long, []string{long}},
		{"a subject that could be an encoded word", `'=?UTF-8?Q?x?= 𝄞 =?', text => ''`, "text/plain", "=?UTF-8?Q?x?= 𝄞 =?", []string{"\r\n"}},
		{"a long line", `'` + unbroken + `', text => '` + unbroken + `'`, "text/plain", unbroken, []string{unbroken}},
		{
			"attachments", `'x', text => 'a', html => '<img src="cid:logo">', attachments => array[
				parley_mail.attachment('` + filename + `', '\x00ff'), parley_mail.attachment('lo"go\.png', 'PNG', content_id => 'logo')]`,
			"mixed(related(alternative(text/plain text/html) image/png) application/pdf)", "x",
			[]string{"a", `<img src="cid:logo">`, "PNG", "\x00\xff"},
		},
		{
			"an attachment of a megabyte", `'x', attachments => array[parley_mail.attachment('b.bin', convert_to(repeat('0123456789', 100000), 'UTF8'))]`,
			"mixed(text/plain application/octet-stream)", "x",
			[]string{"", strings.Repeat("0123456789", 100000)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := b.Connection()
			s.T = t
			message := rendered(s, c.arguments)
			header, parts, nesting := parseMail(t, message)
			subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
			if err != nil || strings.Join(strings.Fields(subject), " ") != strings.Join(strings.Fields(c.subject), " ") {
				t.Errorf("subject %q, want %q (%v)", subject, c.subject, err)
			}
			if nesting != c.nesting {
				t.Errorf("nested %s, want %s", nesting, c.nesting)
			}
			var contents []string
			for _, p := range parts {
				contents = append(contents, p.content)
			}
			if !slices.Equal(contents, c.contents) {
				t.Errorf("contents %.200q, want %.200q", contents, c.contents)
			}
			if date, err := header.Date(); err != nil || date.IsZero() {
				t.Errorf("Date %q: %v", header.Get("Date"), err)
			}
			requireLines(t, message)
			read := asPython(t, message)
			if len(read.Defects) > 0 || len(read.Parts) != len(parts) {
				t.Errorf("Python finds %d parts, defects %v", len(read.Parts), read.Defects)
			}
			for i, p := range read.Parts {
				if content, _ := base64.StdEncoding.DecodeString(p.Content); string(content) != parts[i].content || p.Filename != parts[i].filename {
					t.Errorf("Python reads %.100q as %q, Go %.100q as %q", content, p.Filename, parts[i].content, parts[i].filename)
				}
			}
		})
	}
}

// requireLines requires that lines end with CR LF, headers are within 78 characters where they can be, and all within 998.
func requireLines(t *testing.T, message []byte) {
	t.Helper()
	if bytes.ContainsAny(bytes.ReplaceAll(message, []byte("\r\n"), nil), "\r\n") {
		t.Errorf("bare line ends in %.300q", message)
	}
	head, _, _ := bytes.Cut(message, []byte("\r\n\r\n"))
	for line := range bytes.SplitSeq(message, []byte("\r\n")) {
		if len(line) > 998 {
			t.Errorf("a line of %d octets", len(line))
		}
	}
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if len(line) > 78 && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("a header line of %d octets: %s", len(line), line)
		}
	}
}

func TestAddressesOfRenderedMail(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := sqltest.Value[int64](b.Session, `select parley_mail.send('"Ann, of \"Shop\"" <ann@example.org>',
		array['Jörg Müller <jm@example.com>', 'x@Example.COM', 'hidden@example.net'], 'x', text => 'x',
		headers => '{"To": ["Jörg Müller <jm@example.com>", "x@example.com"], "Reply-To": "\"a, b\" <r@example.org>, s@example.org",
			"X-Order": "7", "List-Unsubscribe": "<https://example.org/u?id=1>"}')`)
	message := sqltest.Value[[]byte](b.Session, "select body from parley_mail._p_message where message_id = $1", id)
	header, _, _ := parseMail(t, message)
	for name, want := range map[string]string{
		"From":     `"Ann, of \"Shop\"" <ann@example.org>`,
		"To":       `=?utf-8?q?J=C3=B6rg_M=C3=BCller?= <jm@example.com>, <x@example.com>`,
		"Reply-To": `"a, b" <r@example.org>, <s@example.org>`,
	} {
		list, err := header.AddressList(name)
		var got []string
		for _, address := range list {
			got = append(got, address.String())
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s is %q, want %q (%v)", name, got, want, err)
		}
	}
	if header.Get("X-Order") != "7" || strings.Contains(string(message), "hidden") {
		t.Errorf("got\n%s", message)
	}
	sqltest.Equal(b.Session, "ann@example.org {jm@example.com,x@Example.COM,hidden@example.net}",
		"select sender || ' ' || recipients::text from parley_mail._p_message where message_id = $1", id)
	sqltest.Equal(b.Session, header.Get("Message-Id"), "select header_message_id from parley_mail._p_message where message_id = $1", id)
}

// An input of a caller never becomes a line of a header that he did not name.
func TestHeadersOfMailCannotBeInjected(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	hostile := []string{"x\r\nBcc: v@example.net", "x\nBcc: v@example.net", "x\rBcc: v@example.net", "x\x0bBcc: v", "x\x7f"}
	for _, text := range hostile {
		for name, statement := range map[string]string{
			"subject":      "select parley_mail.send('ann', array['x@example.com'], $1, text => 'x')",
			"sender":       "select parley_mail.send('Ann' || $1 || ' <ann@example.org>', array['x@example.com'], text => 'x')",
			"address":      "select parley_mail.send('ann@example.org' || $1, array['x@example.com'], text => 'x')",
			"recipient":    "select parley_mail.send('ann', array['X' || $1 || ' <x@example.com>'], text => 'x')",
			"header value": "select parley_mail.send('ann', array['x@example.com'], text => 'x', headers => jsonb_build_object('X-A', $1::text))",
			"header name":  "select parley_mail.send('ann', array['x@example.com'], text => 'x', headers => jsonb_build_object('X-A' || $1, 'x'))",
			"to":           "select parley_mail.send('ann', array['x@example.com'], text => 'x', headers => jsonb_build_object('To', 'a@b.c' || $1))",
			"filename":     "select parley_mail.send('ann', array['x@example.com'], attachments => array[parley_mail.attachment($1, 'x')])",
			"type":         "select parley_mail.send('ann', array['x@example.com'], attachments => array[parley_mail.attachment('x', 'x', 'text/plain' || $1)])",
			"content id":   "select parley_mail.send('ann', array['x@example.com'], attachments => array[parley_mail.attachment('x', 'x', null, $1)])",
			"variable": `select parley_mail.send('ann', array['x@example.com'], 'Hello {{name}}', text => 'x',
				variables => jsonb_build_object('name', $1::text))`,
			"envid": "select parley_mail.send('ann', array['x@example.com'], text => 'x', envid => $1)",
			"tag":   "select parley_mail.send('ann', array['x@example.com'], text => 'x', tag => $1)",
		} {
			if refusal := b.RefusesMail(10, statement, text); t.Failed() {
				t.Fatalf("%s %q: %s", name, text, refusal.Message)
			}
		}
	}
	for _, header := range []string{"Bcc", "Received", "DKIM-Signature", "Content-Type", "Return-Path", "Message-ID", "X-MS-Exchange-Organization-SCL", "a b", "", "a:"} {
		b.RefusesMail(10, "select parley_mail.send('ann', array['x@example.com'], text => 'x', headers => jsonb_build_object($1::text, 'x'))", header)
	}
	b.RefusesMail(10, `select parley_mail.send('ann', array['x@example.com'], text => 'x', headers => '{"From": "a@example.org", "from": "b@example.org"}')`)
	for _, address := range []string{"", "x", "@example.com", "x@", "x@@example.com", "a b@example.com", "x@example..com", "<x@example.com", strings.Repeat("x", 320) + "@example.com"} {
		b.RefusesMail(10, "select parley_mail.send('ann', array[$1], text => 'x')", address)
	}
}

func TestTemplatesAreFilledOnceAndEscapedInHTML(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`select parley_mail.send('ann', array['x@example.com', 'y@example.com'], 'For {{ name }}', text => 'Dear {{name}}: {{text}} {{}} {{1',
		html => '<b title="{{name}}">{{name}}</b> {{text}}',
		variables => '[{"name": "<\"X\" & ''Y''>", "text": "{{name}}"}, {"name": "Jörg", "text": 7}]')`)
	type filled struct{ subject, text, html string }
	var got []filled
	for _, body := range sqltest.Values[[]byte](b.Session, "select body from parley_mail._p_message order by message_id") {
		header, parts, _ := parseMail(t, body)
		subject, _ := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
		got = append(got, filled{subject, parts[0].content, parts[1].content})
	}
	want := []filled{
		{`For <"X" & 'Y'>`, `Dear <"X" & 'Y'>: {{name}} {{}} {{1`, `<b title="&lt;&quot;X&quot; &amp; &#39;Y&#39;&gt;">&lt;&quot;X&quot; &amp; &#39;Y&#39;&gt;</b> {{name}}`},
		{"For Jörg", "Dear Jörg: 7 {{}} {{1", `<b title="Jörg">Jörg</b> 7`},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	sqltest.Equal(b.Session, "{x@example.com} {y@example.com}", "select string_agg(recipients::text, ' ' order by message_id) from parley_mail._p_message")
	send := "select parley_mail.send('ann', array['x@example.com', 'y@example.com'], text => '{{name}}', variables => $1)"
	for _, variables := range []string{`{}`, `[{"name": "x"}]`, `[{"name": "x"}, 7]`, `"x"`, `{"Name": "x"}`, `{"name": null}`} {
		b.RefusesMail(10, send, variables)
	}
}
