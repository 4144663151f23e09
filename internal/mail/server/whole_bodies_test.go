package server_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Of a body of which the database has a part, nothing gets to anybody; when it is all there again everybody gets all of it. If it stays so,
// its sender gets a report, and the reports behind that one are made too.
func TestNoPartOfABodyGetsToAnybody(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley_mail.apply('{"mailbox": {"sender@example.org": {"store": "local"}}}')`)
	h.exec(`select parley_mail.send('sender@example.org', array['x@c.example', 'ann@example.org', 'orders@example.org'], 'long', repeat(repeat('x', 70) || E'\\n', 20000))`)
	h.exec("select parley_mail._p_categorize()")
	const size = "select max(size)::text from parley_mail._p_message"
	h.exec("create table public.missing as select * from parley_store._p_content_chunk where number = 1")
	h.exec("delete from parley_store._p_content_chunk where number = 1")
	h.start()
	h.await("an attempt for each", func() bool {
		return h.text("select count(*)::text from parley_mail.waiting_recipients where attempts > 0") == "3"
	})
	inbox := func(who string) []string {
		// Readers of a Maildir do not look into tmp, where a message stands while it is written.
		found, err := filepath.Glob(filepath.Join(h.mailbox, who, "[nc]*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if rows := h.text("select count(*)::text from public.orders"); len(h.relayed()) > 0 || len(inbox("ann")) > 0 || rows != "0" {
		t.Errorf("the relay has %d messages, the mailbox %d, the table %s", len(h.relayed()), len(inbox("ann")), rows)
	}
	if got := h.text("select string_agg(distinct error, '; ') from (select last_error as error from parley_store.work_items) as w"); !strings.Contains(got, "PS010") {
		t.Errorf("they say %s", got)
	}
	whole, _ := strconv.Atoi(h.text(size))
	h.exec("insert into parley_store._p_content_chunk select * from public.missing")
	h.exec("select parley_mail.retry_messages('{}')")
	h.await("all of them", func() bool {
		return len(h.relayed()) == 1 && len(inbox("ann")) == 1 && h.text("select count(*)::text from public.orders") == "1"
	})
	h.await("the end", h.empty)
	content, err := os.ReadFile(inbox("ann")[0])
	if err != nil {
		t.Fatal(err)
	}
	if whole < 1_400_000 || len(h.relayed()[0]) < whole || len(content)+strings.Count(string(content), "\n") < whole {
		t.Errorf("of %d bytes the relay has %d, and the mailbox %d", whole, len(h.relayed()[0]), len(content))
	}

	// One that never comes back: it is gone before the daemon can see the message.
	h.exec(`do $$ begin
		perform parley_mail.send('sender@example.org', array['y@c.example'], 'lost', repeat(repeat('x', 70) || E'\\n', 20000));
		perform parley_mail._p_categorize();
		delete from parley_store._p_content_chunk where number = 1;
		perform parley_mail.remove_messages('{}');
	end $$`)
	h.await("its report", func() bool { return len(inbox("sender")) == 1 })
	if report, err := os.ReadFile(inbox("sender")[0]); err != nil || !strings.Contains(string(report), "Comments: the message cannot be read any more") {
		t.Errorf("the report is %.3000s, %v", report, err)
	}
	h.await("the end", h.empty)
}
