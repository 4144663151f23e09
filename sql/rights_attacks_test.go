package sql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Each attack here gave its maker the rights of another role once. The caller of a function of Parley is current_user where the call
// stands, and PostgreSQL makes that the owner of a table while it runs functions of the table's owner for another role.

// mallory may create tables in a schema of the role's own, and nothing else.
func (b *broker) mallory() (role string, s session) {
	b.Helper()
	role = b.role("mallory")
	b.exec("create schema m authorization " + quote(role))
	b.afterwards("drop schema m cascade")
	s = b.as(role)
	s.exec("create table m.log (role name, state text, message text)")
	s.exec("create table m.t (a int)")
	s.exec("insert into m.t select generate_series(1, 10)")
	return role, s
}

// plant makes a function that runs a statement wherever another role evaluates the index expression of m.t.
func (s session) plant(statement string) {
	s.Helper()
	s.exec("create function m.f(a int) returns int immutable language plpgsql as $$begin return a; end$$")
	s.exec("create index on m.t (m.f(a))")
	s.exec(`
		create function m.attack() returns void language plpgsql as $f$
		begin
			` + statement + `
			insert into m.log (role, state) values (current_user, 'done');
		exception when others then
			insert into m.log (role, state, message) values (current_user, sqlstate, sqlerrm);
		end$f$`)
	s.exec(`
		create or replace function m.f(a int) returns int immutable language plpgsql as $f$
		begin
			if session_user <> current_user and a = 1 then
				perform m.attack();
			end if;
			return a;
		end$f$`)
}

// maintenance is what runs functions of a table's owner in the session of another role.
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
		{"send with a trace", "perform parley.send_traced((select h from public.victim), '//test/Request', 'x'::bytea, null);"},
	}
	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.exec("create procedure public.read() language sql as ''")
			victim := b.dialog()
			b.send(victim, request, "first")
			b.send(victim, request, "second")
			b.exec("create table public.victim as select '" + victim + "'::uuid as h")
			b.exec("grant select on public.victim to public")
			_, mallory := b.mallory()
			mallory.plant(attack.statement)
			before := b.everything()
			for _, m := range maintenance {
				b.exec(m.statement)
			}
			if after := b.everything(); after != before {
				t.Errorf("the broker was changed:\n%s", difference(before, after))
			}
			done := values[string](b.session, "select coalesce(state || ' ' || message, state) from m.log")
			if len(done) == 0 {
				t.Error("the function of the table's owner was never called")
			}
			for _, line := range done {
				if !strings.HasPrefix(line, sqlState(229)) && !strings.HasPrefix(line, sqlState(15151)) {
					t.Errorf("got %q, want a refusal", line)
				}
			}
		})
	}
}

// What REFRESH MATERIALIZED VIEW runs it runs as the owner of the view.
func TestRightsOfWhoeverRefreshesAViewAreNotItsOwners(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.send(b.dialog(), request, "secret")
	_, mallory := b.mallory()
	mallory.exec("create materialized view m.v as select r.message_body from parley.receive('Answering') as r with no data")
	before := b.everything()
	_, err := b.db.Exec(t.Context(), "refresh materialized view m.v")
	requireRefused(t, err, 229)
	if after := b.everything(); after != before {
		t.Errorf("the broker was changed:\n%s", difference(before, after))
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
			b := newWorld(t)
			role := b.role("login")
			worker := value[string](b.session, "select 'worker ' || current_database()")
			b.exec("create role " + quote(worker))
			b.exec("grant " + quote(worker) + " to " + quote(role))
			b.exec("select parley.grant('CONTROL', 'queue', 'Answering', $1)", worker)
			s := b.as(role)
			s.exec("set role " + quote(worker))
			s.exec("select parley.receive('Answering')")
			change := strings.ReplaceAll(c.change, "%", quote(worker))
			if c.name == "renamed" {
				renamed := quote("renamed " + worker)
				change += renamed
				b.afterwards("drop role " + renamed)
			} else {
				b.exec("select parley.revoke('CONTROL', 'queue', 'Answering', $1)", worker)
			}
			b.exec(change)
			before := b.everything()
			for _, statement := range []string{
				"select parley.create_queue('Mine')",
				"select parley.grant('CONTROL', 'queue', 'Asking', 'PUBLIC')",
				"select parley.trust_peer(repeat('c3', 32), 'me')",
				"select parley.disable_broker()",
			} {
				if _, err := s.db.Exec(t.Context(), statement); err == nil {
					t.Errorf("%s: allowed", statement)
				}
			}
			if after := b.everything(); after != before {
				t.Errorf("the broker was changed:\n%s", difference(before, after))
			}
		})
	}
}

