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
