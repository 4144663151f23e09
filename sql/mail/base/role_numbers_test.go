package base_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// The things that a role has in mail, rights, a quota, stored attachments, its submissions, are its own under whatever name, and nobody
// else's. Where a dump is restored it is that of who has the name there, as with GRANT, whoever has the oid. To refresh the place is what
// pg_restore does.
func TestWhatARoleHasInMailStaysItsOwn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	shop, other := b.Role("shop"), b.Role("other")
	b.Exec("select parley_mail.grant_right('SEND', $1), parley_mail.grant_right('READ_CONTENT', $1), parley_mail.grant_right('SEND', $2)", shop, other)
	b.Exec("select parley_mail.set_quota($1, messages_per_minute => 7)", shop)
	const send = "select parley_mail.send('shop', array['x@example.com'], 'Order', 'a', idempotency_key => 'k')"
	first := sqltest.Value[int64](b.As(shop), send)
	b.As(shop).Exec("select parley_mail.put_attachment('a')")
	b.Exec("select parley_mail._p_categorize()")
	renamed := shop + " renamed"
	const (
		follow  = "select parley_mail._p_follow_roles()"
		restore = "refresh materialized view parley._p_place"
		all     = "t 7 t 7 1 1 1 t"
		none    = "f f 0 0 0 f f"
	)
	elsewhere := restore + "; update parley._p_role_number set role = 1000000 + number where role <> 0"
	someoneElse := elsewhere + "; update parley._p_role_number set role = '" + sqltest.Quote(other) + "'::regrole where name = '" + shop + "'"
	rename := "alter role " + sqltest.Quote(shop) + " rename to " + sqltest.Quote(renamed)
	renameBack := "alter role " + sqltest.Quote(renamed) + " rename to " + sqltest.Quote(shop)
	takeName := "alter role " + sqltest.Quote(other) + " rename to " + sqltest.Quote(shop)
	numberOf := func(role string) string { return "select parley._p_number_of('" + sqltest.Quote(role) + "'::regrole)" }
	again := "drop role " + sqltest.Quote(shop) + "; create role " + sqltest.Quote(shop)
	for _, c := range []struct {
		name       string
		statements []string
		role       string
		want       string
	}{
		{"its role", nil, shop, all + " t"},
		{"another role", nil, other, none},
		{"here, followed", []string{follow}, shop, all + " t"},
		{"elsewhere, by its name", []string{elsewhere}, shop, all + " t"},
		{"elsewhere, followed", []string{elsewhere, follow}, shop, all + " t"},
		{"elsewhere, where its oid is somebody else's", []string{someoneElse}, other, none},
		{"elsewhere, where its oid is somebody else's, followed", []string{someoneElse, follow}, other, none},
		{"elsewhere, where its oid was somebody else's who takes its name", []string{someoneElse, follow, "drop role " + sqltest.Quote(shop), takeName}, shop, none},
		{"renamed here", []string{rename}, renamed, all + " t"},
		{"renamed here, followed", []string{rename, follow}, renamed, all + " t"},
		{"renamed here, its name taken", []string{rename, takeName}, shop, none},
		{"renamed here, followed, then elsewhere", []string{rename, follow, elsewhere}, renamed, all + " t"},
		{"renamed and not followed, then elsewhere", []string{rename, elsewhere}, renamed, none},
		{"renamed elsewhere", []string{elsewhere, follow, rename}, renamed, all + " t"},
		{"restored beside the original, where its name was taken", []string{rename, takeName, restore}, shop, all + " t"},
		{"restored beside the original, where it was renamed", []string{rename, takeName, restore, numberOf(shop)}, renamed, none},
		{"restored beside the original, where it was renamed and has a number", []string{rename, takeName, restore, numberOf(renamed)}, shop, all + " t"},
		{"dropped, and its name given again", []string{again}, shop, none},
		{"dropped, and its name given again, followed", []string{again, follow}, shop, none},
		{"dropped and followed, then elsewhere", []string{again, follow, elsewhere, follow}, shop, none},
		{"dropped and not followed, then elsewhere", []string{again, elsewhere}, shop, all + " t"},
		{"found again when it has another number", []string{rename, elsewhere, numberOf(renamed), renameBack, follow}, shop, all + " f"},
		{"and so on", []string{rename, elsewhere, numberOf(renamed), renameBack, follow, elsewhere, follow, elsewhere, numberOf(shop), follow}, shop, all + " f"},
	} {
		tx := b.Begin()
		for _, statement := range c.statements {
			tx.Exec(statement)
		}
		tx.Exec("select parley_mail.grant_right('SEND', $1)", c.role)
		got := sqltest.Value[string](tx, "select concat_ws(' ', parley_mail._p_holds(r.oid, 'READ_CONTENT'), (parley_mail._p_submitter_of(r.oid)).messages_per_minute) from pg_roles as r where r.rolname = $1", c.role)
		tx.Exec("set session authorization " + sqltest.Quote(c.role))
		if got += " " + sqltest.Value[string](tx, `select concat_ws(' ', exists (select from parley_mail.rights where name = 'READ_CONTENT'), (select messages_per_minute from parley_mail.quotas),
			(select count(*) from parley_mail.stored_attachments), (select count(*) from parley_mail.submitted_messages), (select count(*) from parley_mail.waiting_recipients),
			exists (select from parley_mail.tracking), ($1 = (`+send+`)))`, first); got != c.want {
			t.Errorf("%s: has %s, want %s", c.name, got, c.want)
		}
		tx.Rollback()
	}
	// Nor is mail delivered by the rights of somebody else.
	b.Exec("create table public.inbox (payload jsonb)")
	b.Exec(`select parley_mail.apply('{"service binding": {"inbox": {"pattern": "inbox@example.org", "table": "public.inbox"}}}')`)
	const require = "select parley_mail._p_require_binding_rights(p) from parley_mail._p_service_pattern as p"
	b.Exec(require)
	tx := b.Begin()
	tx.Exec(restore)
	tx.Exec("update parley._p_role_number as n set name = 'gone' where n.number = (select p.author from parley_mail._p_service_pattern as p)")
	tx.RefusesMail(1, require)
	tx.Rollback()
	// Rights of a role that is not there are shown, and can be taken away.
	tx = b.Begin()
	tx.Exec(rename)
	tx.Exec(elsewhere)
	const shown = "select concat_ws(' ', (select count(*) from parley_mail.rights where role = $1), (select count(*) from parley_mail.quotas where role = $1))"
	sqltest.Equal(tx, "2 1", shown, shop)
	sqltest.Equal(tx, true, "select parley_mail.revoke_right('READ_CONTENT', $1) and parley_mail.revoke_right('SEND', $1) and parley_mail.drop_quota($1)", shop)
	sqltest.Equal(tx, "0 0", shown, shop)
	tx.Rollback()
	// Of those who are gone nothing is shown, and nothing is left that a dump would give somebody else.
	tx = b.Begin()
	tx.Exec("drop role " + sqltest.Quote(shop))
	const rows = "select concat_ws(' ', (select count(*) from parley_mail.rights), (select count(*) from parley_mail.quotas), (select count(*) from parley_mail._p_right), (select count(*) from parley_mail._p_quota), (select count(*) from parley._p_role_number where role = 0))"
	sqltest.Equal(tx, "1 0 3 1 0", rows)
	sqltest.Equal(tx, 1, follow)
	sqltest.Equal(tx, "1 0 1 0 1", rows)
	sqltest.Equal(tx, 1, "select parley_mail._p_expire_attachments()")
	tx.Rollback()
	// Columns that COPY refuses where a role is missing would take all rows with them.
	sqltest.Equal(b.Session, 0, "select count(*)::int from pg_attribute as a join pg_class as c on c.oid = a.attrelid where c.relnamespace = 'parley_mail'::regnamespace and c.relkind = 'r' and a.atttypid::regtype::text like 'reg%'")
}

