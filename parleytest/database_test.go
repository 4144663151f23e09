package parleytest_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/parleytest"
)

func hasSchema(t *testing.T, pool *pgxpool.Pool) (has bool) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "select to_regnamespace('parley') is not null").Scan(&has); err != nil {
		t.Fatal(err)
	}
	return has
}

func TestDatabaseHasTheSchema(t *testing.T) {
	t.Parallel()
	if !hasSchema(t, parleytest.Database(t)) {
		t.Error("the schema parley is missing")
	}
}

func TestEmptyDatabaseHasNoSchema(t *testing.T) {
	t.Parallel()
	if hasSchema(t, parleytest.EmptyDatabase(t)) {
		t.Error("the schema parley is there")
	}
}

func TestDatabaseIsDroppedWithThePreparedTransactionsLeftInIt(t *testing.T) {
	t.Parallel()
	observer := parleytest.EmptyDatabase(t)
	var name string
	t.Run("a test that leaves one", func(t *testing.T) {
		pool := parleytest.EmptyDatabase(t)
		name = pool.Config().ConnConfig.Database
		statement := "begin; create table public.left_behind (); prepare transaction 'it''s " + name + "'"
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	})
	var left int
	if err := observer.QueryRow(t.Context(), "select count(*) from pg_database where datname = $1", name).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != 0 {
		t.Errorf("database %s is still there", name)
	}
}
