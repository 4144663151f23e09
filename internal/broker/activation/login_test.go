package activation_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/parleytest"
)

// resetting is a reader that takes what is behind its role, by each of the statements that give a role back.
const resetting = `
	declare
		m record;
	begin
		select * into m from parley.receive('target', top => 1);
		insert into app.taken (how, login, role) values ('none', session_user, current_user);
		commit;
		reset role;
		insert into app.taken (how, login, role) values ('reset role', session_user, current_user);
		commit;
		set role none;
		insert into app.taken (how, login, role) values ('set role none', session_user, current_user);
		commit;
		begin
			reset session authorization;
			set session authorization default;
			insert into app.taken (how, login, role) values ('reset session authorization', session_user, current_user);
			set session authorization postgres;
			insert into app.taken (how, login, role) values ('set session authorization', session_user, current_user);
		exception
			when insufficient_privilege then
				insert into app.taken (how, login, role) values ('refused', session_user, current_user);
		end;
		commit;
		begin
			perform parley._p_external_definition(null);
			insert into app.taken (how, login, role) values ('private function', session_user, current_user);
		exception
			when insufficient_privilege then null;
		end;
	end`

// reader lets the queue be read by resetting, as a role of its own.
func (b *fixture) resetting() (role string) {
	b.t.Helper()
	b.exec(`create table app.taken (how text, login text, role text)`)
	role = b.role()
	b.exec("grant insert on app.taken to public; grant usage on schema app to public")
	b.procedure(resetting)
	b.activate(1)
	b.exec("select parley.alter_queue('target', execute_as => '" + role + "')")
	return role
}

// login makes a role that may log in, and do nothing but act as another one.
func (b *fixture) login(memberOf string) string {
	b.t.Helper()
	login := value[string](b, "select current_database() || '_login'")
	b.exec("create role " + login + " login noinherit in role " + memberOf)
	b.t.Cleanup(func() {
		if _, err := b.pool.Exec(context.Background(), "drop owned by "+login+"; drop role "+login, pgx.QueryExecModeSimpleProtocol); err != nil {
			b.t.Error(err)
		}
	})
	return login
}

func (b *fixture) loginAs(user func(role string) string) func(role string) (*pgx.ConnConfig, error) {
	return func(role string) (*pgx.ConnConfig, error) {
		config, err := pgx.ParseConfig(parleytest.DSN(b.t, b.pool))
		if err != nil {
			return nil, err
		}
		config.User = user(role)
		return config, nil
	}
}

func (b *fixture) requireTaken(nothing string, allowed ...string) {
	b.t.Helper()
	b.await("select exists (select from app.taken where how in ('refused', 'set session authorization'))")
	if value[bool](b, "select exists (select from app.taken where role <> all ($1) or login <> all ($1))", allowed) {
		b.t.Errorf("a procedure had the role %s", value[string](b, "select string_agg(format('%s by %s', role, how), ', ') from app.taken"))
	}
	if value[bool](b, "select exists (select from app.taken where how in ('private function', 'set session authorization'))") {
		b.t.Errorf("a procedure had more than %s may", nothing)
	}
	if !value[bool](b, "select exists (select from app.taken where how = 'none' and role = $1)", allowed[0]) {
		b.t.Errorf("the procedure did not run as %s", allowed[0])
	}
}

func TestAProcedureThatResetsItsRoleHasTheLoginOfProceduresOnly(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	role := b.resetting()
	login := b.login(role)
	b.start(activation.Config{ProcedureConfig: b.loginAs(func(string) string { return login })})
	b.send(1, 1)
	b.requireTaken("the login of procedures", role, login)
}

func TestAProcedureThatLogsInAsItsRoleHasNothingToResetTo(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	role := b.resetting()
	b.exec("alter role " + role + " login")
	b.start(activation.Config{ProcedureConfig: b.loginAs(func(role string) string { return role })})
	b.send(1, 1)
	b.requireTaken("its role", role)
}

func TestProceduresOfTwoRolesShareNoLogin(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	first := b.role()
	second := b.login(first)
	b.exec("alter role " + first + " login; alter role " + second + " inherit")
	b.activate(1)
	b.exec("select parley.alter_queue('target', execute_as => '" + first + "')")
	b.start(activation.Config{ProcedureConfig: b.loginAs(func(role string) string { return role })})
	b.send(1, 1)
	b.awaitDone(1)
	b.exec("select parley.alter_queue('target', execute_as => '" + second + "')")
	b.send(2, 2)
	b.awaitDone(2)
	if roles := value[string](b, "select string_agg(role, ' ' order by number) from app.done"); roles != first+" "+second {
		t.Errorf("the readers were %s", roles)
	}
}

func TestProceduresOfAnotherBrokerAreNotRun(t *testing.T) {
	t.Parallel()
	b, other := newFixture(t), newFixture(t)
	b.activate(1)
	b.start(activation.Config{ProcedureConfig: other.loginAs(func(string) string { return "postgres" })})
	b.send(1, 1)
	b.log.Await(t, "the login of procedures leads to broker")
}

func TestNoReaderIsStartedForWhoMayNoLongerActAsTheRole(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	role := b.role()
	setter := b.login(role)
	b.activate(1)
	b.exec("grant create on schema app to " + setter)
	b.exec("select parley.alter_queue('target', execute_as => '" + role + "'); select parley.grant('ALTER', 'queue', 'target', '" + setter + "')")
	b.exec("set role " + setter + "; select parley.alter_queue('target', activation_procedure => 'app.reader', execute_as => '" + role + "'); reset role")
	b.start(activation.Config{})
	b.send(1, 1)
	b.awaitDone(1)
	// A reader that runs goes on as long as it finds something. This one has left.
	b.await(`select not exists (select from pg_stat_activity where datname = current_database() and query ilike '%app.reader%'
		and state <> 'idle' and pid <> pg_backend_pid())`)
	// The daemon is not notified; it asks before each call.
	b.exec("revoke " + role + " from " + setter)
	b.send(2, 2)
	b.await("select ("+failing+") or (select count(*) > 1 from app.done)", "%"+setter+"%may not act as role%", "42501")
	if done := value[int](b, "select count(*) from app.done"); done != 1 {
		t.Errorf("%d messages were received", done)
	}
	b.exec("grant " + role + " to " + setter)
	b.awaitDone(2)
}
