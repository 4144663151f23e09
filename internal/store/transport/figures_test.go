package transport_test

import (
	"encoding/json"
	"testing"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
	"github.com/parley-broker/parley/parleytest"
)

// A figure that no daemon reports would be 0 for ever.
func TestPerformanceCountersAreMadeOfFiguresThatDaemonsReport(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	reported, err := json.Marshal(transportstore.Figures{})
	if err != nil {
		t.Fatal(err)
	}
	var known int
	var unknown []string
	err = pool.QueryRow(t.Context(), `
		select count(*), coalesce(array_agg(f.name) filter (where ($1::text::jsonb #>> format('{%s}', f.name)::text[]) is null), '{}')
		from parley._p_transport_counter as c
		cross join unnest(c.figures || c.per) as f (name)`, string(reported)).Scan(&known, &unknown)
	if err != nil {
		t.Fatal(err)
	}
	if len(unknown) > 0 {
		t.Errorf("no daemon reports %q", unknown)
	}
	if known < 40 {
		t.Errorf("only %d figures are used", known)
	}
}
