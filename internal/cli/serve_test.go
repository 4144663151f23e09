//go:build unix

package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/internal/postgres/postgrestest"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
)

// shop is a queue with a reader that takes its time, and a table of what was worked on.
const shop = `
	create schema app;
	create table app.done (number int primary key);
	create procedure app.reader() language plpgsql as $$
	declare
		m record;
	begin
		loop
			select * into m from parley.receive('orders', top => 1);
			exit when not found;
			perform pg_sleep(0.02);
			insert into app.done values (convert_from(m.message_body, 'UTF8')::int);
			commit;
		end loop;
	end $$;
	select parley.create_queue('orders', activation_procedure => 'app.reader', max_queue_readers => 2, execute_as => 'SELF',
		poison_message_handling => false);
	select parley.create_queue('customers');
	select parley.create_service('orders', queue => 'orders', contracts => array['DEFAULT']);
	select parley.create_service('customers', queue => 'customers')`

// served is a database that daemons serve.
type served struct {
	t   *testing.T
	dsn string
}

func newServed(t *testing.T, dsn string) *served {
	t.Helper()
	s := &served{t: t, dsn: dsn}
	if err := s.try(func(conn *pgx.Conn) error {
		_, err := conn.Exec(t.Context(), shop, pgx.QueryExecModeSimpleProtocol)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// try works on a connection of its own: the server may have been restarted.
func (s *served) try(work func(conn *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return work(conn)
}

// send sends messages with these numbers, in one transaction.
func (s *served) send(from, to int) {
	s.t.Helper()
	if err := s.try(func(conn *pgx.Conn) error {
		_, err := conn.Exec(s.t.Context(), `
			select parley.send(parley.begin_dialog('customers', 'orders'), 'DEFAULT', n::text) from generate_series($1::int, $2::int) as n`, from, to)
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
}

// await waits until a query gives true; meanwhile the database may be out of reach.
func (s *served) await(query string, args ...any) {
	s.t.Helper()
	parleytest.Until(s.t, fmt.Sprint(query, " ", args), func() bool {
		var is *bool
		err := s.try(func(conn *pgx.Conn) error { return conn.QueryRow(s.t.Context(), query, args...).Scan(&is) })
		return err == nil && is != nil && *is
	})
}

// awaitDone waits until so many messages were worked on. The key of the table refuses to have one worked on twice.
func (s *served) awaitDone(n int) {
	s.t.Helper()
	s.await("select count(*) = $1 from app.done", n)
}

// daemonProcess is a `parley serve` of its own.
type daemonProcess struct {
	t   *testing.T
	cmd *exec.Cmd
	log *logtest.Log
}

// startDaemon starts `parley serve`, and waits until it logs something.
func startDaemon(t *testing.T, logs string, args ...string) *daemonProcess {
	t.Helper()
	return startProcess(t, logs, append([]string{"serve"}, args...)...)
}

// startProcess starts the program that testscript has put on the path, and waits until it logs something.
func startProcess(t *testing.T, logs string, args ...string) *daemonProcess {
	t.Helper()
	d := &daemonProcess{t: t, log: &logtest.Log{}}
	d.cmd = exec.Command("parley", args...)
	d.cmd.Stderr = d.log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		if t.Failed() {
			t.Logf("the log of the daemon:\n%s", d.log)
		}
	})
	d.log.Await(t, logs)
	return d
}

func (d *daemonProcess) signal(s os.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

const leads = "this daemon leads"

func TestServeServesSeveralDatabasesAndStopsCleanly(t *testing.T) {
	t.Parallel()
	first := newServed(t, parleytest.DSN(t, parleytest.Database(t)))
	second := newServed(t, parleytest.DSN(t, parleytest.Database(t)))
	d := startDaemon(t, "the daemon runs", "--dsn", first.dsn, "--dsn", second.dsn)
	for _, s := range []*served{first, second} {
		s.send(1, 5)
		s.awaitDone(5)
	}
	d.signal(syscall.SIGTERM)
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	d.log.Await(t, "the daemon has stopped")
	for _, s := range []*served{first, second} {
		s.await("select leader is null from parley._p_leader")
		s.await("select not exists (select from pg_stat_activity where datname = current_database() and application_name ~ '^parley (serve|reader|listener)')")
	}
}

func TestServeThatIsKilledIsReplacedAndLosesNothing(t *testing.T) {
	t.Parallel()
	s := newServed(t, parleytest.DSN(t, parleytest.Database(t)))
	first := startDaemon(t, leads, "--dsn", s.dsn)
	startDaemon(t, "another daemon leads", "--dsn", s.dsn)
	s.send(1, 200)
	s.await("select count(*) > 20 from app.done")
	first.signal(syscall.SIGKILL)
	s.awaitDone(200)
	s.await("select term = 2 from parley._p_leader")
	s.await("select count(*) = 1 and bool_and(running_readers = 0) from parley.dm_broker_queue_monitors")
	s.await("select not exists (select from parley.dm_broker_activated_tasks)")
}

func TestServeThatWasPausedDoesNothingWhenAnotherLeads(t *testing.T) {
	t.Parallel()
	s := newServed(t, parleytest.DSN(t, parleytest.Database(t)))
	first := startDaemon(t, leads, "--dsn", s.dsn)
	s.send(1, 20)
	s.awaitDone(20)
	first.signal(syscall.SIGSTOP)
	second := startDaemon(t, leads, "--dsn", s.dsn)
	s.send(21, 40)
	s.awaitDone(40)
	// It was notified of all of these, and believed to lead.
	first.signal(syscall.SIGCONT)
	first.log.Await(t, "leads no more")
	s.send(41, 60)
	s.awaitDone(60)
	s.await("select term = 2 from parley._p_leader")
	first.log.Await(t, "another daemon leads")
	second.signal(syscall.SIGTERM)
	s.send(61, 80)
	s.awaitDone(80)
	s.await("select term = 4 from parley._p_leader")
}

func TestServeOutlivesItsDatabase(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes a server of its own and crashes it")
	}
	server, dsn := ownServer(t)
	s := newServed(t, dsn)
	d := startDaemon(t, leads, "--dsn", dsn)
	for n := range 2 {
		s.send(n*100+1, n*100+100)
		s.await("select count(*) > $1 from app.done", n*100+10)
		crash(t, s, server)
		s.awaitDone(n*100 + 100)
	}
	// A failure is logged when it begins, not as long as it lasts.
	if n := strings.Count(d.log.String(), "again and again"); n > 12 {
		t.Errorf("%d lines of trouble", n)
	}
}

// ownServer starts a server for one test, that is started again whenever it is gone, with the schema installed.
func ownServer(t *testing.T) (*postgres.Server, string) {
	t.Helper()
	server := postgrestest.Supervised(t, nil)
	if err := server.EnsureDatabase(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), server.DSN("shop"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := schema.Install(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	return server, server.DSN("shop")
}

// crash stops the server on the spot, without a checkpoint, and waits until it is another one.
func crash(t *testing.T, s *served, server *postgres.Server) {
	t.Helper()
	var pid int
	var began time.Time
	const who = "select split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int, pg_postmaster_start_time()"
	if err := s.try(func(conn *pgx.Conn) error { return conn.QueryRow(t.Context(), who).Scan(&pid, &began) }); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
		t.Fatal(fmt.Errorf("stop the server on %s: %w", server.Folder(), err))
	}
	s.await("select pg_postmaster_start_time() > $1", began)
}
