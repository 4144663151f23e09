package reliability_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/parleytest"
)

// patience bounds a statement that should not wait for anything. It is no measure of speed: a test that gets there has failed.
const patience = 120 * time.Second

// fixture is a database with an initiator and a target, each on a queue of its own.
type fixture struct {
	dsn   string
	admin *session
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return prepareFixture(t, parleytest.DSN(t, parleytest.Database(t)))
}

// prepareFixture creates the services in a database that has the schema.
func prepareFixture(t testing.TB, dsn string) *fixture {
	t.Helper()
	b := &fixture{dsn: dsn}
	b.admin = b.session(t)
	for _, statement := range []string{
		"select parley.create_queue('initiator_queue')",
		"select parley.create_queue('target_queue')",
		"select parley.create_service('initiator', 'initiator_queue', '{DEFAULT}')",
		"select parley.create_service('target', 'target_queue', '{DEFAULT}')",
	} {
		b.admin.exec(statement)
	}
	return b
}

// session is one connection and what a client does on it. Its methods fail the test when the statement fails; those that begin with
// try give the error back and may be called from another goroutine.
type session struct {
	t    testing.TB
	conn *pgx.Conn
	pid  uint32
}

func (b *fixture) session(t testing.TB) *session {
	t.Helper()
	s, err := connect(t, b.dsn)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func connect(t testing.TB, dsn string) (*session, error) {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["statement_timeout"] = fmt.Sprint(patience.Milliseconds())
	conn, err := pgx.ConnectConfig(context.Background(), config)
	if err != nil {
		return nil, err
	}
	s := &session{t: t, conn: conn, pid: conn.PgConn().PID()}
	t.Cleanup(s.close)
	return s, nil
}

func (s *session) close() { _ = s.conn.Close(context.Background()) }

func (s *session) try(sql string, args ...any) error {
	_, err := s.conn.Exec(context.Background(), sql, args...)
	return err
}

func (s *session) exec(sql string, args ...any) {
	s.t.Helper()
	if err := s.try(sql, args...); err != nil {
		s.t.Fatalf("%s %v: %v", sql, args, err)
	}
}

func (s *session) begin()              { s.t.Helper(); s.exec("begin") }
func (s *session) commit()             { s.t.Helper(); s.exec("commit") }
func (s *session) rollback()           { s.t.Helper(); s.exec("rollback") }
func (s *session) savepoint(n string)  { s.t.Helper(); s.exec("savepoint " + n) }
func (s *session) rollbackTo(n string) { s.t.Helper(); s.exec("rollback to savepoint " + n) }
func (s *session) beginRepeatableRead() {
	s.t.Helper()
	s.exec("begin isolation level repeatable read")
}

// ask returns the one value of a query.
func ask[T any](s *session, sql string, args ...any) T {
	s.t.Helper()
	value, err := tryAsk[T](s, sql, args...)
	if err != nil {
		s.t.Fatalf("%s %v: %v", sql, args, err)
	}
	return value
}

func tryAsk[T any](s *session, sql string, args ...any) (value T, err error) {
	err = s.conn.QueryRow(context.Background(), sql, args...).Scan(&value)
	return value, err
}

// dialog begins a dialog from the initiator to the target, and gives the handle.
func (s *session) dialog() string {
	s.t.Helper()
	return ask[string](s, "select parley.begin_dialog('initiator', 'target')::text")
}

func (s *session) send(handle, body string) {
	s.t.Helper()
	s.exec("select parley.send($1::uuid, 'DEFAULT', $2::text)", handle, body)
}

func (s *session) trySend(handle, body string) error {
	return s.try("select parley.send($1::uuid, 'DEFAULT', $2::text)", handle, body)
}

func (s *session) end(handle string) {
	s.t.Helper()
	s.exec("select parley.end_conversation($1::uuid)", handle)
}

func (s *session) tryEnd(handle string) error {
	return s.try("select parley.end_conversation($1::uuid)", handle)
}

// conversation begins a dialog and sends bodies on it. It gives the handles of both sides.
func (s *session) conversation(bodies ...string) (initiator, target string) {
	s.t.Helper()
	initiator = s.dialog()
	for _, body := range bodies {
		s.send(initiator, body)
	}
	return initiator, s.far(initiator)
}

// far gives the handle of the other side, and an empty one when there is none.
func (s *session) far(handle string) string {
	s.t.Helper()
	far, err := tryAsk[string](s, `
		select f.conversation_handle::text
		from parley.conversation_endpoints as e
		join parley.conversation_endpoints as f using (conversation_id)
		where e.conversation_handle = $1::uuid and f.conversation_handle <> e.conversation_handle`, handle)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		s.t.Fatal(err)
	}
	return far
}

func (s *session) group(handle string) string {
	s.t.Helper()
	return ask[string](s, "select conversation_group_id::text from parley.conversation_endpoints where conversation_handle = $1::uuid", handle)
}

// code is the SQLSTATE of an error, empty for none and for errors that do not come from the server.
func code(err error) string {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code
	}
	return ""
}

// broker gives the SQLSTATE that stands for an error number of Service Broker.
func broker(number int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return "SB" + string([]byte{digits[number/1296], digits[number/36%36], digits[number%36]})
}