// A grant to a role waits for no transaction of it, and its grants and the rows that it wrote meanwhile are of one role.
func TestGrantWaitsForNoTransactionOfItsRole(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	role := b.Role("shop")
	b.Exec("select parley_mail.grant_right('SEND', 'public')")
	shop := b.As(role)
	shop.Exec("begin")
	shop.Exec("select parley_mail.send('shop', array['x@example.com'], 'Order', 'a')")
	tx := b.Begin()
	tx.Exec("set local statement_timeout = '20 s'")
	tx.Exec("select parley_mail.grant_right('READ_CONTENT', $1), parley_mail.set_quota($1, messages_per_minute => 1)", role)
	tx.Commit()
	shop.Exec("commit")
	sqltest.Equal(b.Session, "2 t", "select concat_ws(' ', cardinality(parley._p_numbers_of(r.oid)), parley_mail._p_holds(r.oid, 'READ_CONTENT')) from pg_roles as r where r.rolname = $1", role)
	sqltest.Equal(shop, 1, "select count(*)::int from parley_mail.submitted_messages")
	shop.Exec("select parley_mail.send('shop', array['x@example.com'], 'Order', 'a')")
	shop.RefusesMail(13, "select parley_mail.send('shop', array['x@example.com'], 'Order', 'a')")
}
