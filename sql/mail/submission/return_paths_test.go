package submission_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestReturnPathNamesTheRecipientWhereItCan(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	for _, c := range [][3]string{
		{"news@example.org", "ann@example.com", "news+ann=example.com@example.org"},
		{"news+7@example.org", "ann+x@example.com", "news+7+ann+x=example.com@example.org"},
		{"news@example.org", "ü@xn--bcher-kva.example", "news+ü=xn--bcher-kva.example@example.org"},
		{"", "ann@example.com", ""},
		{"news@example.org", `"a b"@example.com`, "news@example.org"},
		{`"a b"@example.org`, "ann@example.com", `"a b"@example.org`},
		{"news@example.org", "ann@[192.0.2.1]", "news@example.org"},
		{"news@example.org", strings.Repeat("x", 54) + "@b.de", "news+" + strings.Repeat("x", 54) + "=b.de@example.org"},
		{"news@example.org", strings.Repeat("x", 55) + "@b.de", "news@example.org"},
		{"news@example.org", strings.Repeat("ü", 27) + "x@b.de", "news@example.org"},
		{"news@" + strings.Repeat("d.", 95) + "de", "ann@" + strings.Repeat("x", 54) + ".de", "news@" + strings.Repeat("d.", 95) + "de"},
	} {
		sqltest.Equal(b.Session, c[2], "select parley_mail._p_return_path($1, $2)", c[0], c[1])
	}
	for original, want := range map[string]string{
		"rfc822;team@example.org": "team=example.org", "UTF-8;ü@example.org": "ü=example.org", "utf-8;u@example.org": "u=example.org", "rfc822;team": "ann=example.com", "rfc822;a b@example.org": "ann=example.com",
		"x400;team@example.org": "ann=example.com", "rfc822;team@example.org\r\nRCPT TO:<x@example.org": "ann=example.com",
	} {
		sqltest.Equal(b.Session, "news+"+want+"@example.org", "select parley_mail._p_return_path('news@example.org', 'ann@example.com', $1, true)", original)
		if strings.Contains(want, "ü") { // the host may take no such path
			want = "ann=example.com"
		}
		sqltest.Equal(b.Session, "news+"+want+"@example.org", "select parley_mail._p_return_path('news@example.org', 'ann@example.com', $1, false)", original)
	}
	sqltest.Equal(b.Session, "news+ann=example.com@example.org", "select parley_mail._p_return_path('news@example.org', 'ann@example.com', null, false)")
	shop := b.Sender("shop")
	for _, sender := range []string{`"a b"@example.org`, "news+7@example.org", strings.Repeat("x", 59) + "@example.org"} {
		shop.Exec("select parley_mail.send($1, array['x@example.com'])", sender)
		shop.RefusesMail(10, "select parley_mail.send($1, array['x@example.com'], verp => true)", sender)
		shop.RefusesMail(10, "select parley_mail.send_batch($1, array['x@example.com'], verp => true)", sender)
	}
	shop.Exec("select parley_mail.send($1, array['x@example.com'], verp => true)", strings.Repeat("x", 58)+"@example.org")
	// Messages that came another way are checked in the same way: a file, and whatever the daemon takes.
	for _, sender := range []string{`"a b"@example.org`, "news+7@example.org", strings.Repeat("x", 59) + "@example.org", ""} {
		const accept = "select parley_mail._p_accept(array[jsonb_build_object('sender', $1::text, 'recipients', array['e@example.com'], 'source', 'REPLAY', 'has_verp', $2::boolean)], array['x'::bytea])"
		b.Exec(accept, sender, false)
		b.RefusesMail(10, accept, sender, true)
	}
}

// A message in hand has a return path for each recipient, but where a group redirects reports. The path names the address to which the
// sender wrote, which he knows, and not that to which we were led from there. Each report goes to the return path.
func TestEachRecipientHasAReturnPathWhereThatIsAsked(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{"distribution group": {
		"led@example.org": {"members": ["l@example.com"], "report_to": "MANAGER", "manager": "ann@example.org"},
		"open@example.org": {"members": ["m@example.com", "n@example.com"]}},
		"mailbox": {"away@example.org": {"store": "local", "aliases": ["alias@example.org"], "forwarding": "ONLY", "forward_to": ["o@example.com"]}}}`)
	shop := b.Sender("shop")
	shop.Exec("select parley_mail.send('shop', array['a@example.com', 'open@example.org', 'led@example.org', 'alias@example.org'], 'x', verp => true, idempotency_key => 'k')")
	shop.RefusesMail(11, "select parley_mail.send('shop', array['a@example.com', 'open@example.org', 'led@example.org', 'alias@example.org'], 'x', idempotency_key => 'k')")
	shop.Exec("select parley_mail.send('shop', array['b@example.com'], 'x', verp => null)")
	shop.Exec("select parley_mail.send_batch('shop', array['c@example.com'], 'x', verp => true)")
	shop.Exec("select parley_mail.send_batch('shop', array['d@example.com'], 'x', variables => '{}', verp => true)")
	b.Exec(`select parley_mail._p_accept(array['{"sender": "http@example.org", "recipients": ["e@example.com"], "source": "HTTP", "has_verp": true}'::jsonb], array['x'::bytea])`)
	b.Exec("select parley_mail._p_categorize()")
	sqltest.Equal(b.Session, "a@example.com shop+a=example.com@example.org, b@example.com, c@example.com shop+c=example.com@example.org, d@example.com shop+d=example.com@example.org, "+
		"e@example.com http+e=example.com@example.org, l@example.com, m@example.com shop+open=example.org@example.org, n@example.com shop+open=example.org@example.org, "+
		"o@example.com shop+alias=example.org@example.org", `
		select string_agg(concat_ws(' ', u.address, u.path), ', ' order by u.address)
		from parley_mail._p_claim(10, 10, '1 minute', 'test') as c cross join unnest(c.addresses, c.return_paths) as u (address, path)`)
	b.Exec(`do $$ begin perform parley_mail._p_fail_recipients(array_agg(r.message_id), array_agg(r.ordinal), array_agg('5.1.1'::text), array_agg('no'::text))
		from parley_mail._p_recipient as r join parley_mail._p_message as m using (message_id) where m.sender = 'shop@example.org' and m.has_verp; end $$`)
	b.Exec("update parley_mail._p_report set due_at = now()")
	// None waits for another, and none is left out because there were many to one sender.
	b.Exec("update parley_mail._p_organization set settings = settings || '{\"dsn_rate\": 2}'")
	var got []string
	for range 6 {
		report := sqltest.Value[string](b.Session, "select r.sender || ' ' || array_to_string(r.addresses, ',') from parley_mail._p_due_report() as r")
		b.Exec("select parley_mail._p_finish_report(m.message_id) from parley_mail._p_message as m")
		got = append(got, report)
	}
	for name, path := range map[string]string{"a": "a=example.com", "c": "c=example.com", "d": "d=example.com", "m": "open=example.org", "n": "open=example.org", "o": "alias=example.org"} {
		if want := "shop+" + path + "@example.org " + name + "@example.com"; !strings.Contains(strings.Join(got, "; "), want) {
			t.Errorf("no report to %s in %s", want, got)
		}
	}
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_report")
}
