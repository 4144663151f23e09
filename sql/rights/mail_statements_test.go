package rights_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A role sends from the domains that are ours, and under the names of its list where it has one: in the envelope, and as whoever the header
// says that wrote or sent the message.
func TestRightsOfARoleSayAsWhomItSends(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`select parley_mail.apply('{"accepted domain": {"example.org": {}, "*.shop.example": {}}}')`)
	role, other := b.Role("shop"), b.Role("other")
	for _, one := range []string{role, other} {
		b.Exec("select parley_mail.grant_right('SEND', $1)", one)
	}
	shop, unlisted := b.As(role), b.As(other)
	b.Exec(`select parley_mail.set_quota($1, allowed_senders => array['orders@EXAMPLE.org', '*.partner.example', 'bücher.example'])`, role)
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
		who   sqltest.Session
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
					c.who.Exec(form, arguments...)
				} else {
					c.who.RefusesMail(1, form, arguments...)
				}
			}
		}
	}
	// A local part alone is one of the default domain.
	shop.Exec(send, "orders")
	shop.RefusesMail(1, send, "ceo")
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
			shop.Exec(raw, c.value, "Sender")
			continue
		}
		shop.RefusesMail(c.number, raw, c.value, "Sender")
	}
	// In a charset that is not UTF-8 a backslash quotes what it quotes elsewhere.
	const bytes = `select parley_mail.send('orders@example.org', array['x@example.com'],
		raw => convert_to(E'From: ' || $1::text || E'\r\n\r\nx', 'LATIN1'))`
	shop.RefusesMail(1, bytes, `"é\" b" <ceo@bank.example>, "c\"" <orders@example.org>`)
	shop.Exec(bytes, `"é\" <ceo@bank.example>, \"" <orders@example.org>`)
	shop.RefusesMail(10, bytes, " (nobody)")
	// A list is what it is when it is written, one field: quotes that one value opens do not end with it.
	const list = "select parley_mail.send('orders@example.org', array['x@example.com'], 's', 't', headers => $1::jsonb)"
	shop.RefusesMail(1, list, `{"From": ["\"", "\" <ceo@bank.example>, \" <orders@example.org>"]}`)
	shop.Exec(list, `{"From": ["orders@example.org", "\"A, B\" <a@x.partner.example>"]}`)
	for _, empty := range []string{`[]`, `[""]`, `null`, `" , "`} {
		id := sqltest.Value[int64](shop, list, `{"From": `+empty+`}`)
		sqltest.Equal(b.Session, true, `select convert_from(m.body, 'UTF8') ~ E'\r\nFrom: orders@example.org\r\n' from parley_mail._p_message as m where m.message_id = $1`, id)
	}
	// An administrator sends as anybody; the list of public is for those without a quota of their own; "*" is everybody.
	b.Exec(send, "ceo@bank.example")
	b.Exec("select parley_mail.set_quota('public', allowed_senders => array['news@example.org'])")
	unlisted.Exec(send, "news@example.org")
	unlisted.RefusesMail(1, send, "ceo@example.org")
	shop.Exec(send, "orders@example.org")
	b.Exec("select parley_mail.set_quota('public', allowed_senders => array['*'])")
	unlisted.Exec(send, "ceo@bank.example")
	sqltest.Equal(shop, "orders@example.org *.partner.example xn--bcher-kva.example", "select array_to_string(allowed_senders, ' ') from parley_mail.quotas where role <> 'public'")
	b.Exec("select parley_mail.set_quota($1, messages_per_minute => 1000)", role)
	shop.RefusesMail(1, send, "ceo@example.org")
	b.Exec("select parley_mail.set_quota($1, without => array['allowed_senders'])", role)
	shop.Exec(send, "ceo@example.org")
	for _, list := range []string{"{}", "{nobody@}", "{null}", "{a b}"} {
		b.RefusesMail(10, "select parley_mail.set_quota('public', allowed_senders => $1::text[])", list)
	}
	b.RefusesMail(10, "select parley_mail.set_quota('public', allowed_senders => array['*'], without => array['allowed_senders'])")
}

