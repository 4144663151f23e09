package rights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// gives reports what the specification says of a grant: whether its grantee holds a permission on an object by it.
func gives(granted, asked sqltest.Right) bool {
	ofClass := strings.ToUpper(asked.Class)
	switch {
	case granted == asked:
		return true
	case granted.Class == asked.Class && granted.Object == asked.Object:
		return granted.Permission == "CONTROL" ||
			granted.Permission == "ALTER" && asked.Permission == "VIEW DEFINITION" ||
			asked.Class == "database" && strings.HasPrefix(asked.Permission, "CREATE ") &&
				granted.Permission == "ALTER ANY "+strings.TrimPrefix(asked.Permission, "CREATE ")
	case granted.Class == "database" && granted.Permission == "ALTER ANY "+ofClass:
		return asked.Permission == "ALTER" || asked.Permission == "VIEW DEFINITION"
	case granted.Class == "database" && granted.Permission == "VIEW DEFINITION":
		return asked.Permission == "VIEW DEFINITION"
	}
	return false
}

// Each permission gives what it names, and no other: on its object, to its grantee.
func TestRightsOfAPermissionAreThoseThatItGives(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	holder, other := b.Role("holder"), b.Role("other")
	var all []sqltest.Right
	for _, object := range []struct{ class, name, more string }{
		{"queue", "Asking", "RECEIVE,REFERENCES"},
		{"queue", "Answering", "RECEIVE,REFERENCES"},
		{"service", "//test/Asker", "SEND"},
		{"contract", "//test/Work", "REFERENCES"},
		{"message type", sqltest.Note, "REFERENCES"},
	} {
		for _, permission := range append([]string{"CONTROL", "TAKE OWNERSHIP", "ALTER", "VIEW DEFINITION"}, strings.Split(object.more, ",")...) {
			all = append(all, sqltest.RightTo(permission, object.class, object.name))
		}
	}
	for _, class := range []string{"MESSAGE TYPE", "CONTRACT", "QUEUE", "SERVICE", "ROUTE"} {
		all = append(all, sqltest.RightTo("CREATE "+class, "database", ""), sqltest.RightTo("ALTER ANY "+class, "database", ""))
	}
	all = append(all, sqltest.RightTo("VIEW DEFINITION", "database", ""))
	b.Exec("create table public.asked (n serial, permission text, class text, object text)")
	for _, r := range all {
		b.Exec("insert into public.asked (permission, class, object) values ($1, $2, $3)", r.Permission, r.Class, r.Object)
	}
	const held = `
		select (a.n - 1)::int
		from public.asked as a
		left join parley._p_named_object as o on o.class = a.class and o.name = a.object
		join pg_roles as r on r.rolname = $1
		where parley._p_has_permission(r.oid, a.permission, a.class, coalesce(o.object_id, 0), o.owner)
		order by 1`
	for _, granted := range all {
		b.Grant(granted, holder)
		var want []int
		for n, asked := range all {
			if gives(granted, asked) {
				want = append(want, n)
			}
		}
		got := sqltest.Values[int](b.Session, held, holder)
		for n, asked := range all {
			if slices.Contains(got, n) != slices.Contains(want, n) {
				t.Errorf("%v gives %v: %v, want %v", granted, asked, slices.Contains(got, n), slices.Contains(want, n))
			}
		}
		if got := sqltest.Values[int](b.Session, held, other); len(got) != 0 {
			t.Errorf("%v, granted to one role, gives another one %v", granted, all[got[0]])
		}
		b.Revoke(granted, holder)
	}
}
