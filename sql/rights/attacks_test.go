package rights_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Each attack here gave its maker the rights of another role once. The caller of a function of Parley is current_user where the call
// stands, and PostgreSQL makes that the owner of a table while it runs functions of the table's owner for another role.

// newMallory may create tables in a schema of the role's own, and nothing else.
func newMallory(b *sqltest.Broker) (role string, s sqltest.Session) {
	b.Helper()
	role = b.Role("mallory")
	b.Exec("create schema m authorization " + sqltest.Quote(role))
	b.Afterwards("drop schema m cascade")
	s = b.As(role)
	s.Exec("create table m.log (role name, state text, message text)")
	s.Exec("create table m.t (a int)")
	s.Exec("insert into m.t select generate_series(1, 10)")
	return role, s
}

// plant makes a function that runs a statement wherever another role evaluates the index expression of m.t.
func plant(s sqltest.Session, statement string) {
	s.Helper()
	s.Exec("create function m.f(a int) returns int immutable language plpgsql as $$begin return a; end$$")
	s.Exec("create index on m.t (m.f(a))")
	s.Exec(`
		create function m.attack() returns void language plpgsql as $f$
		begin
			` + statement + `
			insert into m.log (role, state) values (current_user, 'done');
		exception when others then
			insert into m.log (role, state, message) values (current_user, sqlstate, sqlerrm);
		end$f$`)
	s.Exec(`
		create or replace function m.f(a int) returns int immutable language plpgsql as $f$
		begin
			if session_user <> current_user and a = 1 then
				perform m.attack();
			end if;
			return a;
		end$f$`)
}

// maintenance lists statements that run functions of a table's owner in the session of another role.
var maintenance = []struct{ name, statement string }{
	{"ANALYZE", "analyze m.t"},
	{"VACUUM FULL", "vacuum full m.t"},
	{"REINDEX", "reindex table m.t"},
	{"CLUSTER", "cluster m.t using t_f_idx"},
	{"CREATE INDEX", "create index on m.t (m.f(a), a)"},
}

func TestRightsOfWhoeverMaintainsATableAreNotItsOwners(t *testing.T) {
	t.Parallel()
	attacks := []struct{ name, statement string }{
		{"grant", "perform parley.grant('CONTROL', 'queue', 'Answering', session_user::text);"},
		{"create a queue that runs as somebody", "perform parley.create_queue('Planted', activation_procedure => 'public.read', execute_as => session_user::text);"},
		{"receive", "perform parley.receive('Answering');"},
		{"send on a conversation that has sent before", "perform parley.send((select h from public.victim), '//test/Request', 'x'::bytea);"},
		{"send many", "perform parley.send_batch_binary((select h from public.victim), '//test/Request', array['x'::bytea]);"},
		{"send to many", "perform parley.send_to_all(array[(select h from public.victim)], '//test/Request', 'x'::bytea);"},
		{"send with a trace", "perform parley.send((select h from public.victim), '//test/Request', 'x'::bytea, trace_context => null);"},
	}
	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec("create procedure public.read() language sql as ''")
			victim := b.Dialog()
			b.Send(victim, sqltest.Request, "first")
			b.Send(victim, sqltest.Request, "second")
			b.Exec("create table public.victim as select '" + victim + "'::uuid as h")
			b.Exec("grant select on public.victim to public")
			_, mallory := newMallory(b)
			plant(mallory, attack.statement)
			before := b.Everything()
			for _, m := range maintenance {
				b.Exec(m.statement)
			}
			if after := b.Everything(); after != before {
				t.Errorf("the broker was changed:\n%s", sqltest.Difference(before, after))
			}
			done := sqltest.Values[string](b.Session, "select coalesce(state || ' ' || message, state) from m.log")
			if len(done) == 0 {
				t.Error("the function of the table's owner was never called")
			}
			for _, line := range done {
				if !strings.HasPrefix(line, sqltest.SQLState(229)) && !strings.HasPrefix(line, sqltest.SQLState(15151)) {
					t.Errorf("got %q, want a refusal", line)
				}
			}
		})
	}
}

