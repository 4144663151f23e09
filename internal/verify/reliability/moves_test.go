//go:build unix

package reliability_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/internal/postgres/postgrestest"
	"github.com/parley-broker/parley/parleytest"
)

// newerPrograms names a folder of the programs of a newer version, with pg_upgrade, to which the cluster is upgraded; without it, the version stays.
const newerPrograms = "PARLEY_TEST_UPGRADE_TO"

// A database moves to another server with messages under way, by each way that there is: what was received is not received again, all else is,
// in its order, and everything goes on.
func TestMovedDatabaseGoesOnWithMessagesUnderWay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes servers of its own")
	}
	ways := map[string]func(*testing.T, *ownServer, string) string{"dump": dumped}
	if os.Getenv("PARLEY_TEST_LONG") != "" { // each makes two servers
		ways["pg_upgrade"], ways["logical replication"] = upgraded, replicated
	}
	for name, move := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := newOwnServer(t, map[string]string{"wal_level": "logical"})
			l := newLedger(t, from.fixture(t))
			busy := l.leaveBusy(t)
			moved := &fixture{dsn: move(t, from, l.dsn)}
			moved.admin = moved.session(t)
			broker, err := parley.Attach(t.Context(), moved.admin.conn)
			if err != nil {
				t.Fatal(err)
			}
			if broker.State != parley.BrokerElsewhere {
				t.Errorf("the broker that has moved is %s", broker.State)
			}
			moved.admin.exec("select parley.enable_broker()")
			there := &ledger{fixture: moved, birth: l.birth, committed: l.committed, holders: map[string]holder{}, conflicts: map[*session]string{}}
			there.goOn(t, busy)
			const grants = "select coalesce(string_agg(p.grantee::regrole::text, ' '), '') from parley._p_permission as p where p.permission = 'SEND' and p.object_id >= 65536"
			if got := ask[string](moved.admin, grants); got != "own_moves" {
				t.Errorf("the right to send is that of %q", got)
			}
			for _, check := range []string{
				"select concat_ws(' ', f.code, f.object_name, f.cause) from parley.diagnose_configuration() as f",
				"select concat_ws(' ', f.error_number, f.object_name, f.finding) from parley.check_broker() as f where f.level = 'ERROR'",
			} {
				if found := collect(t, moved.admin, check, pgx.RowTo[string]); len(found) != 0 {
					t.Errorf("found after the move: %q", found)
				}
			}
		})
	}
}

// leaveBusy leaves dialogs, of which some messages were received and others wait, messages of a simple queue, delayed ones, mail, and a validation
// function, and gives the handles of the dialogs.
func (l *ledger) leaveBusy(t *testing.T) []string {
	t.Helper()
	s := l.admin
	var handles []string
	for i := range 8 {
		handles = append(handles, s.dialog())
		for range 40 + i {
			l.sendOne(t, s, handles[i])
		}
	}
	for range 12 {
		l.mustReceive(t, s, "target_queue", 15)
	}
	s.exec("select parley.end_conversation($1::uuid, 1, 'over')", s.dialog())
	for _, statement := range []string{
		`select parley_mail.apply('{"organization": {"organization": {"default_domain": "example.org"}}, "accepted domain": {"example.org": {}},
			"mailbox store": {"local": {"address": "unix:/run/lmtp"}}, "mailbox": {"ann@example.org": {"store": "local"}}}')`,
		"select parley_mail.send('shop', array['ann@example.org'], 'Order ' || n, repeat('x', 20000)) from generate_series(1, 20) as g (n)",
		"select parley_mail._p_categorize()",
		"select parley.create_queue('jobs', kind => 'SIMPLE')",
		"select parley.put('jobs', n::text) from generate_series(1, 50) as g (n)",
		"select parley.put('jobs', 'later', deliver_at => now() + interval '1 hour')",
		"select from parley.take('jobs', 30)",
		"create function public.is_good(body bytea) returns boolean language sql immutable as 'select octet_length(body) > 1'",
		"select parley.create_message_type('good', 'FUNCTION', 'public.is_good(bytea)')",
		"create role own_moves",
		"create role own_other",
		"select parley.grant('SEND', 'service', 'target', 'own_moves')",
		"select parley_mail.grant_right('SEND', 'own_moves')",
	} {
		s.exec(statement)
	}
	return handles
}

