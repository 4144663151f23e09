package sql_test

import "testing"

// What a role has submitted is its own under whatever name, here and on a server on which a dump is restored, and nobody else's: also where
// its oid there is somebody else's, or its name here. Such a dump has names of roles, but the bare oid of one that was dropped.
func TestSubmissionsStayThoseOfTheirRole(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	shop, other := b.role("shop"), b.role("other")
	b.exec("select parley_mail.grant_right('SEND', $1), parley_mail.grant_right('SEND', $2)", shop, other)
	const send = "select parley_mail.send('shop', array['x@example.com'], 'Order', 'a', idempotency_key => 'k')"
	first := value[int64](b.as(shop), send)
	b.exec("select parley_mail._p_categorize()")
	renamed := shop + " renamed"
	const follow = "select parley_mail._p_follow_roles()"
	elsewhere := "update parley_mail._p_role_number set system_identifier = 1, role_there = number::oid where name = '" + shop + "'"
	someoneElse := "update parley_mail._p_role_number set system_identifier = 1, role = '" + quote(other) + "'::regrole where name = '" + shop + "'"
	rename := "alter role " + quote(shop) + " rename to " + quote(renamed)
	again := "drop role " + quote(shop) + "; create role " + quote(shop)
	for _, c := range []struct {
		name       string
		statements []string
		role       string
		isIts      bool
	}{
		{"its role", nil, shop, true},
		{"another role", nil, other, false},
		{"here, followed", []string{follow}, shop, true},
		{"elsewhere, by its name", []string{elsewhere}, shop, true},
		{"elsewhere, followed", []string{elsewhere, follow}, shop, true},
		{"elsewhere, where its oid is somebody else's", []string{someoneElse}, other, false},
		{"elsewhere, where its oid is somebody else's, followed", []string{someoneElse, follow}, other, false},
		{"elsewhere, where its oid was somebody else's who takes its name", []string{someoneElse, follow, "drop role " + quote(shop), "alter role " + quote(other) + " rename to " + quote(shop)}, shop, false},
		{"renamed here", []string{rename}, renamed, true},
		{"renamed here, followed", []string{rename, follow}, renamed, true},
		{"renamed here, then elsewhere", []string{rename, follow, "update parley_mail._p_role_number set system_identifier = 1"}, renamed, true},
		{"renamed and not followed, then elsewhere", []string{rename, elsewhere}, renamed, false},
		{"renamed elsewhere", []string{elsewhere, follow, rename}, renamed, true},
		{"dropped, and its name given again", []string{again}, shop, false},
		{"dropped, and its name given again, followed", []string{again, follow}, shop, false},
	} {
		tx := b.begin()
		for _, statement := range c.statements {
			tx.exec(statement)
		}
		tx.exec("select parley_mail.grant_right('SEND', $1)", c.role)
		tx.exec("set session authorization " + quote(c.role))
		want := "0 0 f f"
		if c.isIts {
			want = "1 1 t t"
		}
		if got := value[string](tx, `select concat_ws(' ', (select count(*) from parley_mail.submitted_messages), (select count(*) from parley_mail.waiting_recipients),
			exists (select from parley_mail.tracking), ($1 = (`+send+`)))`, first); got != want {
			t.Errorf("%s: sees %s, want %s", c.name, got, want)
		}
		tx.rollback()
	}
	// Nor is mail delivered by the rights of somebody else.
	b.exec("create table public.inbox (payload jsonb)")
	b.exec(`select parley_mail.apply('{"service binding": {"inbox": {"pattern": "inbox@example.org", "table": "public.inbox"}}}')`)
	const require = "select parley_mail._p_require_binding_rights(p) from parley_mail._p_service_pattern as p"
	b.exec(require)
	tx := b.begin()
	tx.exec("update parley_mail._p_role_number as n set system_identifier = 1, name = 'gone' where n.number = (select p.author from parley_mail._p_service_pattern as p)")
	tx.refusesMail(1, require)
	tx.rollback()
	// Of those who are gone nothing is left that a dump would give somebody else.
	b.exec("select parley_mail.set_quota($1, messages_per_minute => 3)", other)
	tx = b.begin()
	tx.exec("drop role " + quote(other))
	tx.exec(follow)
	equal(tx, "1 0 0 0", "select concat_ws(' ', (select count(*) from parley_mail._p_role_number where role = 0), (select count(*) from parley_mail._p_role_number where role::oid = $1::oid), (select count(*) from parley_mail._p_quota), (select count(*) from parley_mail._p_right where grantee::oid = $1::oid))",
		value[uint32](b.session, "select r.oid from pg_roles as r where r.rolname = $1", other))
	tx.rollback()
}
