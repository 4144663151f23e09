package rights_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
)

// planter is a role that may only create schemas in the database, and has a function that makes it superuser wherever a superuser calls it.
type planter struct {
	name string
	pool *pgxpool.Pool // as superuser
	conn *pgx.Conn     // as the role
}

func newPlanter(t *testing.T, pool *pgxpool.Pool) planter {
	t.Helper()
	p := planter{name: "planter_" + strings.ToLower(rand.Text()), pool: pool}
	database := pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize()
	fixture.Execute(t, pool, "create role "+p.name+" login", "grant create on database "+database+" to "+p.name)
	t.Cleanup(func() { fixture.Execute(t, pool, "drop owned by "+p.name+" cascade", "drop role "+p.name) })
	config := pool.Config().ConnConfig.Copy()
	config.User = p.name
	var err error
	if p.conn, err = pgx.ConnectConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.conn.Close(context.Background()) })
	fixture.Execute(t, p.conn, "create schema planted", fmt.Sprintf(`
		create function planted.take() returns boolean language plpgsql as $$
		begin
			if (select rolsuper from pg_catalog.pg_roles where rolname = session_user) then
				execute 'reset role';
				execute 'alter role %s superuser';
			end if;
			return true;
		end $$`, p.name),
		"create function planted.fixed(integer) returns integer immutable language plpgsql as $$ begin perform planted.take(); return $1; end $$",
		"grant usage on schema planted to public")
	return p
}

// everyUse lists statements that read or call something of a schema parley that they find.
func everyUse(ctx context.Context, conn *pgx.Conn) map[string]func() error {
	return map[string]func() error{
		"install":   func() error { return schema.Install(ctx, conn) },
		"upgrade":   func() error { return schema.Upgrade(ctx, conn) },
		"repair":    func() error { return schema.Repair(ctx, conn) },
		"uninstall": func() error { return schema.Uninstall(ctx, conn, true) },
		"verify":    func() error { _, err := schema.Verify(ctx, conn); return err },
		"status":    func() error { _, err := schema.ReadStatus(ctx, conn); return err },
		"attach":    func() error { _, err := parley.Attach(ctx, conn); return err },
		"diagnose":  func() error { _, _, err := operate.DiagnoseConnection(ctx, conn); return err },
		"script":    func() error { _, err := conn.PgConn().Exec(ctx, schema.Script()).ReadAll(); return err },
	}
}

// requireRefused tries everything that uses a schema, as the database's superuser.
func (p planter) requireRefused(t *testing.T) {
	t.Helper()
	conn := fixture.Connect(t, p.pool)
	for name, use := range everyUse(t.Context(), conn) {
		err := use()
		if fixture.Value[bool](t, p.pool, "select rolsuper from pg_roles where rolname = $1", p.name) {
			t.Fatalf("%s made the planter a superuser", name)
		}
		refused, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || refused.Code != "42501" && refused.Code != "42809" || refused.Detail == "" || refused.Hint == "" {
			t.Errorf("%s: got %v, want a refusal with detail and hint", name, err)
		}
		if name != "script" && !errors.Is(err, parley.ErrUntrustedSchema) {
			t.Errorf("%s: got %v, want %v", name, err, parley.ErrUntrustedSchema)
		}
		if name == "script" {
			fixture.Execute(t, conn, "rollback")
		}
	}
}

// columns are those of the row that has the installed version.
const columns = "schema_version integer, oldest_client_version integer, release text, installed_at timestamptz default now(), upgraded_at timestamptz"

