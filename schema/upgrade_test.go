package schema_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/internal/sqltext"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
	"github.com/parley-broker/parley/sql"
)

// nextVersion is a made-up version: it has one more table and view, and a function that answers something else.
func nextVersion() schema.Definition {
	return schema.CurrentDefinition().Next("next", map[string]string{
		"sql/zzz.sql": `
			create table parley._p_extra (extra_id integer primary key, note text not null);
			create view parley.extras as select e.extra_id, e.note from parley._p_extra as e;
			comment on view parley.extras is 'Extras.';
			create function parley.extra() returns text language sql stable set search_path = pg_catalog, pg_temp
			as $$ select e.note from parley._p_extra as e $$;
			comment on function parley.extra() is 'Gives the extra.';
			revoke all on function parley.extra() from public;`,
	}, `
		create table parley._p_extra (extra_id integer primary key, note text not null);
		insert into parley._p_extra (extra_id, note) values (1, 'migrated');`)
}

func TestUpgradeMigratesDataAndReplacesTheRest(t *testing.T) {
	t.Parallel()
	conn := fixture.OrdinaryOwner(t)
	if err := schema.Install(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	next := nextVersion()
	if err := next.Upgrade(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	requireNoDifferences(t, conn, next.Verify)
	if note := fixture.Value[string](t, conn, "select parley.extra()"); note != "migrated" {
		t.Errorf("the extra is %q", note)
	}
	if release := fixture.Value[string](t, conn, "select release from parley._p_installation where upgraded_at is not null"); release != "next" {
		t.Errorf("release %q is recorded", release)
	}
}

func TestUpgradeFromManyConnectionsAtOnceUpgradesOnce(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	next := nextVersion()
	var upgrading sync.WaitGroup
	for range 8 {
		conn := fixture.Connect(t, pool)
		// The last one waits for seven others.
		fixture.Execute(t, conn, "set lock_timeout = '5min'")
		upgrading.Go(func() {
			if err := next.Upgrade(t.Context(), conn); err != nil {
				t.Error(err)
			}
		})
	}
	upgrading.Wait()
	if n := fixture.Value[int](t, pool, "select count(*) from parley.extras"); n != 1 {
		t.Errorf("the migration ran %d times", n)
	}
}

func TestUpgradeThatFailsLeavesTheOldVersion(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	broken := schema.CurrentDefinition().Next("broken", nil, "drop table parley._p_installation cascade; select nothing")
	if err := broken.Upgrade(t.Context(), conn); err == nil {
		t.Fatal("the migration did not fail")
	}
	requireNoDifferences(t, conn, schema.Verify)
}

func TestUpgradeOfTheSameVersionTouchesNothing(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	const query = "select max(p.xmin::text::bigint)::text from pg_proc as p where p.pronamespace = 'parley'::regnamespace"
	before := fixture.Value[string](t, conn, query)
	if err := schema.Upgrade(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if after := fixture.Value[string](t, conn, query); after != before {
		t.Error("functions were replaced")
	}
}

func TestUpgradeNeedsAnOlderInstallation(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.EmptyDatabase(t))
	fixture.RequireIs(t, schema.Upgrade(t.Context(), conn), parley.ErrNotInstalled)
	if err := nextVersion().Install(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	fixture.RequireIs(t, schema.Upgrade(t.Context(), conn), parley.ErrReleaseTooOld)
}

// A schema of the same version may be that of another build as long as the version is not released.
func TestASchemaOfAnotherBuildIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"another build":             "update parley._p_installation set fingerprint = 'x'",
		"one without a fingerprint": "alter table parley._p_installation drop column fingerprint",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := fixture.Connect(t, parleytest.Database(t))
			if err := schema.Repair(t.Context(), conn); err != nil {
				t.Fatalf("of the same build: %v", err)
			}
			same, err := parley.Attach(t.Context(), conn)
			if err := errors.Join(err, schema.RequireBuild(same)); err != nil {
				t.Fatalf("of the same build: %v", err)
			}
			fixture.Execute(t, conn, change)
			fixture.RequireIs(t, schema.Install(t.Context(), conn), schema.ErrOtherBuild)
			fixture.RequireIs(t, schema.Upgrade(t.Context(), conn), schema.ErrOtherBuild)
			fixture.RequireIs(t, schema.Repair(t.Context(), conn), schema.ErrOtherBuild)
			_, err = schema.Verify(t.Context(), conn)
			fixture.RequireIs(t, err, schema.ErrOtherBuild)
			if broker, err := parley.Attach(t.Context(), conn); err != nil {
				fixture.RequireIs(t, err, parley.ErrUpgradeNeeded)
			} else {
				fixture.RequireIs(t, schema.RequireBuild(broker), schema.ErrOtherBuild)
			}
			if err := schema.Uninstall(t.Context(), conn, true); err != nil {
				t.Fatal(err)
			}
			if err := schema.Install(t.Context(), conn); err != nil {
				t.Fatal(err)
			}
			requireNoDifferences(t, conn, schema.Verify)
		})
	}
}

