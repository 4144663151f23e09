package console

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

func TestPageAndItsChartCostOneReading(t *testing.T) {
	t.Parallel()
	s := &session{pool: parleytest.Database(t)}
	read := func() (at time.Time) {
		err := s.read(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			now, _, err := s.activity(ctx, tx)
			at = now.At
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	first := read()
	s.readAt = time.Now() // however slow the machine is
	if at := read(); !at.Equal(first) {
		t.Error("the second page has read again")
	}
	s.readAt = time.Now().Add(-freshFor)
	if at := read(); at.Equal(first) {
		t.Error("an old reading serves")
	}
}
