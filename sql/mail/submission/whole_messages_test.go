package submission_test

import (
	"bytes"
	"fmt"
	"mime"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Next hops refuse lines of more than 998 bytes, or cut them, after which a signature no longer fits: what holds one is refused when it is
// submitted.
func TestRawMessageWithALongLineIsRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	const send = "select parley_mail.send('ann', array['x@example.com'], raw => $1::bytea)"
	const head = "From: a@b.c\r\n"
	for name, raw := range map[string]string{
		"body": head + "\r\n" + strings.Repeat("z", 999) + "\r\n", "body, without an end": head + "\r\nx\r\n" + strings.Repeat("z", 999),
		"body with LF": "From: a@b.c\n\n" + strings.Repeat("z", 999) + "\n", "header": head + "X: " + strings.Repeat("z", 996) + "\r\n\r\n",
		"bytes above 127": head + "\r\n" + strings.Repeat("\xff", 999) + "\r\n", "backslashes": head + "\r\n" + strings.Repeat(`\`, 999) + "\r\n",
	} {
		if refusal := b.RefusesMail(10, send, []byte(raw)); !strings.Contains(refusal.Detail, "998") {
			t.Errorf("%s: %s", name, refusal.Detail)
		}
	}
	for _, line := range []string{"z", "\xff", `\`, "."} {
		b.Exec(send, []byte(head+"X: "+strings.Repeat("y", 995)+"\r\n\r\n"+strings.Repeat(line, 998)+"\r\n"+strings.Repeat(line, 998)))
	}
	// A name or a value of any length is folded or encoded.
	for _, arguments := range []string{
		`'ann', array[repeat('x', 3000) || ', y <x@example.com>', repeat('ü', 3000) || ' <x@example.net>'], text => 'x'`,
		`'ann', array[repeat('x', 200) || ' ' || repeat('y', 200) || ' <x@example.com>'], text => repeat('z', 3000)`,
		`'ann', array['x@example.com'], repeat('z', 3000), headers => jsonb_build_object('X-A', repeat('z', 3000), 'References', repeat('<a@b> ', 300))`,
		`'ann', array['x@example.com'], attachments => array[parley_mail.attachment(repeat('z', 3000), 'x')]`,
	} {
		id := sqltest.Value[int64](b.Session, "select parley_mail.send("+arguments+")")
		message := sqltest.Value[[]byte](b.Session, "select body from parley_mail._p_message where message_id = $1", id)
		for line := range bytes.SplitSeq(message, []byte("\r\n")) {
			if len(line) > 998 {
				t.Errorf("%s makes a line of %d bytes", arguments, len(line))
			}
		}
	}
}

func TestMessagesThatComeWholeSayWhetherTheyHaveEightBits(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	for body, want := range map[string]bool{"x": false, `\377`: false, `\\377`: false, `\`: false, "\xff": true, "\\\x80": true, "\xc3\xa4": true} {
		id := sqltest.Value[int64](b.Session, "select parley_mail.send('ann', array['x@example.com'], raw => $1::bytea)", []byte("From: a@b.c\r\n\r\n"+body+"\r\n"))
		sqltest.Equal(b.Session, want, "select is_eight_bit from parley_mail._p_message where message_id = $1", id)
	}
	id := sqltest.Value[int64](b.Session, "select parley_mail.send('ann', array['x@example.com'], text => 'ä')")
	sqltest.Equal(b.Session, false, "select is_eight_bit from parley_mail._p_message where message_id = $1", id)
}

// An attachment without a name, or without a type, is one: an empty name is none.
func TestAttachmentWithoutAName(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	for _, name := range []string{"''", "null"} {
		for _, kind := range []string{"null", "'text/plain'"} {
			message := rendered(b.Session, fmt.Sprintf("'s', 't', attachments => array[parley_mail.attachment(%s, 'abc'::bytea, %s)]", name, kind))
			_, parts, nesting := parseMail(t, message)
			if len(parts) != 2 || parts[1].content != "abc" || parts[1].disposition != "attachment" || parts[1].filename != "" {
				t.Errorf("%s of type %s: %s %q", name, kind, nesting, parts)
			}
			if read := asPython(t, message); len(read.Defects) > 0 {
				t.Errorf("%s of type %s: Python finds %v", name, kind, read.Defects)
			}
		}
	}
	b.RefusesMail(10, "select parley_mail.send('ann', array['x@example.com'], attachments => array[parley_mail.attachment('', null)])")
	b.RefusesMail(10, "select parley_mail.send('ann', array['x@example.com'], attachments => array[parley_mail.attachment('', 'x', '')])")
}

// A message is attached as it is, without an encoding of its own (RFC 2046 section 5.2.1), whatever its bytes; what contains it says so.
func TestMessageIsAttached(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	const ascii, latin1 = "From: b@c.d\r\nSubject: inner\r\n\r\n.\r\nhello\r\n", "From: b@c.d\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: 8bit\r\n\r\nf\xfcr =_\\\r\n"
	for _, c := range []struct {
		name, given, want, encoding string
		more                        string
	}{
		{"ASCII", ascii, ascii, "", ""},
		{"LF", strings.ReplaceAll(ascii, "\r\n", "\n"), ascii, "", ""},
		{"bytes above 127", latin1, latin1, "8bit", ""},
		{"beside others", latin1, latin1, "8bit", ", parley_mail.attachment('x', '\\xff'), parley_mail.attachment('y', convert_to(E'From: x@y.z\n\nsecond', 'UTF8'), 'message/rfc822')"},
		{"shown within HTML", latin1, latin1, "8bit", ", parley_mail.attachment('i', convert_to(E'From: x@y.z\n\nshown', 'UTF8'), 'message/rfc822', 'id')"},
		{"large", latin1 + strings.Repeat("line\r\n", 5000), latin1 + strings.Repeat("line\r\n", 5000), "8bit", ""},
	} {
		id := sqltest.Value[int64](b.Session, `select parley_mail.send('ann', array['x@example.com'], 's', 't', html => case when $2 then 'h' end,
			attachments => array[parley_mail.attachment('inner.eml', $1::bytea, 'message/rfc822')`+c.more+`])`, []byte(c.given), c.name == "shown within HTML")
		message := sqltest.Value[[]byte](b.Session, `select coalesce(m.body, (select string_agg(k.body, '' order by k.number)
			from parley_store.read_content(m.content_id, 'mail', m.message_id) as k)) from parley_mail._p_message as m where m.message_id = $1`, id)
		header, parts, nesting := parseMail(t, message)
		found := false
		for _, p := range parts {
			found = found || p.kind == "message/rfc822" && p.filename == "inner.eml" && p.disposition == "attachment" && p.content == c.want
		}
		if !found || header.Get("Content-Transfer-Encoding") != c.encoding {
			t.Errorf("%s: encoding %q, %s, parts %.300q", c.name, header.Get("Content-Transfer-Encoding"), nesting, parts)
		}
		if bytes.Contains(message, []byte("rfc822\r\nContent-Transfer-Encoding: base64")) {
			t.Errorf("%s: the message is encoded", c.name)
		}
		requireLines(t, message)
		if read := asPython(t, message); len(read.Defects) > 0 {
			t.Errorf("%s: Python finds %v", c.name, read.Defects)
		}
		sqltest.Equal(b.Session, c.encoding != "", "select is_eight_bit from parley_mail._p_message where message_id = $1", id)
	}
	// Each of a batch has it, and an idempotency key covers it.
	b.Exec(`select parley_mail.send_batch('ann', array['x@example.com', 'y@example.com'], 's', '{{n}}', variables => '{"n": 1}',
		attachments => array[parley_mail.attachment('', $1, 'message/rfc822')], tag => 'batch')`, []byte(latin1))
	sqltest.Equal(b.Session, int64(2), `select count(*) from parley_mail._p_message where tag = 'batch' and is_eight_bit and position('\xfc'::bytea in body) > 0`)
	for name, content := range map[string]string{
		"a zero byte": "From: a\r\n\r\n\x00", "mixed line ends": "From: a\r\n\nx", "no header": "x\r\n", "nothing": "",
		"a long line": "From: a\r\n\r\n" + strings.Repeat("x", 999),
	} {
		refusal := b.RefusesMail(10, `select parley_mail.send('ann', array['x@example.com'], attachments => array[parley_mail.attachment('x', $1, 'message/rfc822')])`, []byte(content))
		if !strings.Contains(refusal.Message, "attachment 1 is no message") {
			t.Errorf("%s: %s", name, refusal.Message)
		}
	}
	for _, kind := range []string{"message/partial", "message/external-body", "multipart/mixed", "message/rfc822x"} {
		if _, _, err := mime.ParseMediaType(kind); err != nil {
			t.Fatal(err)
		}
		b.RefusesMail(10, `select parley_mail.send('ann', array['x@example.com'], attachments => array[parley_mail.attachment('x', 'From: x', $1)])`, kind)
	}
}

// Comments and blanks are legal between the parts of an address, in a message that comes whole too.
func TestAuthorOfARawMessageMayHaveCommentsAndBlanks(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	for _, from := range []string{
		"Eva (at (the) shop) <eva(her account)@example.org>", "eva @ example . org", "< eva@example.org\r\n >", `"e . m" (Eva) @example.org`,
	} {
		b.Exec("select parley_mail.send('ann@example.org', array['bob@example.com'], raw => convert_to($1, 'UTF8'))",
			"From: "+from+"\r\nSubject: s\r\n\r\nx\r\n")
	}
	for _, from := range []string{"eva m@example.org", "eva@example.org ann@example.org", `"e . m @example.org`} {
		b.RefusesMail(10, "select parley_mail.send('ann@example.org', array['bob@example.com'], raw => convert_to($1, 'UTF8'))",
			"From: "+from+"\r\nSubject: s\r\n\r\nx\r\n")
	}
}