func TestUpgradeByAMemberBelongsToTheOwner(t *testing.T) {
	t.Parallel()
	owner := fixture.OrdinaryOwner(t)
	if err := schema.Install(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	admin := parleytest.EmptyDatabase(t)
	member := "member_" + strings.ToLower(rand.Text())
	fixture.Execute(t, admin, "create role "+member+" login in role "+owner.Config().User)
	t.Cleanup(func() { fixture.Execute(t, admin, "drop role "+member) })
	config := owner.Config().Copy()
	config.User = member
	config.RuntimeParams["options"] = "-c role=" + owner.Config().User
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if err := nextVersion().Upgrade(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	const query = "select c.relowner::regrole::text from pg_class as c where c.oid = 'parley._p_extra'::regclass"
	if got := fixture.Value[string](t, conn, query); got != owner.Config().User {
		t.Errorf("the new table belongs to %s, want %s", got, owner.Config().User)
	}
}

func TestUpgradeByASuperuserBelongsToTheSuperuserWhoInstalled(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	other := "super_" + strings.ToLower(rand.Text())
	fixture.Execute(t, pool, "create role "+other+" login superuser")
	t.Cleanup(func() { fixture.Execute(t, pool, "drop role "+other) })
	config := pool.Config().ConnConfig.Copy()
	config.User = other
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if err := nextVersion().Upgrade(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	const query = "select c.relowner::regrole::text from pg_class as c where c.oid = 'parley._p_extra'::regclass"
	if got, want := fixture.Value[string](t, conn, query), pool.Config().ConnConfig.User; got != want {
		t.Errorf("the new table belongs to %s, want %s", got, want)
	}
	if role := fixture.Value[string](t, conn, "select current_user::text"); role != other {
		t.Errorf("the connection stayed %s", role)
	}
}

func TestRepairUndoesWhatWasChangedByHand(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	fixture.Execute(t, conn,
		"drop function parley.sqlstate_of(integer) cascade",
		"comment on schema parley is 'x'",
		"alter function parley.listen_for_messages(text, integer, parley.caller) security invoker")
	if err := schema.Repair(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	requireNoDifferences(t, conn, schema.Verify)
}

// stateful are the statements of sql/ that an upgrade must not repeat: what they do to an older version is the work of
// a migration.
var stateful = regexp.MustCompile(`^(create (schema|(unlogged )?table|materialized view|sequence|type|domain|(unique )?index)|alter table|insert|select)\b`)

func TestEveryStatementOfTheSchemaIsEitherRepeatedByAnUpgradeOrLeftToMigrations(t *testing.T) {
	t.Parallel()
	files, err := sql.Manifest(sql.Files)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range files {
		text, err := fs.ReadFile(sql.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		statements, err := sqltext.Split(string(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, statement := range statements {
			if schema.Repeatable(statement.Text) == stateful.MatchString(strings.ToLower(statement.Text)) {
				head, _, _ := strings.Cut(statement.Text, "\n")
				t.Errorf("sql/%s:%d: say in definition.go or here whether an upgrade repeats %q", name, statement.Line, head)
			}
		}
	}
}

func TestUninstallRemovesEverything(t *testing.T) {
	t.Parallel()
	conn := fixture.OrdinaryOwner(t)
	const query = `
		select count(*)
		from pg_depend as d
		join pg_namespace as n on d.refclassid = 'pg_namespace'::regclass and d.refobjid = n.oid
		where n.nspname not like 'pg\_%' and n.nspname <> 'information_schema'`
	before := fixture.Value[int](t, conn, query)
	if err := schema.Install(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if err := schema.Uninstall(t.Context(), conn, false); err != nil {
		t.Fatal(err)
	}
	if after := fixture.Value[int](t, conn, query); after != before {
		t.Errorf("%d objects were left behind", after-before)
	}
	if err := schema.Uninstall(t.Context(), conn, false); err != nil {
		t.Errorf("with nothing to remove: %v", err)
	}
}

func TestUninstallSparesConversationsUnlessForced(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	conn := fixture.Connect(t, pool)
	fixture.CreateServices(t, pool)
	if _, err := parley.BeginDialog(t.Context(), pool, "initiator", "target"); err != nil {
		t.Fatal(err)
	}
	requireUninstallOnlyByForce(t, conn, "conversations")
}

func TestUninstallSparesObjectsOfUsersUnlessForced(t *testing.T) {
	t.Parallel()
	conn := fixture.Connect(t, parleytest.Database(t))
	fixture.Execute(t, conn,
		"create view public.v as select i.release from parley._p_installation as i",
		"create table public.d (code text default parley.sqlstate_of(8426))",
		"create table public.f (ok boolean references parley._p_installation)",
		"create function public.p(parley._p_installation) returns integer language sql as 'select 1'",
		"create table public.c (i parley._p_installation)")
	requireUninstallOnlyByForce(t, conn, "public.v", "public.d", "public.f", "public.p(", "public.c")
}

func requireUninstallOnlyByForce(t *testing.T, conn *pgx.Conn, named ...string) {
	t.Helper()
	err := schema.Uninstall(t.Context(), conn, false)
	for _, name := range named {
		if !errors.Is(err, schema.ErrInUse) || !strings.Contains(err.Error(), name) {
			t.Errorf("got error %v, want one that names %s", err, name)
		}
	}
	if err := schema.Uninstall(t.Context(), conn, true); err != nil {
		t.Errorf("forced: %v", err)
	}
	if fixture.Value[bool](t, conn, "select to_regnamespace('parley') is not null") {
		t.Error("the schema is still there")
	}
}
