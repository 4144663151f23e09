package sql_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestQueueViewShowsWhatWaits(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator := b.dialog()
	b.send(initiator, request, "1")
	b.exec("select parley.send_batch($1::uuid, '//test/Request', array['2', '3'])", initiator)
	b.end(initiator)
	got := b.messages(`select * from parley_queue."Answering" order by queuing_order`)
	if !slices.Equal(typesOf(got), []string{request, request, request, endDialog}) {
		t.Errorf("the view shows %q", typesOf(got))
	}
	for i, m := range got {
		if m.Status != 1 || m.MessageSequenceNumber != int64(i) {
			t.Errorf("message %d is %+v", i, m)
		}
	}
}

// Reading the view takes no lock and waits for none, and readers do not notice it.
func TestReadingTheViewOfAQueueDisturbsNoReader(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator := b.dialog()
	b.send(initiator, request, "x")
	looker := b.begin()
	equal(looker, 1, `select count(*) from parley_queue."Answering"`)
	reader := b.begin()
	if got := reader.bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
	equal(looker, 1, `select count(*) from parley_queue."Answering"`)
	b.send(initiator, request, "y")
	equal(looker, 2, "select count(*) from parley.queue_contents('Answering')")
	reader.commit()
	equal(looker, 1, "select count(*) from parley.queue_contents('Answering')")
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"y"}) {
		t.Errorf("received %q", got)
	}
}

func TestQueueViewIsReadOnly(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.send(b.dialog(), request, "x")
	for _, statement := range []string{
		`insert into parley_queue."Answering" (status) values (1)`,
		`update parley_queue."Answering" set status = 0`,
		`delete from parley_queue."Answering"`,
		`truncate parley_queue."Answering"`,
	} {
		if err := b.connection().try(statement); err == nil {
			t.Errorf("%s was allowed", statement)
		}
	}
}

func TestQueueViewHasTheQueuesName(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	for queue, view := range map[string]string{
		"Plain":                         "Plain",
		"[with blank]":                  "with blank",
		"sales.Orders":                  "sales.Orders",
		"[sales.Orders]":                "[sales.Orders]",
		`"a ""quoted"" name"`:           `[a "quoted" name]`,
		"it's":                          "it's",
		"100%":                          "100%",
		`back\slash`:                    `back\slash`,
		"grüße 𝄞":                       "grüße 𝄞",
		"[a[b]]c]":                      "[a[b]]c]",
		"x; drop schema parley cascade": "x; drop schema parley cascade",
		"_p_message":                    "_p_message",
		strings.Repeat("x", 63):         strings.Repeat("x", 63),
	} {
		b.exec("select parley.create_queue($1)", queue)
		equal(b.session, 0, "select count(*) from parley_queue."+quote(view))
		b.exec("select parley.drop_queue($1)", queue)
		equal(b.session, false, "select exists (select from pg_views where schemaname = 'parley_queue' and viewname = $1)", view)
	}
}

// Names too long for PostgreSQL are cut between characters and end in the queue's id.
func TestQueueViewOfALongName(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	for _, name := range []string{
		strings.Repeat("x", 64), strings.Repeat("x", 128), strings.Repeat("é", 64), "x" + strings.Repeat("é", 127), "xx" + strings.Repeat("€", 126),
		strings.Repeat("𝄞", 128), "xxx" + strings.Repeat("𝄞", 125),
	} {
		id := value[int](b.session, "select parley.create_queue($1)", name)
		view := value[string](b.session, "select viewname::text from pg_views where schemaname = 'parley_queue' and viewname ~ $1", fmt.Sprintf("_%d$", id))
		if !strings.HasPrefix(name, strings.TrimSuffix(view, fmt.Sprintf("_%d", id))) || len(view) > 63 {
			t.Errorf("the view of %s is called %s", name, view)
		}
		equal(b.session, 0, "select count(*) from parley_queue."+quote(view))
		b.exec("select parley.drop_queue($1)", name)
	}
}

func TestPeekShowsTheFirstMessagesAndTakesNone(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first, second := b.dialog(), b.dialog()
	b.send(first, request, "1")
	b.send(second, request, "2")
	b.send(first, request, "3")
	for range 2 {
		if got := bodiesOf(b.messages("select * from parley.peek('Answering', 2)")); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("saw %q", got)
		}
	}
	if got := bodiesOf(b.messages("select * from parley.peek('Answering', conversation_handle => $1)", b.farHandle(first))); !slices.Equal(got, []string{"1", "3"}) {
		t.Errorf("saw %q", got)
	}
}
