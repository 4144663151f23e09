package submission_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A user of SMTP and HTTP who stands for a role is held to its list, unless his credential has one.
func TestCredentialOfARoleHasItsSenders(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	role := b.Role("shop")
	b.Exec("select parley_mail.set_quota($1, allowed_senders => array['orders@example.org'])", role)
	b.Exec("select parley_mail.create_object('credential', 'a', jsonb_build_object('role', $1::text))", role)
	b.Exec("select parley_mail.create_object('credential', 'b', jsonb_build_object('role', $1::text, 'allowed_senders', 'b@example.org'))", role)
	const senders = `select coalesce(c #>> '{objects,credential,a,allowed_senders}', '') || ' ' || (c #>> '{objects,credential,b,allowed_senders}')
		from parley_mail._p_configuration() as c`
	sqltest.Equal(b.Session, `["orders@example.org"] ["b@example.org"]`, senders)
	before := sqltest.Value[int64](b.Session, "select (parley_mail._p_configuration() ->> 'version')::bigint")
	b.Exec("select parley_mail.set_quota($1, without => array['allowed_senders'])", role)
	sqltest.Equal(b.Session, `[] ["b@example.org"]`, senders)
	// Daemons read a configuration whose version is another.
	const isNewer = "select (parley_mail._p_configuration() ->> 'version')::bigint > $1"
	sqltest.Equal(b.Session, true, isNewer, before)
	b.Exec("select parley_mail.set_quota($1, allowed_senders => array['*'])", role)
	before = sqltest.Value[int64](b.Session, "select (parley_mail._p_configuration() ->> 'version')::bigint")
	b.Exec("select parley_mail.drop_quota($1)", role)
	sqltest.Equal(b.Session, `[] ["b@example.org"]`, senders)
	sqltest.Equal(b.Session, true, isNewer, before)
}

// An address of plain letters costs no walk through the tables of Unicode, whether there is a default domain or not.
func TestPlainSenderIsComparedWithoutTheTablesOfUnicode(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`select parley_mail.apply('{
		"organization": {"organization": {"default_domain": null}},
		"accepted domain": {"example.org": {}, "*.example.org": {}}
	}')`)
	for _, sender := range []string{"shop@example.org", "Shop@EXAMPLE.org", "shop@sub.example.org"} {
		tx := b.Begin()
		tx.Exec("set local track_functions = 'all'")
		tx.Exec("select parley_mail.send($1, '{you@example.net}', subject => 'Hello', text => 'Hello')", sender)
		sqltest.Equal(tx, 0, `select count(*) from pg_stat_xact_user_functions
			where schemaname = 'parley_mail' and funcname in ('_p_folded_idna', '_p_lower_letters')`)
		tx.Rollback()
	}
}
