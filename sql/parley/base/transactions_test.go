package base_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// The xmax of a row has the last 32 bits of a transaction's number; the whole number is the nearest to ours, on either side of it.
func TestTransactionsHaveTheirFullNumbers(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	old, other := b.Connection(), b.Connection()
	old.Exec("begin isolation level repeatable read")
	before := sqltest.Value[int64](old, "select pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1")
	for range 3 {
		other.Exec("select pg_current_xact_id()")
	}
	later := sqltest.Value[int64](other, "select pg_current_xact_id()::text::bigint")
	for _, number := range []int64{before, later} {
		sqltest.Equal(old, number, "select parley._p_full_transaction_id(($1::bigint & 4294967295)::text::xid)", number)
	}
	old.Exec("rollback")
}
