package sql_test

import "testing"

// The xmax of a row has the last 32 bits of a transaction's number; the whole number is the nearest to ours, on either side of it.
func TestTransactionsHaveTheirFullNumbers(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.exec("begin isolation level repeatable read")
	b.exec("select 1")
	before := value[int64](b.session, "select pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1")
	other := b.connection()
	for range 3 {
		other.exec("select pg_current_xact_id()")
	}
	later := value[int64](other, "select pg_current_xact_id()::text::bigint")
	for _, number := range []int64{before, later} {
		equal(b.session, number, "select parley._p_full_transaction_id(($1::bigint & 4294967295)::text::xid)", number)
	}
	b.exec("rollback")
}
