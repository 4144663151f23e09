package console

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// The name of a state is a call of a function: the server counts how often it is made.
func TestColumnsOfConversationsAreComputedOfThePageAlone(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	for _, statement := range []string{
		"select parley.create_queue('shop'), parley.create_service('Shop', 'shop', array['DEFAULT'])",
		"select parley.begin_dialog('Shop', 'Shop', encryption => false) from generate_series(1, 300)",
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	s := &session{pool: pool}
	var calls int
	err := s.read(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select set_config('track_functions', 'all', true)"); err != nil {
			return err
		}
		shown, err := conversations.read(ctx, tx, url.Values{})
		if err != nil {
			return err
		}
		if len(shown.Rows) != rowsMost || shown.Pages.Next == "" {
			t.Errorf("the page has %d rows, and the next is %q", len(shown.Rows), shown.Pages.Next)
		}
		return tx.QueryRow(ctx, "select coalesce(sum(f.calls), 0)::integer from pg_stat_xact_user_functions as f where f.funcname = '_p_state_name'").
			Scan(&calls)
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls == 0 || calls > 2*(rowsMost+1) {
		t.Errorf("the state of %d conversations is named for a page of %d", calls, rowsMost)
	}
}
