package sqltest

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

// World is the fixture of most tests: two services, each on a queue of its own, that accept the same contract.
const World = `
	select parley.create_message_type('//test/Request');
	select parley.create_message_type('//test/Reply');
	select parley.create_message_type('//test/Note');
	select parley.create_contract('//test/Work', '{"//test/Request": "INITIATOR", "//test/Reply": "TARGET", "//test/Note": "ANY"}'::jsonb);
	select parley.create_queue('Asking');
	select parley.create_queue('Answering');
	select parley.create_service('//test/Asker', 'Asking', array['//test/Work', 'DEFAULT']);
	select parley.create_service('//test/Answerer', 'Answering', array['//test/Work', 'DEFAULT']);
`

// Message types of the fixture and of the broker.
const (
	Request = "//test/Request"
	Reply   = "//test/Reply"
	Note    = "//test/Note"

	systemPrefix = "http://schemas.microsoft.com/SQL/ServiceBroker/"
	EndDialog    = systemPrefix + "EndDialog"
	ErrorMessage = systemPrefix + "Error"
	DialogTimer  = systemPrefix + "DialogTimer"
)

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Exec(ctx context.Context, statement string, arguments ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, query string, arguments ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, query string, arguments ...any) pgx.Row
}

// Session is a session with the broker; what it executes must work, or the test ends.
type Session struct {
	*testing.T
	DB Querier
}

// Broker is a fresh database with the schema.
type Broker struct {
	Session
	Pool *pgxpool.Pool
}

// NewBroker gives a test a database of its own in which nothing is but what is built in.
func NewBroker(t *testing.T) *Broker {
	t.Helper()
	pool := parleytest.Database(t)
	return &Broker{Session: Session{T: t, DB: pool}, Pool: pool}
}

// NewWorld gives a test a database of its own in which two services can talk.
func NewWorld(t *testing.T) *Broker {
	t.Helper()
	b := NewBroker(t)
	b.Exec(World)
	return b
}

// Connection opens a session beside the others.
func (b *Broker) Connection() Session {
	b.Helper()
	conn, err := b.Pool.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		// Nothing a test has set may reach the next user of the connection.
		_ = conn.Conn().Close(context.Background())
		conn.Release()
	})
	return Session{T: b.T, DB: conn}
}

// Unhurried opens a session for statements that a slow machine may need minutes for.
func (b *Broker) Unhurried() Session {
	b.Helper()
	s := b.Connection()
	s.Exec("set statement_timeout = 0")
	return s
}

// roles numbers the roles of a test run.
var roles atomic.Int64

// Role creates a role that may do nothing yet. Roles are the server's, so each test has its own names.
func (b *Broker) Role(name string) string {
	b.Helper()
	name = fmt.Sprintf("%s %s %d", name, Value[string](b.Session, "select current_database()"), roles.Add(1))
	b.Exec("create role " + Quote(name))
	b.Afterwards("drop role " + Quote(name))
	return name
}

// Afterwards runs a statement when the test has ended.
func (b *Broker) Afterwards(statement string) {
	b.Helper()
	b.Cleanup(func() {
		if _, err := b.Pool.Exec(context.Background(), statement); err != nil {
			b.Errorf("%s: %v", statement, err)
		}
	})
}

// As opens a session in which a role has logged in.
func (b *Broker) As(role string) Session {
	b.Helper()
	s := b.Connection()
	s.Exec("set session authorization " + Quote(role))
	return s
}

// Begin starts a transaction.
func (b *Broker) Begin(options ...pgx.TxOptions) Session {
	b.Helper()
	tx, err := b.Pool.BeginTx(b.Context(), append(options, pgx.TxOptions{})[0])
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return Session{T: b.T, DB: tx}
}

// Quote writes a name as an identifier.
func Quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// Exec runs a statement.
func (s Session) Exec(statement string, arguments ...any) {
	s.Helper()
	if _, err := s.DB.Exec(s.Context(), statement, arguments...); err != nil {
		s.Fatalf("%s: %v", Clip(statement), Describe(err))
	}
}

// Commit ends the transaction.
func (s Session) Commit() {
	s.Helper()
	s.Exec("commit")
}

// Rollback undoes the transaction.
func (s Session) Rollback() {
	s.Helper()
	s.Exec("rollback")
}

// Value reads the one value of a query.
func Value[T any](s Session, query string, arguments ...any) (v T) {
	s.Helper()
	if err := s.DB.QueryRow(s.Context(), query, arguments...).Scan(&v); err != nil {
		s.Fatalf("%s: %v", Clip(query), Describe(err))
	}
	return v
}

// Values reads the one column of a query.
func Values[T any](s Session, query string, arguments ...any) []T {
	s.Helper()
	rows, err := s.DB.Query(s.Context(), query, arguments...)
	if err != nil {
		s.Fatalf("%s: %v", Clip(query), Describe(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		s.Fatalf("%s: %v", Clip(query), Describe(err))
	}
	return list
}

// Equal compares the value of a query.
func Equal[T comparable](s Session, want T, query string, arguments ...any) {
	s.Helper()
	if got := Value[T](s, query, arguments...); got != want {
		s.Errorf("%s gives %v, want %v", Clip(query), got, want)
	}
}

// Refuses requires that a statement fails with an error of the broker, well-formed, and gives it.
func (s Session) Refuses(number int, statement string, arguments ...any) pgconn.PgError {
	s.Helper()
	_, err := s.DB.Exec(s.Context(), statement, arguments...)
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) {
		s.Fatalf("%s: got %v, want error %d", Clip(statement), err, number)
	}
	// A sentence more may follow.
	if refusal.Code != SQLState(number) || !strings.HasPrefix(refusal.Detail+" ", fmt.Sprintf("Service Broker error %d. ", number)) {
		s.Errorf("%s: got %s, want error %d", Clip(statement), Describe(err), number)
	}
	if refusal.Hint == "" || refusal.Message == "" {
		s.Errorf("%s: the error does not say what happened and what to do: %s", Clip(statement), Describe(err))
	}
	return *refusal
}

// SQLState is the SQLSTATE of a number: class SB, then the number in base 36.
func SQLState(number int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return "SB" + string([]byte{digits[number/1296], digits[number/36%36], digits[number%36]})
}

// Describe gives all that an error of the server says.
func Describe(err error) string {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fmt.Sprintf("%s (%s) detail %q hint %q where %q", refusal.Message, refusal.Code, refusal.Detail, refusal.Hint, refusal.Where)
	}
	return err.Error()
}

// Clip writes a statement on one line, of at most 300 bytes.
func Clip(statement string) string {
	statement = strings.Join(strings.Fields(statement), " ")
	return statement[:min(len(statement), 300)]
}

// WaitUntil asks until a query returns true.
func (s Session) WaitUntil(query string, arguments ...any) {
	s.Helper()
	parleytest.Until(s, Clip(query), func() bool { return Value[bool](s, query, arguments...) })
}
