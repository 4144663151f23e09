package rights_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

// planted overloads the operators and functions of pg_catalog in schema m, and puts relations and types of the same names there. Each
// counts in m.reached when it is called.
const planted = `
	create schema m;
	create sequence m.reached;
	set check_function_bodies = off;
	do $do$
	declare
		v record;
		v_body text := 'begin perform pg_catalog.nextval(''m.reached''); raise exception ''%''; end';
	begin
		for v in
			select o.oprname, o.oprleft::regtype::text as l, o.oprright::regtype::text as r, o.oprresult::regtype::text as result,
				format('operator %s', row_number() over ()) as f, o.oprleft = 0 as is_prefix
			from pg_operator as o
			where not exists (select from pg_type as t where t.oid in (o.oprleft, o.oprright, o.oprresult) and t.typtype = 'p') and o.oprcode <> 0
		loop
			if v.is_prefix then
				execute format('create function m.%I(%s) returns %s language plpgsql as %L', v.f, v.r, v.result, replace(v_body, '%', v.f));
				execute format('create operator m.%s (rightarg = %s, function = m.%I)', v.oprname, v.r, v.f);
			else
				execute format('create function m.%I(%s, %s) returns %s language plpgsql as %L', v.f, v.l, v.r, v.result, replace(v_body, '%', v.f));
				execute format('create operator m.%s (leftarg = %s, rightarg = %s, function = m.%I)', v.oprname, v.l, v.r, v.f);
			end if;
		end loop;
		for v in
			select p.proname, pg_get_function_identity_arguments(p.oid) as arguments, p.prorettype::regtype::text as result
			from pg_proc as p
			where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f' and not p.proretset and p.provariadic = 0
				and not exists (select from pg_type as t where t.oid = any (p.proargtypes::oid[] || p.prorettype) and t.typtype = 'p')
				and p.proname not in ('repeat', 'gen_random_uuid')
		loop
			execute format('create function m.%I(%s) returns %s language plpgsql as %L', v.proname, v.arguments, v.result, replace(v_body, '%', v.proname));
		end loop;
		for v in select c.relname from pg_class as c where c.relnamespace = 'pg_catalog'::regnamespace and c.relkind in ('r', 'v') loop
			execute format('create view m.%I as select 1 as planted', v.relname);
		end loop;
		for v in select unnest(array['int4', 'int8', 'bool', 'timestamptz']) as name loop
			execute format('create domain m.%1$I as pg_catalog.%1$I check (m.now() is null)', v.name);
		end loop;
	end$do$;
	reset check_function_bodies;
`

// Behind a pooler the search_path of the session before may be in force, and a role may have one set for it. Nothing in it is called.
func TestRightsWalkUnderAHostileSearchPath(t *testing.T) {
	t.Parallel()
	b, entries := newWalk(t)
	b.Exec("alter function public.watched() set search_path = pg_catalog, pg_temp")
	b.Exec(planted)
	b.Afterwards("drop schema m cascade")
	victim := sqltest.Value[string](b.Session, "select conversation_handle::text from parley.conversation_endpoints where is_initiator = 1 limit 1")
	for _, call := range []string{
		"select parley.send('" + victim + "', '//test/Request', 'third')",
		"select parley.send('" + victim + "', '//test/Request', 'third'::bytea, trace_context => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01')",
		"select parley.send_batch('" + victim + "', '//test/Request', array['third'])",
		"select parley.current_caller()",
		"select parley.receive('Answering')",
	} {
		entries = append(entries, entry{Name: call, Statement: "select string_agg(r::text, '') from (" + call + ") as r"})
	}
	hostile, clean := b.Connection(), b.Connection()
	hostile.Exec("set search_path = m, pg_catalog")
	done := 0
	for _, e := range entries {
		want, got := undone(clean, e.Statement), undone(hostile, e.Statement)
		if got != want {
			t.Errorf("%s: SQLSTATE %q, want %q as under the path of PostgreSQL", e.Name, got, want)
		}
		if want == "" {
			done++
		}
	}
	if done < 50 {
		t.Errorf("only %d of %d calls did anything", done, len(entries))
	}
	sqltest.Equal(b.Session, false, "select is_called from m.reached")
}

// undone makes a call, takes it back, and gives the code of its error.
func undone(s sqltest.Session, statement string) string {
	s.Helper()
	s.Exec("begin")
	defer s.Exec("rollback")
	err := call(s, statement).err
	var refusal *pgconn.PgError
	switch {
	case errors.As(err, &refusal):
		return refusal.Code
	case err != nil:
		return err.Error()
	}
	return ""
}