func (l *ledger) sendOne(t *testing.T, s *session, handle string) {
	t.Helper()
	message, err := l.send(s, handle, handle)
	if err != nil {
		t.Fatal(err)
	}
	l.recordCommitted([]sending{message})
}

func (l *ledger) mustReceive(t *testing.T, s *session, queue string, top int) {
	t.Helper()
	s.begin()
	if _, err := l.receive(s, queue, top); err != nil {
		t.Fatal(err)
	}
	l.letGo(s, false)
	s.commit()
}

// goOn sends more in the dialogs that were there and in new ones, receives everything, ends it and requires that every promise was kept.
func (l *ledger) goOn(t *testing.T, handles []string) {
	t.Helper()
	s := l.admin
	handles = append(handles, s.dialog(), s.dialog())
	for _, handle := range handles {
		for range 10 {
			l.sendOne(t, s, handle)
		}
	}
	l.drain(t, s)
	l.endAll(t, s)
	l.drain(t, s)
	l.verdict(t)
	s.exec("select parley.put('jobs', 'new')")
	if got := ask[string](s, "select string_agg(convert_from(m.body, 'UTF8'), ' ' order by m.message_id) from parley.take('jobs', 100) as m"); !strings.HasPrefix(got, "31 32 ") || !strings.HasSuffix(got, " 50 new") {
		t.Errorf("the simple queue gave %q", got)
	}
	s.exec("select parley_mail.send('shop', array['ann@example.org'], 'Order 21', 'y')")
	s.exec("select parley_mail._p_categorize()")
	const claimed = "select count(distinct i.subject)::int from parley_store._p_lane as n cross join lateral parley_store.claim_lane(n.system, n.lane, 100) as i"
	if n := ask[int](s, claimed); n != 21 {
		t.Errorf("%d messages of mail can be claimed, want 21", n)
	}
	s.exec("select parley_store.track('mail', array['SEND'], array['1'], times => array[now() + interval '9 days'])")
	s.exec("select parley.alter_message_type('good', 'FUNCTION', 'public.is_good(bytea)')")
	for _, statement := range []string{"select parley.create_queue('fresh')", "select parley.create_service('fresh', 'fresh', '{DEFAULT}')"} {
		s.exec(statement)
	}
}

// program runs a program of PostgreSQL as the user of a server, and requires that it succeeds.
func (o *ownServer) program(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	return requireRun(t, o.Command(filepath.Join(installedPrograms(t), name), arguments...))
}

func requireRun(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command.Args, " "), err, out, &complaints)
	}
	return string(out)
}

// installedPrograms is the folder of the programs of the version under test, with pg_dump and pg_upgrade, which are not fetched.
func installedPrograms(t *testing.T) string {
	t.Helper()
	version := os.Getenv("PARLEY_TEST_POSTGRES")
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	for _, folder := range folders {
		out, err := exec.CommandContext(t.Context(), filepath.Join(folder, "pg_upgrade"), "--version").Output()
		if err == nil && regexp.MustCompile(`\d+`).FindString(string(out)) == version {
			return folder
		}
	}
	t.Skipf("pg_upgrade of version %q is not installed", version)
	return ""
}

// createRoles makes the roles of one server in another.
func (o *ownServer) createRoles(t *testing.T, from *ownServer) {
	t.Helper()
	for line := range strings.Lines(from.program(t, "pg_dumpall", "--roles-only", "-d", from.DSN("postgres"))) {
		if strings.Contains(line, " own_") {
			o.in(t, "postgres", func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, line)
				return err
			})
		}
	}
}

func databaseOf(dsn string) string {
	_, path, _ := strings.Cut(strings.TrimPrefix(dsn, "postgres://"), "/")
	name, _, _ := strings.Cut(path, "?")
	return name
}