func TestASchemaThatSomebodyPlantedIsNeitherReadNorCalled(t *testing.T) {
	t.Parallel()
	row := fmt.Sprintf("select case when planted.take() then %d end as schema_version, 1 as oldest_client_version, 'x'::text as release, "+
		"now() as installed_at, now() as upgraded_at", parley.SchemaVersion-1)
	table := []string{
		"create table parley._p_installation (" + columns + ")",
		"insert into parley._p_installation (schema_version, oldest_client_version, release) values (0, 1, 'x')",
	}
	for name, plant := range map[string][]string{
		"view": {"create view parley._p_installation as " + row},
		"table with a rule": {
			"create table parley._p_installation (" + columns + ")",
			`create rule "_RETURN" as on select to parley._p_installation do instead ` + row,
		},
		"table with a trigger": append(table,
			"create function parley.fire() returns trigger language plpgsql as $$ begin perform planted.take(); return new; end $$",
			"create trigger fire before update on parley._p_installation for each row execute function parley.fire()"),
		"table with a policy": append(table,
			"create policy taking on parley._p_installation using (planted.take())",
			"alter table parley._p_installation enable row level security, force row level security"),
		"table with an index on a function": append(table, "create index on parley._p_installation ((planted.fixed(1)))"),
		"table with a child": append(table,
			"create table parley.child () inherits (parley._p_installation)"),
		"functions": append(table,
			`create function parley.attach_broker() returns table (service_broker_guid uuid, broker_state text, advice text, schema_version integer,
				oldest_client_version integer, release text) language plpgsql as $$
			begin
				perform planted.take();
				return query select gen_random_uuid(), 'ENABLED', '', 1, 1, 'x';
			end $$`),
		"nothing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlanter(t, parleytest.EmptyDatabase(t))
			fixture.Execute(t, p.conn, "create schema parley")
			fixture.Execute(t, p.conn, "grant usage on schema parley to public")
			if _, err := p.conn.Exec(t.Context(), strings.Join(plant, ";\n")); err != nil {
				if refused, ok := errors.AsType[*pgconn.PgError](err); ok && name == "table with a rule" && refused.Code == "42809" {
					t.Skip("from version 16 on, no rule makes a view of a table")
				}
				t.Fatal(err)
			}
			p.requireRefused(t)
		})
	}
}

// Expressions that the planner evaluates and the kinds of relations are refused even where the owner is to be trusted: it may have been
// careless.
func TestTheRowOfTheVersionIsReadFromAnOrdinaryTableOnly(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string][]string{
		"view":        {"create table public.copy as table parley._p_installation", "drop table parley._p_installation cascade", "create view parley._p_installation as table public.copy"},
		"policy":      {"create policy taking on parley._p_installation using (planted.take())"},
		"index":       {"create index on parley._p_installation ((planted.quiet(1)))"},
		"check":       {"alter table parley._p_installation add check (planted.quiet(1) = 1)"},
		"child":       {"create table planted.child () inherits (parley._p_installation)"},
		"trigger":     {"create trigger fire before update on parley._p_installation for each row execute function planted.fire()"},
		"column":      {"create domain planted.word as pg_catalog.text", "alter table parley._p_installation alter release type planted.word"},
		"fingerprint": {"create domain planted.word as pg_catalog.text", "alter table parley._p_installation alter fingerprint type planted.word"},
		"function":    {"create function parley.planted() returns integer language sql as 'select 1'", "alter function parley.planted() owner to %s"},
		"queue":       {"alter schema parley_queue owner to %s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlanter(t, parleytest.Database(t))
			fixture.Execute(t, p.conn, "create function planted.fire() returns trigger language plpgsql as $$ begin perform planted.take(); return new; end $$")
			fixture.Execute(t, p.conn, "create function planted.quiet(integer) returns integer immutable language plpgsql as $$ begin return $1; end $$")
			for _, statement := range plant {
				fixture.Execute(t, p.pool, strings.ReplaceAll(statement, "%s", p.name))
			}
			conn := fixture.Connect(t, p.pool)
			for _, use := range []string{"install", "upgrade", "repair", "status"} {
				if err := everyUse(t.Context(), conn)[use](); !errors.Is(err, parley.ErrUntrustedSchema) {
					t.Errorf("%s: got %v, want %v", use, err, parley.ErrUntrustedSchema)
				}
			}
			if fixture.Value[bool](t, p.pool, "select rolsuper from pg_roles where rolname = $1", p.name) {
				t.Error("the planter became a superuser")
			}
		})
	}
}

