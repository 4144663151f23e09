package server_test

import (
	"fmt"
	"maps"
	netsmtp "net/smtp"
	"slices"
	"strings"
	"testing"
)

// crlf writes a message with the line ends of mail.
func crlf(text string) []byte { return []byte(strings.ReplaceAll(text, "\n", "\r\n")) }

// order is a message as a program of somebody writes it.
const order = `From: =?utf-8?q?Cl=C3=A9o?= <cleo@c.example>
To: orders+7@example.org
Subject: =?utf-8?b?R3LDvMOfZQ==?=
Date: Mon, 02 Jan 2006 15:04:05 -0700
Message-ID: <2@c.example>
References: <1@example.org>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="x"

--x
Content-Type: multipart/alternative; boundary="y"

--y
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Zwei St=FCck
--y
Content-Type: text/html; charset=utf-8

<b>Zwei</b>
--y--
--x
Content-Type: application/pdf; name="order.pdf"
Content-Disposition: attachment; filename="order.pdf"
Content-Transfer-Encoding: base64

JVBERi0xLjQK
--x--
`

// odd are bodies that are encoded as nobody should: encoding and body of each. The schema decodes them as the daemon does.
var odd = [][2]string{
	{"base64", "aGVs\nbG8="},
	{"base64", "aGVsbG8"},
	{"base64", "a*G\tVs bG8=aGVs"},
	{"base64", "aGVs\\101bG8\xff="},
	{"base64", "a"},
	{"base64", "=aa"},
	{"base64", ""},
	{"quoted-printable", "a=3Db=\nc=\t \nd"},
	{"quoted-printable", "==3D=4==\n41=4=31="},
	{"quoted-printable", "\\101\xc3\xa4=00=C3=A4="},
	{"quoted-printable", "=" + strings.Repeat(" ", 64) + "\na=" + strings.Repeat(" ", 65) + "\nb"},
	{"quoted-printable", "a \t\nb =20 \n=09\t\n \nc=  \nd =\n  e  "},
	{"quoted-printable", "a" + strings.Repeat(" ", 255) + "\nb" + strings.Repeat(" ", 256) + "\nc \t "},
	{"quoted-printable", strings.Repeat("\t", 300)},
	{"quoted-printable", "a=  "},
	{"quoted-printable", "\\ \xff \n\\"},
	{"x-uuencode", "begin"},
	{"8bit", "\xff=41"},
}

// hostile are messages that somebody sends who means no good, and the state in which each arrives.
func hostile() map[string]string {
	head := "From: a@b.example\nSubject: %s\nContent-Type: multipart/mixed; boundary=b\n\n"
	nested := ""
	for i := range 500 {
		nested += fmt.Sprintf("--b%d\nContent-Type: multipart/mixed; boundary=b%d\n\n", i, i+1)
	}
	return map[string]string{
		"DAMAGED one":   "Subject: DAMAGED one\nContent-Type: text/plain; charset=utf-8\n\nnot UTF-8: \xff \x80, \x01 \\u0000\n",
		"DAMAGED two":   "Subject: DAMAGED two\nContent-Type: text/plain; charset=klingon\nFrom: <<<>\n\nx\n",
		"DAMAGED three": fmt.Sprintf(head, "DAMAGED three") + "--b\nContent-Transfer-Encoding: quoted-printable\n\nnul: =00\n",
		"DAMAGED four":  fmt.Sprintf(head, "DAMAGED four") + "--b\nContent-Type: a/b; name=\"=?utf-8?q?=00=0Ax?=\"\nContent-ID: <\xff>\n\n",
		"TRUNCATED one": fmt.Sprintf(head, "TRUNCATED one") + strings.Repeat("--b\n\n\n", 20_000),
		"TRUNCATED two": "Subject: TRUNCATED two\nContent-Type: multipart/mixed; boundary=b0\n\n" + nested,
		"TRUNCATED big": "Subject: TRUNCATED big\nContent-Type: text/plain; charset=utf-16\nContent-Transfer-Encoding: base64\n\n" + strings.Repeat(strings.Repeat("/v8AQQ", 12)+"\n", 9000),
		"COMPLETE one":  "Subject: COMPLETE one\n\nnothing wrong\n",
	}
}

