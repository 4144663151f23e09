//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// exec runs statements on a connection of its own.
func (s *served) exec(statements string, args ...any) {
	s.t.Helper()
	if len(args) == 0 {
		args = []any{pgx.QueryExecModeSimpleProtocol}
	}
	if err := s.try(func(conn *pgx.Conn) error {
		_, err := conn.Exec(s.t.Context(), statements, args...)
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
}

func TestServeCarriesMessagesBetweenItsDatabasesWhateverHappensToDaemons(t *testing.T) {
	t.Parallel()
	from := newServed(t, parleytest.DSN(t, parleytest.Database(t)))
	to := newServed(t, parleytest.DSN(t, parleytest.Database(t)))
	to.exec("select parley.create_service('elsewhere', queue => 'orders', contracts => array['DEFAULT'])")
	from.exec("create table app.talks as select parley.begin_dialog('customers', 'elsewhere') as handle from generate_series(0, 9)")
	send := func(first, last int) {
		t.Helper()
		from.exec(`
			select parley.send(k.handle, 'DEFAULT', n::text)
			from generate_series($1::int, $2::int) as n
			join (select handle, row_number() over () - 1 as number from app.talks) as k on k.number = n % 10`, first, last)
	}
	both := []string{"--dsn", from.dsn, "--dsn", to.dsn}
	first := startDaemon(t, leads, both...)
	send(1, 100)
	second := startDaemon(t, "another daemon leads", both...)
	to.await("select count(*) > 10 from app.done")
	send(101, 200)
	// Killed while messages are on their way.
	first.signal(syscall.SIGKILL)
	to.awaitDone(200)
	second.signal(syscall.SIGSTOP)
	third := startDaemon(t, leads, both...)
	send(201, 300)
	to.awaitDone(300)
	// It believes that it leads, and speaks under a term that is over.
	second.signal(syscall.SIGCONT)
	second.awaitLog("leads no more")
	send(301, 400)
	to.awaitDone(400)
	third.signal(syscall.SIGTERM)
	send(401, 450)
	to.awaitDone(450)
	from.await("select not exists (select from parley._p_transit)")
}
