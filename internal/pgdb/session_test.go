package pgdb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/parleytest"
)

// changed gives the connection string of a database in which every setting is changed.
func changed(t *testing.T) (dsn, pooled string) {
	t.Helper()
	pool := parleytest.EmptyDatabase(t)
	parleytest.ChangeSettings(t, pool, "database", parleytest.FormatSettings...)
	parleytest.ChangeSettings(t, pool, "database", parleytest.StatementSettings...)
	parleytest.ChangeSettings(t, pool, "database", parleytest.SessionSettings...)
	// Last: it keeps the sessions that it has opened.
	return parleytest.DSN(t, pool), parleytest.PgBouncer(t, pool)
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func show(t *testing.T, conn *pgx.Conn, name string) (value string) {
	t.Helper()
	err := conn.QueryRow(t.Context(), "select pg_catalog.current_setting($1)", pgx.QueryExecModeExec, name).Scan(&value)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestSessionIsPreparedWhateverAnAdministratorHasChanged(t *testing.T) {
	t.Parallel()
	dsn, _ := changed(t)
	conn := connect(t, dsn+"&options="+"-c%20lock_timeout%3D7s")
	if err := pgdb.PrepareSession(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"default_transaction_isolation": "read committed", "statement_timeout": "0", "idle_session_timeout": "0",
		"idle_in_transaction_session_timeout": "0", "DateStyle": "ISO, DMY", "IntervalStyle": "postgres", "bytea_output": "hex",
		"standard_conforming_strings": "on", "client_encoding": "UTF8", "client_min_messages": "warning", "search_path": "pg_catalog, pg_temp",
		// The connection string itself sets it.
		"lock_timeout": "7s",
	} {
		if got := show(t, conn, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// A session behind a pooler belongs to others too.
func TestPreparingASessionBehindAPoolerSaysWhatItCannotSet(t *testing.T) {
	t.Parallel()
	_, pooled := changed(t)
	conn := connect(t, pooled)
	err := pgdb.PrepareSession(t.Context(), conn)
	if !errors.Is(err, pgdb.ErrIsolation) || !strings.Contains(err.Error(), "alter role ") {
		t.Fatalf("it gives %v", err)
	}
	for name, want := range map[string]string{
		"DateStyle": "ISO, DMY", "client_encoding": "UTF8", "standard_conforming_strings": "on",
		"default_transaction_isolation": "serializable", "statement_timeout": "20s",
	} {
		if got := show(t, conn, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