// REFRESH MATERIALIZED VIEW runs its query as the owner of the view.
func TestRightsOfWhoeverRefreshesAViewAreNotItsOwners(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Send(b.Dialog(), sqltest.Request, "secret")
	_, mallory := newMallory(b)
	mallory.Exec("create materialized view m.v as select r.message_body from parley.receive('Answering') as r with no data")
	before := b.Everything()
	_, err := b.DB.Exec(t.Context(), "refresh materialized view m.v")
	requireRefused(t, err, 229)
	if after := b.Everything(); after != before {
		t.Errorf("the broker was changed:\n%s", sqltest.Difference(before, after))
	}
}

// A role that is gone has no rights, and neither has one that took its name.
func TestRightsOfADroppedRoleAreNone(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, change string }{
		{"dropped", "drop role %"},
		{"renamed", "alter role % rename to "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			role := b.Role("login")
			worker := sqltest.Value[string](b.Session, "select 'worker ' || current_database()")
			b.Exec("create role " + sqltest.Quote(worker))
			b.Exec("grant " + sqltest.Quote(worker) + " to " + sqltest.Quote(role))
			b.Exec("select parley.grant('CONTROL', 'queue', 'Answering', $1)", worker)
			s := b.As(role)
			s.Exec("set role " + sqltest.Quote(worker))
			s.Exec("select parley.receive('Answering')")
			change := strings.ReplaceAll(c.change, "%", sqltest.Quote(worker))
			if c.name == "renamed" {
				renamed := sqltest.Quote("renamed " + worker)
				change += renamed
				b.Afterwards("drop role " + renamed)
			} else {
				b.Exec("select parley.revoke('CONTROL', 'queue', 'Answering', $1)", worker)
			}
			b.Exec(change)
			before := b.Everything()
			for _, statement := range []string{
				"select parley.create_queue('Mine')",
				"select parley.grant('CONTROL', 'queue', 'Asking', 'PUBLIC')",
				"select parley.trust_peer(repeat('c3', 32), 'me')",
				"select parley.disable_broker()",
			} {
				if _, err := s.DB.Exec(t.Context(), statement); err == nil {
					t.Errorf("%s: allowed", statement)
				}
			}
			if after := b.Everything(); after != before {
				t.Errorf("the broker was changed:\n%s", sqltest.Difference(before, after))
			}
		})
	}
}

// A function that is SECURITY DEFINER sends and receives with the rights of its owner, as in the rest of PostgreSQL, and nobody else's.
func TestRightsInADefinerFunctionAreItsOwners(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	app, user := b.Role("app"), b.Role("user")
	for _, queue := range []string{"Asking", "Answering"} {
		b.Exec("select parley.grant('RECEIVE', 'queue', $1, $2)", queue, app)
	}
	for _, contract := range []string{"//test/Work", "DEFAULT"} {
		b.Exec("select parley.grant('REFERENCES', 'contract', $1, $2)", contract, app)
	}
	b.Exec("create schema app authorization " + sqltest.Quote(app))
	b.Afterwards("drop schema app cascade")
	owner := b.As(app)
	owner.Exec("grant usage on schema app to public")
	owner.Exec(`create function app.ask(body text) returns uuid language plpgsql security definer as $$
		declare h uuid := parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work');
		begin
			perform parley.send(h, '//test/Request', body);
			perform parley.send(h, '//test/Request', body);
			return h;
		end$$`)
	owner.Exec(`create function app.answer() returns bigint language sql security definer as
		$$select count(*) from parley.receive('Answering')$$`)
	caller := b.As(user)
	handle := sqltest.Value[string](caller, "select app.ask('hello')")
	if got := sqltest.Value[int](caller, "select app.answer()"); got != 2 {
		t.Errorf("the owner of the function received %d messages, want 2", got)
	}
	// Neither what the function did nor what it saw is left to its caller.
	caller.Refuses(229, "select parley.send($1::uuid, '//test/Request', 'mine')", handle)
	caller.Refuses(229, "select parley.receive('Answering')")
	caller.Refuses(229, "select parley.get_transmission_status($1::uuid)", handle)

	// The other way round: a role without rights has none while a superuser calls.
	_, mallory := newMallory(b)
	mallory.Exec(`create function m.steal() returns void language plpgsql security definer as
		$$begin perform parley.grant('CONTROL', 'queue', 'Answering', 'PUBLIC'); end$$`)
	_, err := b.DB.Exec(t.Context(), "select m.steal()")
	requireRefused(t, err, 15151)
}