// A function that is SECURITY DEFINER sends and receives with the rights of its owner, as in the rest of PostgreSQL, and nobody else's.
func TestRightsInADefinerFunctionAreItsOwners(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	app, user := b.role("app"), b.role("user")
	for _, queue := range []string{"Asking", "Answering"} {
		b.exec("select parley.grant('RECEIVE', 'queue', $1, $2)", queue, app)
	}
	for _, contract := range []string{"//test/Work", "DEFAULT"} {
		b.exec("select parley.grant('REFERENCES', 'contract', $1, $2)", contract, app)
	}
	b.exec("create schema app authorization " + quote(app))
	b.afterwards("drop schema app cascade")
	owner := b.as(app)
	owner.exec("grant usage on schema app to public")
	owner.exec(`create function app.ask(body text) returns uuid language plpgsql security definer as $$
		declare h uuid := parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work');
		begin
			perform parley.send(h, '//test/Request', body);
			perform parley.send(h, '//test/Request', body);
			return h;
		end$$`)
	owner.exec(`create function app.answer() returns bigint language sql security definer as
		$$select count(*) from parley.receive('Answering')$$`)
	caller := b.as(user)
	handle := value[string](caller, "select app.ask('hello')")
	if got := value[int](caller, "select app.answer()"); got != 2 {
		t.Errorf("the owner of the function received %d messages, want 2", got)
	}
	// Neither what the function did nor what it saw is left to its caller.
	caller.refuses(229, "select parley.send($1::uuid, '//test/Request', 'mine')", handle)
	caller.refuses(229, "select parley.receive('Answering')")
	caller.refuses(229, "select parley.get_transmission_status($1::uuid)", handle)

	// The other way round: a role without rights has none while a superuser calls.
	_, mallory := b.mallory()
	mallory.exec(`create function m.steal() returns void language plpgsql security definer as
		$$begin perform parley.grant('CONTROL', 'queue', 'Answering', 'PUBLIC'); end$$`)
	_, err := b.db.Exec(t.Context(), "select m.steal()")
	requireRefused(t, err, 15151)
}

