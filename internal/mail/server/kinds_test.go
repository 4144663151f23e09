package server

import (
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// Each kind of delivery whose lanes daemons claim has somebody who takes its messages, and nobody takes what is no kind.
func TestEachKindOfDeliveryHasACarrier(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	s, err := New(Config{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := pool.Query(t.Context(), `select kind from parley_mail._p_delivery_kind where system = 'mail' and tracking_source is not null`)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(kinds)
	if carried := slices.Sorted(maps.Keys(s.carriers())); !slices.Equal(carried, kinds) {
		t.Errorf("there are carriers for %q, and kinds %q", carried, kinds)
	}
}