// The argument that brings the caller takes no other name than that of the role that calls, however it comes.
func TestRightsCannotBeHadByTheNameOfAnother(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role, mallory := newMallory(b)
	superuser := sqltest.Value[string](b.Session, "select current_user::text")
	name := "'" + superuser + "'"
	create := func(caller string) string { return "parley.create_queue('Planted', caller => " + caller + ")" }
	for _, statement := range []string{
		"select " + create("null"),
		"select " + create("''"),
		"select " + create(name),
		"select " + create(name+"::name"),
		"select " + create(name+"::parley.caller"),
		"select " + create("cast(null as parley.caller)"),
		"select " + create("r.c") + " from (select " + name + "::parley.caller as c) as r",
		"select " + create("r.c") + " from json_to_record('{\"c\": \"" + superuser + "\"}') as r (c parley.caller)",
		"select " + create("(array["+name+"]::parley.caller[])[1]"),
		"do $do$ declare c parley.caller; begin c := " + name + "; perform " + create("c") + "; end $do$",
		"do $do$ declare r record; begin select " + name + "::name as c into r; perform " + create("r.c") + "; end $do$",
		"do $do$ begin execute $$select " + create("$1") + "$$ using " + name + "::name; end $do$",
	} {
		_, err := mallory.DB.Exec(t.Context(), statement)
		var refusal *pgconn.PgError
		if !errors.As(err, &refusal) || refusal.Code != "42501" && refusal.Code != "23514" {
			t.Errorf("%s: got %v, want a refusal", statement, err)
		}
	}
	// It cannot be kept, to be used when another role calls.
	for _, statement := range []string{
		"create temp table kept (c parley.caller)",
		"create temp table kept as select current_user::parley.caller as c",
		"create temp table kept (c parley.caller[])",
		"create type m.kept as (c parley.caller)",
		"create domain m.kept as parley.caller",
		"create view m.kept as select current_user::parley.caller as c",
		"create function m.kept() returns parley.caller language sql as $$ select current_user::parley.caller $$",
		"create function m.take(c parley.caller) returns text language sql as $$ select c::text $$",
		"alter domain parley.caller drop constraint caller_is_current_user",
	} {
		if _, err := mallory.DB.Exec(t.Context(), statement); err == nil {
			t.Errorf("%s: allowed", statement)
		}
	}
	b.Exec("select parley.grant('CREATE QUEUE', 'database', null, $1)", role)
	mallory.Exec("select parley.create_queue('Honest', caller => parley.current_caller())")
	mallory.Exec("select parley.create_queue('Candid', caller => current_user)")
	if _, err := mallory.DB.Exec(t.Context(), "refresh materialized view parley._p_found_roles"); err == nil {
		t.Error("the roles are found again for anybody")
	}
}

// A session changes its role between two executions of a statement that it prepared once, and inside functions.
func TestTheCallerIsTheRoleOfEachExecution(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role, mallory := newMallory(b)
	superuser := sqltest.Value[string](b.Session, "select current_user::text")
	mallory.Exec(`create function m.asked() returns text language plpgsql security definer as
		$$begin return pg_get_userbyid(parley.caller_role()); end$$`)
	b.Exec("set plan_cache_mode = force_generic_plan")
	b.Exec("prepare asking as select pg_get_userbyid(parley.caller_role()) || ' ' || m.asked() || ' ' || pg_get_userbyid(parley.caller_role())")
	for range 3 {
		for _, caller := range []string{superuser, role} {
			b.Exec("select set_config('role', $1, false)", caller)
			if got, want := sqltest.Value[string](b.Session, "execute asking"), caller+" "+role+" "+caller; got != want {
				t.Fatalf("%q called, and not %q", got, want)
			}
		}
	}
	b.Exec("reset role")
}

