package operate_test

import (
	"math"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
)

// The documented bound is a few percent; a test must not fail for bad luck.
const depthTolerance = 0.1

func TestDepthOfALongQueueIsEstimatedWell(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		prepare string // sends; handles are in table dialogs, by number 0 to 19
	}{
		{"one by one", `
			select parley.send(d.handle, 'DEFAULT', 'x'::text)
			from generate_series(1, 20000) as n join dialogs as d on d.number = n % 20`},
		{"in batches of one size", `
			select parley.send_batch(d.handle, 'DEFAULT', array['a', 'b', 'c', 'd', 'e'])
			from generate_series(1, 15000) as n join dialogs as d on d.number = n % 20`},
		{"in batches of many sizes", `
			select parley.send_batch(d.handle, 'DEFAULT', array_fill('x'::text, array[1 + hashint4(n) & 31]))
			from generate_series(1, 20000) as n join dialogs as d on d.number = n % 20`},
		{"with conversations received out of turn", `
			select parley.send(d.handle, 'DEFAULT', 'x'::text)
			from generate_series(1, 40000) as n join dialogs as d on d.number = n % 20;
			select count(*) from dialogs as d
			join parley.conversation_endpoints as i on i.conversation_handle = d.handle
			join parley.conversation_endpoints as e on e.conversation_id = i.conversation_id and e.is_initiator = 0
			cross join lateral parley.receive('shop', conversation_handle => e.conversation_handle)
			where d.number in (1, 2, 3, 7, 11, 13, 18)`},
		{"with stragglers at the front and the rest at the end", `
			select parley.send(d.handle, 'DEFAULT', 'x'::text)
			from generate_series(1, 40000) as n join dialogs as d on d.number = n % 20;
			select count(*) from dialogs as d
			join parley.conversation_endpoints as i on i.conversation_handle = d.handle
			join parley.conversation_endpoints as e on e.conversation_id = i.conversation_id and e.is_initiator = 0
			cross join lateral parley.receive('shop', conversation_handle => e.conversation_handle)
			where d.number > 0;
			select parley.send_batch(d.handle, 'DEFAULT', array['a', 'b', 'c'])
			from generate_series(1, 12000) as n join dialogs as d on d.number = n % 20`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pool, _ := fixture.Shop(t)
			beginDialogs(t, pool)
			if _, err := pool.Exec(t.Context(), c.prepare); err != nil {
				t.Fatal(err)
			}
			var exact int64
			if err := pool.QueryRow(t.Context(), "select count(*) from parley.queue_contents('shop')").Scan(&exact); err != nil {
				t.Fatal(err)
			}
			backlog := readShop(t, pool).Backlog
			if !backlog.IsEstimated {
				t.Error("a queue of more than 10,000 rows was counted")
			}
			if off := math.Abs(float64(backlog.WaitingMessages-exact)) / float64(exact); off > depthTolerance {
				t.Errorf("estimated %d, there are %d: %.1f%% off", backlog.WaitingMessages, exact, 100*off)
			}
		})
	}
}

func TestDepthOfAQueueThatWasLongIsCounted(t *testing.T) {
	t.Parallel()
	pool, handle := fixture.Shop(t)
	fixture.SendMany(t, pool, handle, 30_000)
	if _, err := pool.Exec(t.Context(), "select count(*) from parley.receive('shop', 28000)"); err != nil {
		t.Fatal(err)
	}
	if b := readShop(t, pool).Backlog; b.WaitingMessages != 2_000 || b.IsEstimated {
		t.Errorf("%d messages, estimated %v; want 2000, counted", b.WaitingMessages, b.IsEstimated)
	}
}

func beginDialogs(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), "create table dialogs (number integer primary key, handle uuid not null)"); err != nil {
		t.Fatal(err)
	}
	for number := range 20 {
		handle, err := parley.BeginDialog(t.Context(), pool, "Web", "Shop")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(t.Context(), "insert into dialogs (number, handle) values ($1, $2)", number, handle); err != nil {
			t.Fatal(err)
		}
	}
}
