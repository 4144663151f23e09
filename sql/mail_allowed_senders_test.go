package sql_test

import (
	"testing"
)

// A role sends from the domains that are ours, and under the names of its list where it has one: in the envelope, and as whoever the header
// says that wrote or sent the message.
func TestRightsOfARoleSayAsWhomItSends(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.exec(`select parley_mail.apply('{"accepted domain": {"example.org": {}, "*.shop.example": {}}}')`)
	role, other := b.role("shop"), b.role("other")
	for _, one := range []string{role, other} {
		b.exec("select parley_mail.grant_right('SEND', $1)", one)
	}
	shop, unlisted := b.as(role), b.as(other)
	b.exec(`select parley_mail.set_quota($1, allowed_senders => array['orders@EXAMPLE.org', '*.partner.example', 'bücher.example'])`, role)
	const (
		send    = "select parley_mail.send($1, array['x@example.com'], 's', 't')"
		batch   = "select count(*) from parley_mail.send_batch($1, array['x@example.com', 'y@example.com'], 's', 't')"
		headers = "select parley_mail.send('orders@example.org', array['x@example.com'], 's', 't', headers => jsonb_build_object($2::text, $1::text))"
		listed  = "select count(*) from parley_mail.send_batch('orders@example.org', array['x@example.com'], 's', 't', headers => jsonb_build_object($2::text, $1::text))"
		raw     = `select parley_mail.send('orders@example.org', array['x@example.com'],
			raw => convert_to(E'From: orders@example.org\r\n' || $2 || ': ' || $1 || E'\r\n\r\nx', 'UTF8'))`
	)
	forms := map[string][]string{send: {""}, batch: {""}, headers: {"From", "Sender"}, listed: {"from"}, raw: {"from", "Sender", "RESENT-FROM", "Resent-Sender "}}
	for _, c := range []struct {
		who   session
		as    string
		takes bool
	}{
		{shop, "orders@example.org", true},
		{shop, "Orders <orders@Example.ORG>", true},
		{shop, "x@a.partner.example", true},
		{shop, "x@xn--bcher-kva.example", true},
		{shop, "x@partner.example", false},
		{shop, "ceo@example.org", false},
		{shop, "ceo@bank.example", false},
		{unlisted, "orders@example.org", true},
		{unlisted, "ceo@example.org", true},
		{unlisted, "x@a.shop.example", true},
		{unlisted, "x@shop.example", false},
		{unlisted, "ceo@bank.example", false},
	} {
		for form, fields := range forms {
			for _, field := range fields {
				arguments := []any{c.as}
				if field != "" {
					arguments = append(arguments, field)
				}
				if c.takes {
					c.who.exec(form, arguments...)
				} else {
					c.who.refusesMail(1, form, arguments...)
				}
			}
		}
	}
	// A local part alone is one of the default domain.
	shop.exec(send, "orders")
	shop.refusesMail(1, send, "ceo")
	// One of several counts as much as one alone, on a folded line too; what readers could take for another address is refused.
	for _, c := range []struct {
		number int
		value  string
	}{
		{0, "a@x.partner.example,\r\n \"Ceo, the\" <orders@example.org> (not \"ceo@example.org)"},
		{1, "orders@example.org, ceo@example.org"},
		{1, "orders@example.org,\r\n\t=?utf-8?q?Boss?= <ceo@example.org>"},
		{1, "(orders@example.org) ceo@example.org"},
		{10, "<ceo@bank.example> <orders@example.org>"},
		{10, "ceo@bank.example <orders@example.org>"},
		{10, "nobody"},
		{10, "group: orders@example.org;"},
		// A parenthesis in quotes begins no comment, and a quotation mark in a comment no name.
		{1, `"(" <ceo@bank.example>, ")" <orders@example.org>`},
		{0, `"(" <orders@example.org>, ")" <a@x.partner.example>`},
		{1, `(") <ceo@bank.example>, (") <orders@example.org>`},
		{10, `orders@example.org (not the ceo`},
		// Outside of quotes some readers take a backslash for one that quotes.
		{10, `\" <ceo@bank.example>, " <orders@example.org>`},
	} {
		if c.number == 0 {
			shop.exec(raw, c.value, "Sender")
			continue
		}
		shop.refusesMail(c.number, raw, c.value, "Sender")
	}
	// In a charset that is not UTF-8 a backslash quotes what it quotes elsewhere.
	const bytes = `select parley_mail.send('orders@example.org', array['x@example.com'],
		raw => convert_to(E'From: ' || $1::text || E'\r\n\r\nx', 'LATIN1'))`
	shop.refusesMail(1, bytes, `"é\" b" <ceo@bank.example>, "c\"" <orders@example.org>`)
	shop.exec(bytes, `"é\" <ceo@bank.example>, \"" <orders@example.org>`)
	shop.refusesMail(10, bytes, " (nobody)")
	// A list is what it is when it is written, one field: quotes that one value opens do not end with it.
	const list = "select parley_mail.send('orders@example.org', array['x@example.com'], 's', 't', headers => $1::jsonb)"
	shop.refusesMail(1, list, `{"From": ["\"", "\" <ceo@bank.example>, \" <orders@example.org>"]}`)
	shop.exec(list, `{"From": ["orders@example.org", "\"A, B\" <a@x.partner.example>"]}`)
	for _, empty := range []string{`[]`, `[""]`, `null`, `" , "`} {
		id := value[int64](shop, list, `{"From": `+empty+`}`)
		equal(b.session, true, `select convert_from(m.body, 'UTF8') ~ E'\r\nFrom: orders@example.org\r\n' from parley_mail._p_message as m where m.message_id = $1`, id)
	}
	// Who administers sends as anybody; the list of public is for those without a quota of their own; "*" is everybody.
	b.exec(send, "ceo@bank.example")
	b.exec("select parley_mail.set_quota('public', allowed_senders => array['news@example.org'])")
	unlisted.exec(send, "news@example.org")
	unlisted.refusesMail(1, send, "ceo@example.org")
	shop.exec(send, "orders@example.org")
	b.exec("select parley_mail.set_quota('public', allowed_senders => array['*'])")
	unlisted.exec(send, "ceo@bank.example")
	equal(shop, "orders@example.org *.partner.example xn--bcher-kva.example", "select array_to_string(allowed_senders, ' ') from parley_mail.quotas where role <> 'public'")
	b.exec("select parley_mail.set_quota($1, messages_per_minute => 1000)", role)
	shop.refusesMail(1, send, "ceo@example.org")
	b.exec("select parley_mail.set_quota($1, without => array['allowed_senders'])", role)
	shop.exec(send, "ceo@example.org")
	for _, list := range []string{"{}", "{nobody@}", "{null}", "{a b}"} {
		b.refusesMail(10, "select parley_mail.set_quota('public', allowed_senders => $1::text[])", list)
	}
	b.refusesMail(10, "select parley_mail.set_quota('public', allowed_senders => array['*'], without => array['allowed_senders'])")
}

