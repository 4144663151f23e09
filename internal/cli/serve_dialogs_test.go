//go:build unix

package cli

import (
	"crypto/rand"
	"strings"
	"syscall"
	"testing"
	"time"

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
	from.exec("create table app.talks as select parley.begin_dialog('customers', 'elsewhere', allow_unknown_target => true) as handle from generate_series(0, 9)")
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
	second.log.Await(t, "leads no more")
	send(301, 400)
	to.awaitDone(400)
	third.signal(syscall.SIGTERM)
	send(401, 450)
	to.awaitDone(450)
	from.await("select not exists (select from parley._p_transit)")
}

// Roles are the server's: of two databases on one server the owner of the sending service proves who sends. On another server anybody may make
// a role of that name.
func TestServeBelievesNoRoleOfAnotherServer(t *testing.T) {
	t.Parallel()
	_, far := ownServer(t)
	from, beside, to := newServed(t, parleytest.DSN(t, parleytest.Database(t))), newServed(t, parleytest.DSN(t, parleytest.Database(t))), newServed(t, far)
	// A name that has to be quoted in SQL.
	role := `The "partner" of ` + ask[string](from, "select current_database()")
	name := pgx.Identifier{role}.Sanitize()
	for _, s := range []*served{from, to} {
		s.exec("create role " + name)
	}
	from.exec("select parley.alter_authorization('service', 'customers', $1)", role)
	for s, service := range map[*served]string{beside: "beside", to: "elsewhere"} {
		s.exec("select parley.create_service($1, queue => 'orders', contracts => array['DEFAULT'])", service)
		s.exec("select parley.grant('SEND', 'service', $1, $2)", service, role)
	}
	startDaemon(t, leads, "--dsn", from.dsn, "--dsn", beside.dsn, "--dsn", to.dsn)
	// outcome sends a message and waits for what becomes of it.
	outcome := func(s *served, service string, number int) string {
		t.Helper()
		from.exec("select parley.send(parley.begin_dialog('customers', $1, allow_unknown_target => true), 'DEFAULT', $2::int::text)", service, number)
		for t.Context().Err() == nil {
			if ask[bool](s, "select exists (select from app.done where number = $1)", number) {
				return "taken"
			}
			if refusal := ask[string](from, "select coalesce(max(parley.body_text(message_body)), '') from parley.receive('customers')"); refusal != "" {
				return refusal
			}
			<-time.After(awaitPoll)
		}
		return ""
	}
	if got := outcome(beside, "beside", 1); got != "taken" {
		t.Errorf("the owner of a service beside is not believed: %s", got)
	}
	if got := outcome(to, "elsewhere", 2); !strings.Contains(got, "-8494") {
		t.Errorf("the owner of a service on another server is believed: %s", got)
	}
	// The way is there: what is granted to PUBLIC counts for everybody.
	to.exec("select parley.grant('SEND', 'service', 'elsewhere', 'public')")
	if got := outcome(to, "elsewhere", 3); got != "taken" {
		t.Errorf("what is granted to PUBLIC does not count: %s", got)
	}
	// The owner of a database can say there that a service is anybody's: he is believed for roles that he could be himself.
	tenant := "tenant_" + strings.ToLower(rand.Text())
	database := pgx.Identifier{ask[string](from, "select current_database()")}.Sanitize()
	from.exec("create role " + tenant)
	from.exec("alter database " + database + " owner to " + tenant)
	if got := outcome(beside, "beside", 4); !strings.Contains(got, "-8494") {
		t.Errorf("the owner of a service is believed that the owner of the database could not be: %s", got)
	}
	from.exec("grant " + name + " to " + tenant)
	if got := outcome(beside, "beside", 5); got != "taken" {
		t.Errorf("the owner of a service is not believed that the owner of the database could be: %s", got)
	}
	from.exec("alter database " + database + " owner to current_user")
	from.exec("drop role " + tenant)
	from.exec("select parley.alter_authorization('service', 'customers', current_user)")
	from.exec("delete from parley._p_endpoint")
	beside.exec("select parley.revoke('SEND', 'service', 'beside', $1)", role)
	from.exec("drop role " + name)
}

// ask reads the one value of a query on a connection of its own.
func ask[T any](s *served, query string, args ...any) (v T) {
	s.t.Helper()
	if err := s.try(func(conn *pgx.Conn) error { return conn.QueryRow(s.t.Context(), query, args...).Scan(&v) }); err != nil {
		s.t.Fatal(err)
	}
	return v
}
