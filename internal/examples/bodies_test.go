package examples_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// The values that a driver sends with the calls that docs/clients names: a text, bytes, a JSON object and a JSON array, and lists of texts,
// bytes and JSON.
var kinds = []string{"chair", `\x00ff`, `{"seats": [1, 2]}`, "[1, 2]", "a", "b", `\x00`, `\xff`, `{"a": 1}`, "[2]"}

// Two drivers of a language do the same, one after the other.
var drivers = map[string]int{"python": 2, "node": 2}

// The value that arrives when it is given to the wrong call, and no server can distinguish it from one that a program may want to send.
// docs/clients names each of these with the right call. The versions of the drivers that are pinned do this; when one does better its page
// has a line too many.
var arriving = map[string][]string{
	"node": {
		`{"1","2"}`, `{\\x6162,\\x00ff}`, "{}", `\x6162`, `\x00ff`, "ab", // node-postgres; the fourth and fifth are one send_batch
		"[object Object]", "1,2", `\x0000`, `\x0000`, `"{\"a\":1}"`, "[object Object]", // postgres.js
	},
	"python": {"{a,b}", "(a,b)", "{}", "ab"},
	"ruby":   {`["a", "b"]`, "none", "none", "ab"}, // send_batch of a Hash sends nothing
	"php":    {"ab", "Array", "none", "ab", "ab"},
}

func (w *workspace) sendsEachKindOfBody(t *testing.T, l language, name string) {
	if l.bodies == nil {
		t.Skip("the programs have none")
	}
	w.complete(t, l.bodies(w.cache), parleytest.Patience)
	got, want := w.received(t), slices.Repeat(kinds, max(1, drivers[name]))
	// A list of JSON goes as texts, which arrive as the program wrote them: with a blank behind the colon or without.
	for i := range got {
		if got[i] == `{"a":1}` {
			got[i] = `{"a": 1}`
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("bodies sends %q, want %q", got, want)
	}
	if l.mistakes == nil {
		return
	}
	w.complete(t, l.mistakes(w.cache), parleytest.Patience)
	if got := w.received(t); !slices.Equal(got, arriving[name]) {
		t.Errorf("mistakes sends %q, and %q is what the pages say", got, arriving[name])
	}
}

// received takes all that the warehouse has to receive: texts, and bytes that are none in PostgreSQL's notation.
func (w *workspace) received(t *testing.T) []string {
	t.Helper()
	var all []string
	for {
		var some []string
		ask(t, w.db, `
			select coalesce(array_agg(coalesce(
			  case when message_body is null then 'none' when parley.body_text(message_body) !~ '[\x01-\x1f]' then parley.body_text(message_body) end,
			  message_body::text) order by queuing_order), '{}')
			from parley.receive('warehouse_queue')`, &some)
		if len(some) == 0 {
			return all
		}
		all = append(all, some...)
	}
}

// A message that is no order fails each time. The messages in front of it are packed all the same, it alone is set aside, with the reason,
// and the warehouse goes on with others.
func (w *workspace) setsAsideWhatCannotBePacked(t *testing.T) {
	t.Helper()
	var bad string
	ask(t, w.db, "select parley.begin_dialog('shop', 'warehouse')", &bad)
	statements := []string{
		"select parley.send_batch($1, 'DEFAULT', '{101,102,103,no number,105}')",
		"select parley.send(parley.begin_dialog('shop', 'warehouse'), 'DEFAULT', '201') where $1::uuid is not null",
	}
	for _, statement := range statements {
		if _, err := w.db.Exec(t.Context(), statement, bad); err != nil {
			t.Fatal(err)
		}
	}
	parleytest.Until(t, "a conversation is set aside", func() (isSetAside bool) {
		ask(t, w.db, "select exists (select from parley.poison_conversations)", &isSetAside)
		return isSetAside
	})
	var sequence int
	var reason *string
	ask(t, w.db, "select message_sequence_number from parley.poison_conversations", &sequence)
	ask(t, w.db, "select error from parley.poison_conversations", &reason)
	if sequence != 3 || reason == nil {
		t.Errorf("message %d is set aside, with reason %v, want message 3 with one", sequence, reason)
	}
	parleytest.Until(t, "the others are packed", func() (arePacked bool) {
		ask(t, w.db, "select (select count(*) from parcels where order_id in (101, 102, 103, 201)) = 4", &arePacked)
		return arePacked
	})
	var parcels int
	ask(t, w.db, "with gone as (delete from parcels where order_id > 100 returning 1) select count(*) from gone", &parcels)
	if parcels != 4 {
		t.Errorf("%d parcels of the others, want 4", parcels)
	}
}

// drain receives what nobody reads any more, and ends its conversations.
func drain(t *testing.T, db *pgx.Conn, queue string) {
	t.Helper()
	parleytest.Until(t, "the queue is empty", func() bool {
		var received int
		ask(t, db, `
			select count(parley.end_conversation(r.handle)) + count(*)
			from (select distinct conversation_handle as handle from parley.receive('`+queue+`')) as r`, &received)
		return received == 0
	})
}
