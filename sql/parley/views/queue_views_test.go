package views_test

import (
	"fmt"
	"slices"
	"strconv"
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

// pagesOf reads messages page by page, each behind the last message of the one before.
func pagesOf(b *sqltest.Broker, size int, call string, arguments ...any) (all []string) {
	b.Helper()
	read := func(after string) []sqltest.Message {
		return b.Messages("select * from parley.peek('Answering', "+strconv.Itoa(size)+call+after+")", arguments...)
	}
	for page := read(""); len(page) > 0; {
		last := page[len(page)-1]
		for _, m := range page {
			all = append(all, fmt.Sprintf("%d:%s:%d", m.Priority, m.MessageBody, m.MessageSequenceNumber))
		}
		after := fmt.Sprintf(", after_queuing_order => %d", last.QueuingOrder)
		if call == "" {
			after += fmt.Sprintf(", after_priority => %d", last.Priority)
		}
		page = read(after)
	}
	return all
}

// The messages stand in frames, of which one is received in part.
func TestPagesOfPeekShowEachMessageOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first := b.Dialog()
	const batch = "select parley.send_batch($1::uuid, $2, array['a', 'b', 'c', 'd', 'e'])"
	b.Exec(batch, first, sqltest.Request)
	b.Exec("select parley.create_broker_priority('High', local_service_name => '//test/Answerer', priority_level => 9)")
	second := b.Dialog()
	b.Exec(batch, second, sqltest.Request)
	b.Exec(batch, first, sqltest.Request)
	b.Send(second, sqltest.Request, "f")
	b.Messages("select * from parley.receive('Answering', 2, conversation_handle => $1)", b.FarHandle(first))
	want := []string{
		"9:a:0", "9:b:1", "9:c:2", "9:d:3", "9:e:4", "9:f:5", "5:c:2", "5:d:3", "5:e:4", "5:a:5", "5:b:6", "5:c:7", "5:d:8", "5:e:9",
	}
	for size := 1; size <= len(want)+1; size++ {
		if got := pagesOf(b, size, ""); !slices.Equal(got, want) {
			t.Errorf("pages of %d show %q, want %q", size, got, want)
		}
		got := pagesOf(b, size, ", conversation_handle => $1", b.FarHandle(first))
		if !slices.Equal(got, want[6:]) {
			t.Errorf("pages of %d of the conversation show %q, want %q", size, got, want[6:])
		}
	}
}