// A user of SMTP and HTTP who stands for a role is held to its list, unless his credential has one.
func TestCredentialOfARoleHasItsSenders(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	role := b.role("shop")
	b.exec("select parley_mail.set_quota($1, allowed_senders => array['orders@example.org'])", role)
	b.exec("select parley_mail.create_object('credential', 'a', jsonb_build_object('role', $1::text))", role)
	b.exec("select parley_mail.create_object('credential', 'b', jsonb_build_object('role', $1::text, 'allowed_senders', 'b@example.org'))", role)
	const senders = `select coalesce(c #>> '{objects,credential,a,allowed_senders}', '') || ' ' || (c #>> '{objects,credential,b,allowed_senders}')
		from parley_mail._p_configuration() as c`
	equal(b.session, `["orders@example.org"] ["b@example.org"]`, senders)
	before := value[int64](b.session, "select (parley_mail._p_configuration() ->> 'version')::bigint")
	b.exec("select parley_mail.set_quota($1, without => array['allowed_senders'])", role)
	equal(b.session, `[] ["b@example.org"]`, senders)
	// Daemons read a configuration whose version is another.
	const isNewer = "select (parley_mail._p_configuration() ->> 'version')::bigint > $1"
	equal(b.session, true, isNewer, before)
	b.exec("select parley_mail.set_quota($1, allowed_senders => array['*'])", role)
	before = value[int64](b.session, "select (parley_mail._p_configuration() ->> 'version')::bigint")
	b.exec("select parley_mail.drop_quota($1)", role)
	equal(b.session, `[] ["b@example.org"]`, senders)
	equal(b.session, true, isNewer, before)
}

// An address of plain letters costs no walk through the tables of Unicode, whether there is a default domain or not.
func TestPlainSenderIsComparedWithoutTheTablesOfUnicode(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.exec(`select parley_mail.apply('{
		"organization": {"organization": {"default_domain": null}},
		"accepted domain": {"example.org": {}, "*.example.org": {}}
	}')`)
	for _, sender := range []string{"shop@example.org", "Shop@EXAMPLE.org", "shop@sub.example.org"} {
		tx := b.begin()
		tx.exec("set local track_functions = 'all'")
		tx.exec("select parley_mail.send($1, '{you@example.net}', subject => 'Hello', text => 'Hello')", sender)
		equal(tx, 0, `select count(*) from pg_stat_xact_user_functions
			where schemaname = 'parley_mail' and funcname in ('_p_folded_idna', '_p_lower_letters')`)
		tx.rollback()
	}
}
