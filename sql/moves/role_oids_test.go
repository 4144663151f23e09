package moves_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// unnumbered are the columns of roles that give a role no number, with the reason.
var unnumbered = map[string]string{
	"parley._p_endpoint owner":                ownerOfAService,
	"parley._p_tombstone owner":               ownerOfAService,
	"parley._p_local_dialog owner":            ownerOfAService,
	"parley._p_local_dialog far_owner":        ownerOfAService,
	"parley._p_local_dialog queue_owner":      "it is that of a queue",
	"parley._p_local_dialog contract_owner":   "it is that of a contract",
	"parley._p_endpoint sender_role":          "the next message finds it again",
	"parley._p_dialog_security far_principal": "it is that of a certificate",
	"parley._p_activated_task execute_as":     "the next report writes it",
	"parley._p_leader login":                  "the next daemon that leads writes it",
}

const ownerOfAService = "it is that of a service"

// Each column that names a role either has a trigger which gives the role a number, by which it is found again elsewhere, or needs none.
func TestEveryRoleOfTheBrokerHasANumber(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	for _, column := range sqltest.Values[string](b.Session, `
		select a.attrelid::regclass || ' ' || a.attname
		from pg_attribute as a
		join pg_class as c on c.oid = a.attrelid and c.relkind = 'r'
		where a.atttypid = 'parley._p_role_oid'::regtype
			and not exists (
				select from pg_trigger as t
				where t.tgrelid = a.attrelid and t.tgfoid = 'parley._p_number_roles()'::regprocedure and a.attnum = any (t.tgattr)
					and position('\000' || a.attname || '\000' in '\000' || encode(t.tgargs, 'escape')) > 0
			)`) {
		if unnumbered[column] == "" {
			t.Errorf("%s gives the role no number", column)
		}
	}
	sqltest.Equal(b.Session, 0, `
		select count(*)::int from pg_attribute as a
		join pg_class as c on c.oid = a.attrelid and c.relkind in ('r', 'm', 'p')
		where c.relnamespace::regnamespace::text like 'parley%' and a.attnum > 0
			and (a.atttypid = 'regrole'::regtype or a.atttypid = 'regprocedure'::regtype or a.atttypid = 'regproc'::regtype)`)
}

// The broker's rows of a role belong to the role that has its name, where a dump is restored. To refresh the place and the secret is what
// pg_restore does.
func TestWhatARoleHasOfTheBrokerStaysItsOwn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	shop, other, owner := b.Role("shop"), b.Role("other"), b.Role("owner")
	b.Exec("select parley.grant('SEND', 'service', '//test/Answerer', $1), parley.grant('RECEIVE', 'queue', 'Asking', $1)", shop)
	b.Exec("select parley.alter_authorization('queue', 'Answering', $1)", owner)
	// Each case ends by a rollback.
	b.Exec("select parley.alter_queue('Answering', poison_message_handling => false)")
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "first")
	const restore = "refresh materialized view parley._p_place; refresh materialized view parley._p_found_roles"
	const follow = "select parley._p_follow_roles()"
	rename := func(from, to string) string {
		return "alter role " + sqltest.Quote(from) + " rename to " + sqltest.Quote(to)
	}
	swap := rename(shop, "x"+shop) + "; " + rename(other, shop) + "; " + rename("x"+shop, other)
	for _, c := range []struct {
		name       string
		statements []string
		has, not   []string
	}{
		{"here", nil, []string{shop}, []string{other}},
		{"renamed here", []string{rename(shop, shop+" 2")}, []string{shop + " 2"}, []string{other}},
		{"restored where its oid is the same", []string{restore}, []string{shop}, []string{other}},
		{"restored where each has the other's oid", []string{swap, restore}, []string{shop}, []string{other}},
		{"the same, twice", []string{swap, restore, swap, restore}, []string{shop}, []string{other}},
		{"renamed, followed, and then restored", []string{rename(shop, shop+" 2"), follow, restore}, []string{shop + " 2"}, []string{other}},
		{"restored where it is missing", []string{rename(shop, shop+" 2"), restore}, nil, []string{shop + " 2", other}},
		{
			"restored where it is missing, and made later",
			[]string{rename(shop, shop+" 2"), restore, "create role " + sqltest.Quote(shop), follow},
			[]string{shop},
			[]string{shop + " 2", other},
		},
		{
			"missing once, and restored again where it is",
			[]string{rename(shop, shop+" 2"), restore, rename(shop+" 2", shop), restore},
			[]string{shop},
			[]string{other},
		},
		{
			"dropped, its name given again, and restored",
			[]string{"drop role " + sqltest.Quote(shop), "create role " + sqltest.Quote(shop), follow, restore},
			nil,
			[]string{shop, other},
		},
	} {
		tx := b.Begin()
		for _, statement := range c.statements {
			for part := range strings.SplitSeq(statement, "; ") {
				tx.Exec(part)
			}
		}
		const holds = `
			select parley._p_has_permission(r.oid, 'SEND', 'service', s.service_id, s.owner)
				and parley._p_has_permission(r.oid, 'RECEIVE', 'queue', q.queue_id, q.owner)
			from pg_roles as r, parley._p_service as s, parley._p_queue as q
			where r.rolname = $1 and s.name = '//test/Answerer' and q.name = 'Asking'`
		for _, role := range c.has {
			if !sqltest.Value[bool](tx, holds, role) {
				t.Errorf("%s: %s has lost its rights", c.name, role)
			}
		}
		for _, role := range c.not {
			if sqltest.Value[bool](tx, holds, role) {
				t.Errorf("%s: %s has what is not its own", c.name, role)
			}
		}
		if got := sqltest.Value[string](tx, "select q.owner::regrole::text from parley._p_queue as q where q.name = 'Answering'"); got != sqltest.Quote(owner) {
			t.Errorf("%s: the queue belongs to %s", c.name, got)
		}
		tx.Exec("select parley.send($1::uuid, $2, 'second')", handle, sqltest.Request)
		if n := sqltest.Value[int](tx, "select count(*)::int from parley.receive('Answering', top => 10)"); n != 2 {
			t.Errorf("%s: %d messages were received, want 2", c.name, n)
		}
		tx.Rollback()
	}
	// Rows of a role that nobody is known to have been are nobody's, not those of a role made later.
	b.Exec("delete from parley._p_role_number where name = $1", shop)
	b.Exec(restore)
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley._p_permission where grantee <> 0 and class <> 'database'")
}