// The caller of PUT is an argument, as that of SEND is.
func TestRightsToPutCannotBeHadByNamingAnotherCaller(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('jobs', kind => 'SIMPLE')")
	superuser := sqltest.Value[string](b.Session, "select current_user::text")
	_, mallory := newMallory(b)
	before := b.Everything()
	for _, caller := range []string{
		"'" + superuser + "'", "'" + superuser + "'::parley.caller", "null", "(select '" + superuser + "'::name)",
	} {
		for _, call := range []string{
			"put('jobs', 'stolen'::bytea, caller => %s)",
			"put('jobs', 'stolen'::bytea, deliver_at => now() + interval '1 hour', caller => %s)",
			"put('jobs', 'stolen'::bytea, deduplication_key => 'k', caller => %s)",
			"put('jobs', 'stolen'::bytea, priority => 11, caller => %s)",
			"put_batch_binary('jobs', array['stolen'::bytea], caller => %s)",
		} {
			statement := "select parley." + fmt.Sprintf(call, caller)
			_, err := mallory.DB.Exec(t.Context(), statement)
			if refusal, ok := errors.AsType[*pgconn.PgError](err); !ok || refusal.Code != "23514" && refusal.Code != "42501" {
				t.Errorf("%s: %v", statement, err)
			}
		}
	}
	if after := b.Everything(); after != before {
		t.Errorf("the broker was changed:\n%s", sqltest.Difference(before, after))
	}
}

// The caller of SEND is an argument: it is of a type that takes the name of the role that calls, and no other.
func TestRightsToSendCannotBeHadByNamingAnotherCaller(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	victim := b.Dialog()
	b.Send(victim, sqltest.Request, "first")
	superuser := sqltest.Value[string](b.Session, "select current_user::text")
	_, mallory := newMallory(b)
	before := b.Everything()
	for _, caller := range []string{
		"'" + superuser + "'", "'" + superuser + "'::parley.caller", "null", "(select '" + superuser + "'::name)",
	} {
		for _, call := range []string{
			"send('%s', '%s', 'stolen'::bytea, caller => %s)",
			"send_batch_binary('%s', '%s', array['stolen'::bytea], caller => %s)",
			"send_to_all(array['%s'::uuid], '%s', 'stolen'::bytea, caller => %s)",
		} {
			statement := "select parley." + fmt.Sprintf(call, victim, sqltest.Request, caller)
			if _, err := mallory.DB.Exec(t.Context(), statement); err == nil {
				t.Errorf("%s: allowed", statement)
			}
		}
	}
	if after := b.Everything(); after != before {
		t.Errorf("the broker was changed:\n%s", sqltest.Difference(before, after))
	}
}

// A replication worker runs with the role "replica" of triggers: SEND must not lose what it takes there.
func TestSendWorksWhereOrdinaryTriggersAreOff(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	s := b.Connection()
	s.Exec("set session_replication_role = replica")
	s.Send(handle, sqltest.Request, "first")
	s.Send(handle, sqltest.Request, "second")
	s.Exec("select parley.send_batch($1::uuid, $2, array['third'])", handle, sqltest.Request)
	s.Exec("reset session_replication_role")
	if got := b.Bodies("Answering"); len(got) != 3 {
		t.Errorf("received %q", got)
	}
}

// A function of the reader's that costs little is asked first, and would see what a view filters out, were the view no barrier.
func TestRightsOnViewsHoldAgainstCheapFunctions(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Send(b.Dialog(), sqltest.Request, "first")
	b.Exec("select parley.send(parley.begin_dialog('//test/Asker', '//nowhere', allow_unknown_target => true), 'DEFAULT', 'waits')")
	_, mallory := newMallory(b)
	mallory.Exec(`create function m.see(x anyelement) returns boolean language plpgsql cost 0.0000001 as
		$$begin insert into m.log (message) values (x::text); return true; end$$`)
	views := sqltest.Values[string](b.Session, `
		select c.oid::regclass::text
		from pg_class as c
		where c.relnamespace = 'parley'::regnamespace and c.relkind = 'v' and has_table_privilege('public', c.oid, 'select')`)
	for _, view := range views {
		shown := sqltest.Value[int](mallory, "select count(*) from "+view)
		mallory.Exec("delete from m.log")
		mallory.Exec("select from " + view + " as v where m.see(v::text)")
		if seen := sqltest.Value[int](mallory, "select count(*) from m.log"); seen != shown {
			t.Errorf("%s: a function of the reader's saw %d rows where the view shows %d", view, seen, shown)
		}
	}
}