// The ticket that proves a caller cannot be made up, nor kept.
func TestRightsCannotBeHadByAForgedTicket(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	role, mallory := b.mallory()
	superuser := value[string](b.session, "select current_user::text")
	stolen := value[[]byte](b.session, "select parley.current_caller()")
	forged := "set_byte('\\x00'::bytea || sha256('x') || convert_to('" + superuser + "', 'UTF8'), 0, 1)"
	for name, ticket := range map[string]string{
		"null":                     "null",
		"empty":                    "''",
		"made up":                  forged,
		"the name alone":           "convert_to('" + superuser + "', 'UTF8')",
		"its own with a new name":  "substr(parley.current_caller(), 1, 32) || convert_to('" + superuser + "', 'UTF8')",
		"that of another session":  "'\\x" + hexOf(stolen) + "'::bytea",
		"its own with more behind": "parley.current_caller() || '\\x00'::bytea",
	} {
		_, err := mallory.db.Exec(t.Context(), "select parley.create_queue('Planted', caller => "+ticket+")")
		var refusal *pgconn.PgError
		if !errors.As(err, &refusal) || refusal.Code != "42501" && refusal.Code != "22021" {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	// A ticket of an earlier transaction is worth nothing, though it was the caller's own.
	b.exec("select parley.grant('CREATE QUEUE', 'database', null, $1)", role)
	own := value[[]byte](mallory, "select parley.current_caller()")
	_, err := mallory.db.Exec(t.Context(), "select parley.create_queue('Planted', caller => $1)", own)
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.Code != "42501" {
		t.Errorf("an old ticket: got %v, want a refusal", err)
	}
	mallory.exec("select parley.create_queue('Honest', caller => parley.current_caller())")
	// What seals the tickets is hidden from every role, and so is the column that has the sender.
	for _, statement := range []string{
		"select secret from parley._p_caller_secret",
		"refresh materialized view parley._p_caller_secret",
		"insert into parley._p_outgoing (conversation_handle, message_type, body, caller) values (gen_random_uuid(), 'DEFAULT', null, '" + superuser + "')",
		"insert into parley._p_outgoing_batch (conversation_handle, message_type, caller) values (gen_random_uuid(), 'DEFAULT', '" + superuser + "')",
		"insert into parley._p_outgoing_to_many (message_type, caller) values ('DEFAULT', '" + superuser + "')",
		"select parley._p_send_outgoing()",
		"create trigger t before insert on m.t for each row execute function parley._p_send_outgoing()",
		"alter table parley._p_outgoing disable trigger _p_send",
	} {
		if _, err := mallory.db.Exec(t.Context(), statement); err == nil {
			t.Errorf("%s: allowed", statement)
		}
	}
}

// PostgreSQL asks for no right to a column that the default of a view fills.
func TestRightsCannotBeHadThroughAViewOverWhatSendInserts(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	victim := b.dialog()
	b.send(victim, request, "first")
	b.send(victim, request, "second")
	superuser := value[string](b.session, "select current_user::text")
	_, mallory := b.mallory()
	before := b.everything()
	for table, columns := range map[string]struct{ names, values string }{
		"_p_outgoing":         {"conversation_handle, message_type, body", "'" + victim + "', '" + request + "', 'stolen'"},
		"_p_outgoing_batch":   {"conversation_handle, message_type, bodies", "'" + victim + "', '" + request + "', array['stolen'::bytea]"},
		"_p_outgoing_to_many": {"conversation_handles, message_type, body", "array['" + victim + "'::uuid], '" + request + "', 'stolen'"},
	} {
		mallory.exec("create view m." + table + " as select * from parley." + table)
		for _, caller := range []string{"'" + superuser + "'", "null"} {
			mallory.exec("alter view m." + table + " alter column caller set default " + caller)
			_, err := mallory.db.Exec(t.Context(), "insert into m."+table+" ("+columns.names+") values ("+columns.values+")")
			if err == nil {
				t.Errorf("%s: a view whose default for the caller is %s: allowed", table, caller)
			}
		}
	}
	if after := b.everything(); after != before {
		t.Errorf("the broker was changed:\n%s", difference(before, after))
	}
}

// A replication worker runs with the role "replica" of triggers: SEND must not lose what it takes there.
func TestSendWorksWhereOrdinaryTriggersAreOff(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	s := b.connection()
	s.exec("set session_replication_role = replica")
	s.send(handle, request, "first")
	s.send(handle, request, "second")
	s.exec("select parley.send_batch($1::uuid, $2, array['third'])", handle, request)
	s.exec("reset session_replication_role")
	if got := b.bodies("Answering"); len(got) != 3 {
		t.Errorf("received %q", got)
	}
}

// A function of the reader's that costs little is asked first, and would see what a view filters out, were the view no barrier.
func TestRightsOnViewsHoldAgainstCheapFunctions(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.send(b.dialog(), request, "first")
	b.exec("select parley.send(parley.begin_dialog('//test/Asker', '//nowhere', allow_unknown_target => true), 'DEFAULT', 'waits')")
	_, mallory := b.mallory()
	mallory.exec(`create function m.see(x anyelement) returns boolean language plpgsql cost 0.0000001 as
		$$begin insert into m.log (message) values (x::text); return true; end$$`)
	views := values[string](b.session, `
		select c.oid::regclass::text
		from pg_class as c
		where c.relnamespace = 'parley'::regnamespace and c.relkind = 'v' and has_table_privilege('public', c.oid, 'select')`)
	for _, view := range views {
		shown := value[int](mallory, "select count(*) from "+view)
		mallory.exec("delete from m.log")
		mallory.exec("select from " + view + " as v where m.see(v::text)")
		if seen := value[int](mallory, "select count(*) from m.log"); seen != shown {
			t.Errorf("%s: a function of the reader's saw %d rows where the view shows %d", view, seen, shown)
		}
	}
}
