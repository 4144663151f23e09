package console

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// The server bounds each statement; a page of many is bounded as a whole.
func TestPageOfManyStatementsEndsWithinItsTime(t *testing.T) {
	t.Parallel()
	s := &session{pool: parleytest.Database(t)}
	made := 0
	err := s.read(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		for made = range 10 {
			if _, err := tx.Exec(ctx, "select pg_sleep(1)"); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, errTookTooLong) || made > int((readBudget+graceOfServer)/time.Second) {
		t.Errorf("it made %d statements and ended with %v", made, err)
	}
}

func TestPageChangesNothingWhateverItCalls(t *testing.T) {
	t.Parallel()
	s := &session{pool: parleytest.Database(t)}
	err := s.read(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "select parley.create_queue('made')")
		return err
	})
	if status, _ := describe(err); err == nil || status != 422 {
		t.Errorf("it ended with %d: %v", status, err)
	}
}
