package console

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/parleytest"
)

// The order of this list takes long of many rows, and no time where it is left out.
var slow = listing{
	path: "/slow", title: "Slow", from: "(select g.n from generate_series(1, 150) as g (n)) as x",
	columns: []column{{"N", "x.n", number, ""}}, key: []string{"x.n"},
	filters: []filter{{name: "most", label: "Most", where: "x.n <= ?::integer"}},
	order: []sorting{{
		"case when current_setting('enable_sort') = 'off' then (select x.n from pg_sleep(0.02 + 0 * x.n)) else x.n end", "integer", true,
	}},
}

func TestListThatTakesTooLongToOrderShowsSomeRowsAndSaysSo(t *testing.T) {
	t.Parallel()
	s := &session{pool: parleytest.Database(t)}
	for most, isUnordered := range map[string]bool{"150": true, "60": false, "3": false} {
		err := s.read(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			shown, err := slow.read(ctx, tx, url.Values{"most": {most}})
			if err != nil {
				return err
			}
			if len(shown.Rows) == 0 || shown.IsUnordered != isUnordered || shown.Pages.Next != "" {
				t.Errorf("of %s there are %d rows, unordered %t, and the next page is %q", most, len(shown.Rows), shown.IsUnordered, shown.Pages.Next)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestActionOnAllOfAListThatTakesTooLongToOrderFindsThem(t *testing.T) {
	t.Parallel()
	s := &session{pool: parleytest.Database(t)}
	err := s.read(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		keys, isMore, err := slow.keys(ctx, tx, url.Values{"all": {"1"}}, url.Values{})
		if err == nil && (len(keys) != 150 || isMore) {
			t.Errorf("there are %d keys, and more: %t", len(keys), isMore)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A page names a conversation by any of its three names, and finds it by an index.
func TestSidesOfAConversationAreFoundByEachOfItsNames(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	var handle, id, group parley.UUID
	for _, statement := range []string{
		"select parley.create_queue('shop'), parley.create_service('Shop', 'shop', array['DEFAULT'])",
		"select parley.begin_and_send('Shop', 'Shop', 'DEFAULT', n::text) from generate_series(1, 2000) as n", "analyze",
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	err := pool.QueryRow(t.Context(), `
		select conversation_handle, conversation_id, conversation_group_id from parley.conversation_endpoints where is_initiator = 0 limit 1`).
		Scan(&handle, &id, &group)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{pool: pool}
	for name, wanted := range map[parley.UUID]int{handle: 1, id: 2, group: 1} {
		err := s.read(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, "explain "+sidesStatement, name)
			if err != nil {
				return err
			}
			plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if text := strings.Join(plan, "\n"); strings.Contains(text, "Seq Scan on _p_endpoint") {
				t.Errorf("all sides are read:\n%s", text)
			}
			if err != nil {
				return err
			}
			sides, err := readSides(ctx, tx, name)
			if len(sides) != wanted {
				t.Errorf("%s has %d sides, want %d", name, len(sides), wanted)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestCountOfWhatIsSetAsideSaysHowFarItWasCounted(t *testing.T) {
	t.Parallel()
	all, some := setAsideCounts{byQueue: map[string]int64{"few": 7}}, setAsideCounts{byQueue: map[string]int64{"many": 10_000}, isMore: true}
	for wanted, got := range map[string]setAsideCount{
		"7": all.of("few"), "0": all.of("none"), "≥ 10,000": some.of("many"), "≥ 0": some.of("none"), "not counted": setAsideCounts{}.of("few"),
		"3": countOfConversations(3), "≥ 10,001": countOfConversations(setAsideMost + 1),
	} {
		if got.String() != wanted || got.IsAny() != (wanted != "0") {
			t.Errorf("%+v is shown as %s, want %s", got, got, wanted)
		}
	}
}

func TestStatementsOfAPageAreNotCompiled(t *testing.T) {
	t.Parallel()
	s := &session{pool: parleytest.Database(t)}
	var jit string
	err := s.read(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "select current_setting('jit')").Scan(&jit)
	})
	if err != nil || jit != "off" {
		t.Errorf("jit is %s: %v", jit, err)
	}
}
