package views_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestQueueViewShowsWhatWaits(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "1")
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', array['2', '3'])", initiator)
	b.End(initiator)
	got := b.Messages(`select * from parley_queue."Answering" order by queuing_order`)
	if !slices.Equal(sqltest.TypesOf(got), []string{sqltest.Request, sqltest.Request, sqltest.Request, sqltest.EndDialog}) {
		t.Errorf("the view shows %q", sqltest.TypesOf(got))
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
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "x")
	looker := b.Begin()
	sqltest.Equal(looker, 1, `select count(*) from parley_queue."Answering"`)
	reader := b.Begin()
	if got := reader.Bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
	sqltest.Equal(looker, 1, `select count(*) from parley_queue."Answering"`)
	b.Send(initiator, sqltest.Request, "y")
	sqltest.Equal(looker, 2, "select count(*) from parley.queue_contents('Answering')")
	reader.Commit()
	sqltest.Equal(looker, 1, "select count(*) from parley.queue_contents('Answering')")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"y"}) {
		t.Errorf("received %q", got)
	}
}

func TestQueueViewIsReadOnly(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Send(b.Dialog(), sqltest.Request, "x")
	for _, statement := range []string{
		`insert into parley_queue."Answering" (status) values (1)`,
		`update parley_queue."Answering" set status = 0`,
		`delete from parley_queue."Answering"`,
		`truncate parley_queue."Answering"`,
	} {
		if err := b.Connection().Try(statement); err == nil {
			t.Errorf("%s was allowed", statement)
		}
	}
}

func TestQueueViewHasTheQueuesName(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
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
		b.Exec("select parley.create_queue($1)", queue)
		sqltest.Equal(b.Session, 0, "select count(*) from parley_queue."+sqltest.Quote(view))
		b.Exec("select parley.drop_queue($1)", queue)
		sqltest.Equal(b.Session, false, "select exists (select from pg_views where schemaname = 'parley_queue' and viewname = $1)", view)
	}
}

// Names too long for PostgreSQL are cut between characters and end in the queue's id.
func TestQueueViewOfALongName(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	for _, name := range []string{
		strings.Repeat("x", 64), strings.Repeat("x", 128), strings.Repeat("é", 64), "x" + strings.Repeat("é", 127), "xx" + strings.Repeat("€", 126),
		strings.Repeat("𝄞", 128), "xxx" + strings.Repeat("𝄞", 125),
	} {
		id := sqltest.Value[int](b.Session, "select parley.create_queue($1)", name)
		view := sqltest.Value[string](b.Session, "select viewname::text from pg_views where schemaname = 'parley_queue' and viewname ~ $1", fmt.Sprintf("_%d$", id))
		if !strings.HasPrefix(name, strings.TrimSuffix(view, fmt.Sprintf("_%d", id))) || len(view) > 63 {
			t.Errorf("the view of %s is called %s", name, view)
		}
		sqltest.Equal(b.Session, 0, "select count(*) from parley_queue."+sqltest.Quote(view))
		b.Exec("select parley.drop_queue($1)", name)
	}
}

func TestPeekShowsTheFirstMessagesAndTakesNone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first, second := b.Dialog(), b.Dialog()
	b.Send(first, sqltest.Request, "1")
	b.Send(second, sqltest.Request, "2")
	b.Send(first, sqltest.Request, "3")
	for range 2 {
		if got := sqltest.BodiesOf(b.Messages("select * from parley.peek('Answering', 2)")); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("saw %q", got)
		}
	}
	if got := sqltest.BodiesOf(b.Messages("select * from parley.peek('Answering', conversation_handle => $1)", b.FarHandle(first))); !slices.Equal(got, []string{"1", "3"}) {
		t.Errorf("saw %q", got)
	}
}
