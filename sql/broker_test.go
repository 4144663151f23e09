package sql_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/parleytest"
)

// world is the fixture of most tests: two services, each on a queue of its own, that accept the same contract.
const world = `
	select parley.create_message_type('//test/Request');
	select parley.create_message_type('//test/Reply');
	select parley.create_message_type('//test/Note');
	select parley.create_contract('//test/Work', '{"//test/Request": "INITIATOR", "//test/Reply": "TARGET", "//test/Note": "ANY"}'::jsonb);
	select parley.create_queue('Asking');
	select parley.create_queue('Answering');
	select parley.create_service('//test/Asker', 'Asking', array['//test/Work', 'DEFAULT']);
	select parley.create_service('//test/Answerer', 'Answering', array['//test/Work', 'DEFAULT']);
`

const (
	request = "//test/Request"
	reply   = "//test/Reply"
	note    = "//test/Note"

	systemPrefix = "http://schemas.microsoft.com/SQL/ServiceBroker/"
	endDialog    = systemPrefix + "EndDialog"
	errorMessage = systemPrefix + "Error"
	dialogTimer  = systemPrefix + "DialogTimer"
)

// querier is a pool, a connection or a transaction.
type querier interface {
	Exec(ctx context.Context, statement string, arguments ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, query string, arguments ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, query string, arguments ...any) pgx.Row
}

// session is a session with the broker; what it executes must work, or the test ends.
type session struct {
	*testing.T
	db querier
}

// broker is a fresh database with the schema.
type broker struct {
	session
	pool *pgxpool.Pool
}

// newBroker gives a test a database of its own in which nothing is but what is built in.
func newBroker(t *testing.T) *broker {
	t.Helper()
	pool := parleytest.Database(t)
	return &broker{session: session{T: t, db: pool}, pool: pool}
}

// newWorld gives a test a database of its own in which two services can talk.
func newWorld(t *testing.T) *broker {
	t.Helper()
	b := newBroker(t)
	b.exec(world)
	return b
}

// connection opens a session beside the others.
func (b *broker) connection() session {
	b.Helper()
	conn, err := b.pool.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		// Nothing a test has set may reach the next user of the connection.
		_ = conn.Conn().Close(context.Background())
		conn.Release()
	})
	return session{T: b.T, db: conn}
}

// unhurried opens a session for statements that a slow machine may need minutes for.
func (b *broker) unhurried() session {
	b.Helper()
	s := b.connection()
	s.exec("set statement_timeout = 0")
	return s
}

var roles atomic.Int64

// role creates a role that may do nothing yet. Roles are the server's, so each test has its own names.
func (b *broker) role(name string) string {
	b.Helper()
	name = fmt.Sprintf("%s %s %d", name, value[string](b.session, "select current_database()"), roles.Add(1))
	b.exec("create role " + quote(name))
	b.afterwards("drop role " + quote(name))
	return name
}

// afterwards runs a statement when the test has ended.
func (b *broker) afterwards(statement string) {
	b.Helper()
	b.Cleanup(func() {
		if _, err := b.pool.Exec(context.Background(), statement); err != nil {
			b.Errorf("%s: %v", statement, err)
		}
	})
}

// as opens a session in which a role has logged in.
func (b *broker) as(role string) session {
	b.Helper()
	s := b.connection()
	s.exec("set session authorization " + quote(role))
	return s
}

// begin starts a transaction.
func (b *broker) begin(options ...pgx.TxOptions) session {
	b.Helper()
	tx, err := b.pool.BeginTx(b.Context(), append(options, pgx.TxOptions{})[0])
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return session{T: b.T, db: tx}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func (s session) exec(statement string, arguments ...any) {
	s.Helper()
	if _, err := s.db.Exec(s.Context(), statement, arguments...); err != nil {
		s.Fatalf("%s: %v", clip(statement), describe(err))
	}
}

func (s session) commit() {
	s.Helper()
	s.exec("commit")
}

func (s session) rollback() {
	s.Helper()
	s.exec("rollback")
}

// value reads the one value of a query.
func value[T any](s session, query string, arguments ...any) (v T) {
	s.Helper()
	if err := s.db.QueryRow(s.Context(), query, arguments...).Scan(&v); err != nil {
		s.Fatalf("%s: %v", clip(query), describe(err))
	}
	return v
}

// values reads the one column of a query.
func values[T any](s session, query string, arguments ...any) []T {
	s.Helper()
	rows, err := s.db.Query(s.Context(), query, arguments...)
	if err != nil {
		s.Fatalf("%s: %v", clip(query), describe(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		s.Fatalf("%s: %v", clip(query), describe(err))
	}
	return list
}

// equal compares the value of a query.
func equal[T comparable](s session, want T, query string, arguments ...any) {
	s.Helper()
	if got := value[T](s, query, arguments...); got != want {
		s.Errorf("%s gives %v, want %v", clip(query), got, want)
	}
}

// refuses requires that a statement fails with an error of the broker, well-formed, and gives it.
func (s session) refuses(number int, statement string, arguments ...any) pgconn.PgError {
	s.Helper()
	_, err := s.db.Exec(s.Context(), statement, arguments...)
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) {
		s.Fatalf("%s: got %v, want error %d", clip(statement), err, number)
	}
	// A sentence more may follow.
	if refusal.Code != sqlState(number) || !strings.HasPrefix(refusal.Detail+" ", fmt.Sprintf("Service Broker error %d. ", number)) {
		s.Errorf("%s: got %s, want error %d", clip(statement), describe(err), number)
	}
	if refusal.Hint == "" || refusal.Message == "" {
		s.Errorf("%s: the error does not say what happened and what to do: %s", clip(statement), describe(err))
	}
	return *refusal
}

// sqlState is the SQLSTATE of a number: class SB, then the number in base 36.
func sqlState(number int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return "SB" + string([]byte{digits[number/1296], digits[number/36%36], digits[number%36]})
}

func describe(err error) string {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fmt.Sprintf("%s (%s) detail %q hint %q where %q", refusal.Message, refusal.Code, refusal.Detail, refusal.Hint, refusal.Where)
	}
	return err.Error()
}

func clip(statement string) string {
	statement = strings.Join(strings.Fields(statement), " ")
	return statement[:min(len(statement), 300)]
}

// waitUntil asks until a query returns true.
func (s session) waitUntil(query string, arguments ...any) {
	s.Helper()
	parleytest.Until(s, clip(query), func() bool { return value[bool](s, query, arguments...) })
}
