package interpreter

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/parleytest"
)

// passing is a Translator for these tests: it hands INSERT and DELETE to the database as they are written. A session sees no schema but
// that of PostgreSQL without its name.
type passing struct {
	none
	connection *connection.Connection
	batch      string
}

func (p *passing) Statement(_ context.Context, node ast.Statement, _ expression.Scope) (Statement, *fault.Error) {
	return &passed{connection: p.connection, sql: strings.Replace(p.batch[node.At().Offset:node.At().End], "INTO ", "INTO public.", 1)}, nil
}

type passed struct {
	connection *connection.Connection
	sql        string
}

func (*passed) IsWrite() bool { return true }

func (p *passed) Run(ctx context.Context, _ *expression.Frame, _ session.Sink) (int64, bool, *fault.Error) {
	tag, err := p.connection.Run(ctx, connection.Statement{SQL: p.sql})
	if err != nil {
		found, _ := connection.FaultOf(err, "INSERT")
		return 0, false, found
	}
	return tag.RowsAffected(), true, nil
}

// Each script runs on one table of one server; the rows that its transaction kept are counted after it.
func TestTransactionsKeepInTheDatabaseWhatTheirClassSays(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	if _, err := pool.Exec(t.Context(), "create table item (id int primary key, name text not null)"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rule, script, rows string
		numbers            []int
	}{
		{"each statement commits by itself", "INSERT INTO item VALUES (1, 'a')\nGO\nROLLBACK", "1", []int{3903}},
		{"an error undoes its statement alone", "BEGIN TRAN INSERT INTO item VALUES (1, 'a') INSERT INTO item VALUES (2, 'b'), (1, 'c') INSERT INTO item VALUES (3, 'd') COMMIT", "1,3", []int{2627, 3621}},
		{"a missing value is 515", "BEGIN TRAN INSERT INTO item VALUES (1, NULL) INSERT INTO item VALUES (2, 'b') COMMIT", "2", []int{515, 3621}},
		{"XACT_ABORT undoes all", "SET XACT_ABORT ON BEGIN TRAN INSERT INTO item VALUES (1, 'a') INSERT INTO item VALUES (1, 'b') COMMIT\nGO\nINSERT INTO item VALUES (3, 'c')", "3", []int{2627}},
		{"a conversion error undoes all", "BEGIN TRAN INSERT INTO item VALUES (1, 'a') DECLARE @i int = 'x' COMMIT", "", []int{245}},
		{"a caught error keeps what was before", "BEGIN TRAN INSERT INTO item VALUES (1, 'a') BEGIN TRY INSERT INTO item VALUES (1, 'b') END TRY BEGIN CATCH INSERT INTO item VALUES (2, 'c') END CATCH COMMIT", "1,2", nil},
		{"a doomed transaction refuses to write", "BEGIN TRAN INSERT INTO item VALUES (1, 'a') BEGIN TRY DECLARE @i int = 'x' END TRY BEGIN CATCH INSERT INTO item VALUES (2, 'c') END CATCH", "", []int{3930}},
		{"and can be rolled back and followed", "SET XACT_ABORT ON BEGIN TRAN INSERT INTO item VALUES (1, 'a') BEGIN TRY INSERT INTO item VALUES (1, 'b') END TRY BEGIN CATCH ROLLBACK INSERT INTO item VALUES (2, 'c') END CATCH", "2", nil},
		{"a savepoint keeps what was before it", "BEGIN TRAN INSERT INTO item VALUES (1, 'a') SAVE TRAN s INSERT INTO item VALUES (2, 'b') ROLLBACK TRAN s INSERT INTO item VALUES (3, 'c') COMMIT", "1,3", nil},
		{"a savepoint outlives later errors", "BEGIN TRAN INSERT INTO item VALUES (1, 'a') SAVE TRAN s INSERT INTO item VALUES (2, 'b') INSERT INTO item VALUES (2, 'b') INSERT INTO item VALUES (4, 'd') ROLLBACK TRAN s ROLLBACK TRAN s COMMIT", "1", []int{2627, 3621}},
		{"the last savepoint of a name counts", "BEGIN TRAN SAVE TRAN s INSERT INTO item VALUES (1, 'a') SAVE TRAN s INSERT INTO item VALUES (2, 'b') ROLLBACK TRAN s COMMIT", "1", nil},
		{"the inner COMMIT commits nothing", "BEGIN TRAN BEGIN TRAN INSERT INTO item VALUES (1, 'a') COMMIT ROLLBACK", "", nil},
		{"IMPLICIT_TRANSACTIONS begins one", "SET IMPLICIT_TRANSACTIONS ON INSERT INTO item VALUES (1, 'a') PRINT @@TRANCOUNT ROLLBACK", "", nil},
		{"the end of the session rolls back", "BEGIN TRAN INSERT INTO item VALUES (1, 'a')", "", nil},
		{"a missing table is not caught at its own level, and the transaction stays", "BEGIN TRAN INSERT INTO item VALUES (1, 'a') BEGIN TRY INSERT INTO missing VALUES (1) END TRY BEGIN CATCH INSERT INTO item VALUES (2, 'b') END CATCH\nGO\nCOMMIT", "1", []int{208}},
		{"USE does not leave a transaction", "BEGIN TRAN USE master COMMIT USE no_such_database PRINT 'not reached'", "", []int{226, 911}},
		{"USE goes to another database", "USE master INSERT INTO item VALUES (1, 'a')", "", []int{5701, 208}},
		{"a level holds for the next transaction", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE BEGIN TRAN INSERT INTO item VALUES (1, 'a') COMMIT", "1", nil},
	} {
		rows, numbers := inDatabase(t, parleytest.DSN(t, pool), c.script)
		if rows != c.rows || !equalNumbers(numbers, c.numbers) {
			t.Errorf("%s\n%s\n--- rows %q, errors %v\n--- want %q, %v", c.rule, c.script, rows, numbers, c.rows, c.numbers)
		}
		if _, err := pool.Exec(t.Context(), "delete from item"); err != nil {
			t.Fatal(err)
		}
	}
}

func equalNumbers(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// errorsOnly is a sink that keeps the numbers of errors and of 3621.
type errorsOnly struct {
	session.TextSink
	numbers []int
}

func (e *errorsOnly) Done(session.Done) error { return nil }
func (e *errorsOnly) Flush() error            { return nil }
func (e *errorsOnly) Message(m *fault.Error) error {
	if m.Number != 0 {
		e.numbers = append(e.numbers, m.Number)
	}
	return nil
}

// inDatabase runs a script in a session of its own; it gives the identifiers of the rows that are there afterwards.
func inDatabase(t *testing.T, dsn, script string) (rows string, numbers []int) {
	t.Helper()
	dial := func(ctx context.Context, database string) (*pgx.Conn, error) {
		config, err := pgx.ParseConfig(dsn)
		if err == nil && database != "" {
			config.Database = database
		}
		if err != nil {
			return nil, err
		}
		return pgx.ConnectConfig(ctx, config)
	}
	p := &passing{connection: connection.New(dial)}
	s := New(Identity{}, p, p.connection)
	sink := &errorsOnly{}
	for batch := range strings.SplitSeq(script, "\nGO\n") {
		p.batch = batch
		if err := s.Run(t.Context(), batch, sink); err != nil {
			t.Fatal(script, err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := dial(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if err := conn.QueryRow(t.Context(), "select coalesce(string_agg(id::text, ',' order by id), '') from item").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	return rows, sink.numbers
}