// restore puts what pg_dump writes, with these arguments, into the database moved.
func (o *ownServer) restore(t *testing.T, from *ownServer, arguments ...string) {
	t.Helper()
	o.in(t, "postgres", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "create database moved")
		return err
	})
	archive := from.program(t, "pg_dump", append([]string{"-Fc"}, arguments...)...)
	command := o.Command(filepath.Join(installedPrograms(t), "pg_restore"), "--exit-on-error", "-d", o.DSN("moved"))
	command.Stdin = strings.NewReader(archive)
	requireRun(t, command)
}

// dumped moves a database by pg_dump and pg_restore.
func dumped(t *testing.T, from *ownServer, dsn string) string {
	t.Helper()
	to := newOwnServer(t)
	// Oids of roles differ.
	to.in(t, "postgres", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "create role own_other; create role own_moves")
		return err
	})
	to.restore(t, from, "-d", dsn)
	return to.DSN("moved")
}

// upgraded moves all databases of a server by pg_upgrade.
func upgraded(t *testing.T, from *ownServer, dsn string) string {
	t.Helper()
	old, programs := installedPrograms(t), os.Getenv(newerPrograms)
	config := postgres.Config{Version: os.Getenv("PARLEY_TEST_POSTGRES"), Settings: map[string]string{"fsync": "off"}}
	if programs != "" {
		config.Version, config.Binaries = "", programs
	} else {
		programs = old
	}
	work := postgrestest.Folder(t)
	config.Data = filepath.Join(work, "new")
	to := postgrestest.Start(t, config)
	database := databaseOf(dsn)
	for _, server := range []*postgres.Server{from.Server, to} {
		if err := server.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// It writes a script there, and its servers make their sockets.
	scratch := filepath.Join(work, "scratch")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := to.Own(scratch); err != nil {
		t.Fatal(err)
	}
	command := to.Command(filepath.Join(programs, "pg_upgrade"), "--old-bindir", old, "--new-bindir", programs, "--username", "postgres",
		"--old-datadir", filepath.Join(from.Folder(), "cluster"), "--new-datadir", filepath.Join(to.Folder(), "cluster"), "--socketdir", scratch)
	command.Dir = scratch
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("pg_upgrade: %v\n%s", err, out)
	}
	return postgrestest.Start(t, config).DSN(database)
}

// replicated moves a database by a subscription, which carries rows and no sequences.
func replicated(t *testing.T, from *ownServer, dsn string) string {
	t.Helper()
	to := newOwnServer(t)
	to.createRoles(t, from)
	to.restore(t, from, "--schema-only", "-d", dsn)
	database := databaseOf(dsn)
	from.in(t, database, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "create publication moves for all tables with (publish_via_partition_root = true)")
		return err
	})
	source := fmt.Sprintf("host=%s port=%d user=postgres dbname=%s", from.SocketFolder(), from.Port(), database)
	to.in(t, "moved", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "create subscription moves connection '"+source+"' publication moves")
		return err
	})
	admin, err := connect(t, to.DSN("moved"))
	if err != nil {
		t.Fatal(err)
	}
	parleytest.Until(t, "all tables are copied", func() bool {
		return ask[int](admin, "select count(*)::int from pg_subscription_rel as r where r.srsubstate <> 'r'") == 0
	})
	original, err := connect(t, dsn)
	if err != nil {
		t.Fatal(err)
	}
	// Messages that come while it is copied come too; then nobody writes any more.
	l := &ledger{fixture: &fixture{dsn: dsn, admin: original}, holders: map[string]holder{}, conflicts: map[*session]string{}}
	original.exec("select ledger.send(e.conversation_handle, 'late', 'x', 1) from parley.conversation_endpoints as e where e.is_initiator = 1 and e.state = 'CO'")
	l.mustReceive(t, original, "target_queue", 20)
	original.exec("select parley_store.maintain_tracking(days_ahead => 9)")
	lsn := ask[string](original, "select pg_current_wal_lsn()::text")
	parleytest.Until(t, "the subscriber has everything", func() bool {
		return ask[bool](original, "select coalesce(bool_and(s.replay_lsn >= $1::pg_lsn), false) from pg_stat_replication as s", lsn)
	})
	for _, statement := range []string{
		"drop subscription moves",
		"refresh materialized view parley._p_place",
		"refresh materialized view parley._p_found_roles",
	} {
		admin.exec(statement)
	}
	return to.DSN("moved")
}
