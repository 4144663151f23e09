package sql_test

import (
	"slices"
	"strings"
	"testing"
)

// gives reports what the specification says of a grant: whether its grantee holds a permission on an object by it.
func gives(granted, asked right) bool {
	ofClass := strings.ToUpper(asked.class)
	switch {
	case granted == asked:
		return true
	case granted.class == asked.class && granted.object == asked.object:
		return granted.permission == "CONTROL" ||
			granted.permission == "ALTER" && asked.permission == "VIEW DEFINITION" ||
			asked.class == "database" && strings.HasPrefix(asked.permission, "CREATE ") &&
				granted.permission == "ALTER ANY "+strings.TrimPrefix(asked.permission, "CREATE ")
	case granted.class == "database" && granted.permission == "ALTER ANY "+ofClass:
		return asked.permission == "ALTER" || asked.permission == "VIEW DEFINITION"
	case granted.class == "database" && granted.permission == "VIEW DEFINITION":
		return asked.permission == "VIEW DEFINITION"
	}
	return false
}

// Each permission gives what it names, and no other: on its object, to its grantee.
func TestRightsOfAPermissionAreThoseThatItGives(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	holder, other := b.role("holder"), b.role("other")
	var all []right
	for _, object := range []struct{ class, name, more string }{
		{"queue", "Asking", "RECEIVE,REFERENCES"},
		{"queue", "Answering", "RECEIVE,REFERENCES"},
		{"service", "//test/Asker", "SEND"},
		{"contract", "//test/Work", "REFERENCES"},
		{"message type", note, "REFERENCES"},
	} {
		for _, permission := range append([]string{"CONTROL", "TAKE OWNERSHIP", "ALTER", "VIEW DEFINITION"}, strings.Split(object.more, ",")...) {
			all = append(all, right{permission, object.class, object.name})
		}
	}
	for _, class := range []string{"MESSAGE TYPE", "CONTRACT", "QUEUE", "SERVICE", "ROUTE"} {
		all = append(all, right{"CREATE " + class, "database", ""}, right{"ALTER ANY " + class, "database", ""})
	}
	all = append(all, right{"VIEW DEFINITION", "database", ""})
	b.exec("create table public.asked (n serial, permission text, class text, object text)")
	for _, r := range all {
		b.exec("insert into public.asked (permission, class, object) values ($1, $2, $3)", r.permission, r.class, r.object)
	}
	const held = `
		select (a.n - 1)::int
		from public.asked as a
		left join parley._p_named_object as o on o.class = a.class and o.name = a.object
		join pg_roles as r on r.rolname = $1
		where parley._p_has_permission(r.oid, a.permission, a.class, coalesce(o.object_id, 0), o.owner)
		order by 1`
	for _, granted := range all {
		b.grant(granted, holder)
		var want []int
		for n, asked := range all {
			if gives(granted, asked) {
				want = append(want, n)
			}
		}
		got := values[int](b.session, held, holder)
		for n, asked := range all {
			if slices.Contains(got, n) != slices.Contains(want, n) {
				t.Errorf("%v gives %v: %v, want %v", granted, asked, slices.Contains(got, n), slices.Contains(want, n))
			}
		}
		if got := values[int](b.session, held, other); len(got) != 0 {
			t.Errorf("%v, granted to one role, gives another one %v", granted, all[got[0]])
		}
		b.revoke(granted, holder)
	}
}