func TestInstallCallsNothingOfAHostileSearchPath(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"database", "role"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := newPlanter(t, parleytest.EmptyDatabase(t))
			fixture.Execute(t, p.conn,
				"create function planted.pg_has_role(oid, text) returns boolean language plpgsql as $$ begin return planted.take(); end $$",
				"create function planted.same(name, name) returns boolean language plpgsql as $$ begin return planted.take() and $1::text operator(pg_catalog.=) $2::text; end $$",
				"create operator planted.= (leftarg = name, rightarg = name, function = planted.same)",
				"create domain planted.text as pg_catalog.text check (planted.take())",
				"create function planted.greatest_of(real) returns bigint language plpgsql as $$ begin perform planted.take(); return 1; end $$",
				"create function planted.format(pg_catalog.text, oid) returns text language plpgsql as $$ begin perform planted.take(); return ''; end $$")
			database := pgx.Identifier{p.pool.Config().ConnConfig.Database}.Sanitize()
			user := p.pool.Config().ConnConfig.User
			fixture.Execute(t, p.pool, map[string]string{
				"database": "alter database " + database + " set search_path = planted, pg_catalog",
				"role":     "alter role " + pgx.Identifier{user}.Sanitize() + " in database " + database + " set search_path = planted, pg_catalog",
			}[how])
			conn := fixture.Connect(t, p.pool)
			for _, use := range []string{"status", "install", "install", "status", "upgrade", "repair", "verify", "attach", "uninstall", "script"} {
				if err := everyUse(t.Context(), conn)[use](); err != nil {
					t.Errorf("%s: %v", use, err)
				}
				if fixture.Value[bool](t, p.pool, "select rolsuper from pg_catalog.pg_roles where rolname operator(pg_catalog.=) $1::pg_catalog.name", p.name) {
					t.Fatalf("%s made the planter a superuser", use)
				}
			}
		})
	}
}

func TestASuperuserIsSentToTheOwnerOfASchemaOfSomebodyElse(t *testing.T) {
	t.Parallel()
	owner := fixture.OrdinaryOwner(t)
	if err := schema.Install(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	admin := owner.Config().Copy()
	admin.User = parleytest.EmptyDatabase(t).Config().ConnConfig.User
	// SET ROLE would not help: what the owner has planted can take it back.
	for _, role := range []string{"", owner.Config().User} {
		if role != "" {
			admin.RuntimeParams["options"] = "-c role=" + role
		}
		conn, err := pgx.ConnectConfig(t.Context(), admin)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		for name, use := range everyUse(t.Context(), conn) {
			err := use()
			refused, ok := errors.AsType[*pgconn.PgError](err)
			if !ok || refused.Code != "42501" || !strings.Contains(refused.Hint, owner.Config().User) {
				t.Errorf("%s, role %q: got %v, want a refusal whose hint names the owner", name, role, err)
			}
			if name == "script" {
				fixture.Execute(t, conn, "rollback")
			}
		}
	}
}

func TestAnOrdinaryRoleWorksWithTheSchemaOfAnother(t *testing.T) {
	t.Parallel()
	p := newPlanter(t, parleytest.EmptyDatabase(t))
	if err := schema.Install(t.Context(), p.conn); err != nil {
		t.Fatal(err)
	}
	user := "user_" + strings.ToLower(rand.Text())
	fixture.Execute(t, p.pool, "create role "+user+" login")
	t.Cleanup(func() { fixture.Execute(t, p.pool, "drop role "+user) })
	config := p.pool.Config().ConnConfig.Copy()
	config.User = user
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := parley.Attach(t.Context(), conn); err != nil {
		t.Errorf("attach: %v", err)
	}
	fixture.RequireIs(t, schema.Install(t.Context(), conn), parley.ErrUntrustedSchema)
}

func TestPrintedScriptRefusesAPlantedSchemaInPsql(t *testing.T) {
	t.Parallel()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("no psql")
	}
	p := newPlanter(t, parleytest.EmptyDatabase(t))
	fixture.Execute(t, p.conn, "create schema parley_queue")
	command := exec.CommandContext(t.Context(), psql, "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", p.pool.Config().ConnString())
	command.Stdin = strings.NewReader(schema.Script())
	output, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "which this connection must not trust") || !strings.Contains(string(output), "HINT") {
		t.Errorf("psql: %v: %s", err, output)
	}
}
