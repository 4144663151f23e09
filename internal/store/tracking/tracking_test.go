package tracking_test

import (
	"testing"
	"time"

	trackingstore "github.com/parley-broker/parley/internal/store/tracking"
	"github.com/parley-broker/parley/parleytest"
)

func TestEventsAreAppended(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	if _, err := pool.Exec(t.Context(), "select parley_store.add_system('mail')"); err != nil {
		t.Fatal(err)
	}
	err := trackingstore.Append(t.Context(), pool, "mail", []trackingstore.Event{
		{Event: "RECEIVE", Source: "SMTP", MessageID: "m", Recipients: []string{"a@x", "b@x"}, Fields: map[string]any{"bytes": 5}},
		{Event: "SEND", MessageID: "m", At: time.Now()},
	})
	if err != nil {
		t.Fatal(err)
	}
	var events string
	err = pool.QueryRow(t.Context(), `
		select string_agg(event || array_to_string(recipients, ',') || coalesce(fields ->> 'bytes', ''), ' ' order by event)
		from parley_store.tracking where message_id = 'm'`).Scan(&events)
	if err != nil || events != "RECEIVEa@x,b@x5 SEND" {
		t.Errorf("tracked %q, %v", events, err)
	}
}