func TestRightsOfMailAreGrantedAndRefuse(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	ann, bob := b.Role("ann"), b.Role("bob")
	as := b.As(ann)
	send := "select parley_mail.send('ann', array['x@example.com'], text => 'x')"
	as.RefusesMail(1, send)
	as.RefusesMail(1, "select parley_mail.create_object('accepted domain', 'example.net')")
	as.RefusesMail(1, "select parley_mail.apply('{}', dry_run => true)")
	as.RefusesMail(1, "select parley_mail.grant_right('SEND', $1)", ann)
	as.RefusesMail(1, "select parley_mail.set_quota($1)", ann)
	as.RefusesMail(1, "select parley_mail.export_configuration()")
	sqltest.Equal(as, 0, "select count(*) from parley_mail.objects")
	sqltest.Equal(as, 0, "select count(*) from parley_mail.audit")
	b.Exec("select parley_mail.grant_right('SEND', $1, with_grant_option => true)", ann)
	as.Exec(send)
	as.Exec("select parley_mail.grant_right('SEND', $1)", bob)
	as.RefusesMail(1, "select parley_mail.grant_right('VIEW', $1)", bob)
	b.As(bob).Exec(send)
	b.As(bob).RefusesMail(1, "select parley_mail.grant_right('SEND', 'public')")
	sqltest.Equal(as, true, "select parley_mail.revoke_right('SEND', $1)", bob)
	b.As(bob).RefusesMail(1, send)
	b.RefusesMail(2, "select parley_mail.grant_right('FLY', $1)", bob)
	b.RefusesMail(2, "select parley_mail.grant_right('SEND', 'nobody at all')")
	b.Exec("select parley_mail.grant_right('ADMINISTER', $1)", bob)
	b.As(bob).Exec("select parley_mail.create_object('accepted domain', 'example.net')")
	b.As(bob).RefusesMail(1, "select parley_mail.grant_right('SERVE', $1)", bob)
	b.As(bob).RefusesMail(1, "select parley_mail._p_configuration()")
	b.As(bob).Exec("select parley_mail.grant_right('SEND', 'public')")
	b.As(b.Role("carol")).Exec(send)
	for _, table := range []string{"_p_object", "_p_message", "_p_right", "_p_audit"} {
		if _, err := b.As(bob).DB.Exec(t.Context(), "select from parley_mail."+table); err == nil {
			t.Errorf("%s can be read", table)
		}
	}
}

// Users who stand for a role of PostgreSQL log in with its password: an administrator names none that he could not take himself, and
// nobody names a superuser. A role that becomes one later submits no more.
func TestRightsOfACredentialAreThoseOfARoleOfItsAuthor(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	admin, own, others, super, member := b.Role("admin"), b.Role("own"), b.Role("others"), b.Role("super"), b.Role("member")
	b.Exec("select parley_mail.grant_right('ADMINISTER', $1)", admin)
	b.Exec("select parley_mail.grant_right('SEND', $1)", own)
	b.Exec(fmt.Sprintf("grant %q to %q", own, admin))
	b.Exec(fmt.Sprintf("alter role %q superuser", super))
	b.Exec(fmt.Sprintf("grant %q to %q", super, member))
	for _, role := range []string{own, others} {
		b.Exec(fmt.Sprintf("alter role %q login", role))
	}
	const create = "select parley_mail.create_object('credential', 'user', jsonb_build_object('role', $1::text))"
	administrator := b.As(admin)
	for name, c := range map[string]struct {
		who  sqltest.Session
		role string
	}{
		"a role of others":                       {administrator, others},
		"a superuser":                            {administrator, super},
		"a superuser, by a superuser":            {b.Session, super},
		"a member of a superuser, by an owner":   {b.Session, member},
		"the superuser who installed the server": {b.Session, "postgres"},
	} {
		if refusal := c.who.RefusesMail(3, create, c.role); refusal.Detail == "" {
			t.Errorf("%s is refused without a reason", name)
		}
	}
	administrator.RefusesMail(2, create, "nobody at all")
	administrator.Exec(create, own)
	administrator.RefusesMail(3, "select parley_mail.alter_object('credential', 'user', jsonb_build_object('role', $1::text))", others)
	b.Exec("select parley_mail.alter_object('credential', 'user', jsonb_build_object('role', $1::text))", others)
	sqltest.Equal(b.Session, true, "select parley_mail._p_may_submit($1)", own)
	b.Exec(fmt.Sprintf("alter role %q superuser", own))
	sqltest.Equal(b.Session, false, "select parley_mail._p_may_submit($1)", own)
}