func TestServicesGetWhatAMessageIsMadeOf(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley.create_queue('support'); select parley.create_service('//support', 'support', array['DEFAULT']);
		alter table public.orders add "text" text, add html text, add attachments jsonb, add "date" timestamptz;
		select parley_mail.apply('{"service binding": {
			"orders": {"pattern": "table@example.org"},
			"support": {"pattern": "orders+*@example.org", "service": "//support", "from_service": "parley_mail/Status", "conversation_key": "THREAD"},
			"kept": {"pattern": "kept@example.org", "service": "//support", "from_service": "parley_mail/Status", "raw": "REFERENCE"}}}')`)
	encoded := "From: a@b.example\nSubject: odd\nContent-Type: multipart/mixed; boundary=b\n\n"
	for i, part := range odd {
		encoded += fmt.Sprintf("--b\nContent-Type: application/octet-stream; name=%d\nContent-Transfer-Encoding: %s\n\n%s\n", i, part[0], part[1])
	}
	sent := map[string]string{"order": order, "odd": encoded + "--b--\n"}
	maps.Copy(sent, hostile())
	h.start()
	h.await("the listener", h.listens)
	for name, text := range sent {
		if err := netsmtp.SendMail(h.address, nil, "cleo@c.example", []string{"orders+7@example.org", "kept@example.org", "table@example.org"}, crlf(text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	h.await("the end", h.empty)
	h.exec(`create table public.got (conversation uuid, payload jsonb)`)
	h.exec(`do $$ begin
		loop
			insert into public.got select conversation_handle, convert_from(message_body, 'UTF8')::jsonb from parley.receive('support', 100);
			exit when not found;
		end loop;
	end $$`)
	// The wishes of a program.
	for query, want := range map[string]string{
		`select payload->>'text' from public.got where payload->>'subject' = 'Grüße'`:            "Zwei Stück",
		`select payload->>'html' from public.got where payload->>'subject' = 'Grüße'`:            "<b>Zwei</b>",
		`select payload->'from'->>0 from public.got where payload->>'subject' = 'Grüße'`:         `{"name": "Cléo", "address": "cleo@c.example"}`,
		`select payload->'references'->>0 from public.got where payload->>'subject' = 'Grüße'`:   "<1@example.org>",
		`select payload->'parsed'->>'state' from public.got where payload->>'subject' = 'Grüße'`: "COMPLETE",
		`select a->>'name' || ' ' || (a->>'type') || ' ' || (a->>'size') || ' ' || convert_from(parley_mail.read_part(payload, a->>'part'), 'UTF8')
			from public.got cross join jsonb_array_elements(payload->'attachments') as a where payload->>'subject' = 'Grüße'`: "order.pdf application/pdf 9 %PDF-1.4\n",
		`select convert_from(parley_mail.read_part(payload, '1.1'), 'LATIN1') from public.got where payload->>'subject' = 'Grüße'`:           "Zwei Stück",
		`select concat_ws('|', "text", html, attachments->0->>'name', "date" at time zone 'UTC') from public.orders where subject = 'Grüße'`: "Zwei Stück|<b>Zwei</b>|order.pdf|2006-01-02 22:04:05",
	} {
		if got := h.text(query); got != want {
			t.Errorf("%s\n gives %q, want %q", query, got, want)
		}
	}
	// The schema finds and decodes each part as the daemon does, out of the payload and by reference.
	if got := h.text(`select count(*) || ' ' || coalesce(string_agg(a::text, ' ') filter (where d.body is null
			or encode(sha256(d.body), 'hex') <> a->>'sha256' or octet_length(d.body) <> (a->>'size')::int), 'alike')
		from public.got cross join jsonb_array_elements(payload->'attachments') as a
		cross join lateral (select parley_mail.read_part(payload, a->>'part') as body) as d where payload->>'subject' = 'odd'`); got != fmt.Sprint(2*len(odd))+" alike" {
		t.Errorf("parts: %s", got)
	}
	// Any message arrives, in the service and in the table, and says what is wrong with it.
	names := slices.Sorted(maps.Keys(hostile()))
	for _, query := range []string{
		`select string_agg(payload->>'subject', ',' order by payload->>'subject' collate "C") from public.got
			where split_part(payload->>'subject', ' ', 1) = payload->'parsed'->>'state' and payload->>'raw' is not null`,
		`select string_agg(payload->>'subject', ',' order by payload->>'subject' collate "C") from public.got
			where split_part(payload->>'subject', ' ', 1) = payload->'parsed'->>'state' and not payload ? 'raw'
				and octet_length(parley_mail.read_raw((payload->>'raw_reference')::bigint)) = (payload->>'size')::int`,
		`select string_agg(subject, ',' order by subject collate "C") from public.orders where subject ~ '^(DAMAGED|TRUNCATED|COMPLETE) '`,
	} {
		if got := h.text(query); got != strings.Join(names, ",") {
			t.Errorf("%s\n gives %s, want %s", query, got, names)
		}
	}
	if got := h.text(`select max(octet_length((payload - 'raw' - 'headers')::text))::text from public.got`); len(got) > 6 {
		t.Errorf("what was read of a message has %s bytes", got)
	}
}
