package console_test

import (
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/console"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

var (
	nextLink  = regexp.MustCompile(`<a href="([^"]+)" rel="next">`)
	rowsOfKey = regexp.MustCompile(`<input type="checkbox" name="key" value="([^"]+)"`)
	queueLink = regexp.MustCompile(`<td><a href="(/queues/[^"]+)">`)
)

// pages follows the links of a list to its end and gives what it shows, page for page.
func (v *visitor) pages(path string, shown *regexp.Regexp, between func()) (pages [][]string) {
	v.t.Helper()
	for path != "" {
		status, body := v.get(path)
		if status != http.StatusOK {
			v.t.Fatalf("%s was answered with %d: %s", path, status, body)
		}
		var page []string
		for _, found := range shown.FindAllStringSubmatch(body, -1) {
			page = append(page, found[1])
		}
		pages = append(pages, page)
		if len(pages) > 1 && !strings.Contains(body, "From the beginning") {
			v.t.Errorf("%s does not lead to the beginning", path)
		}
		if len(pages) > 50 {
			v.t.Fatalf("%s leads to more pages than there are", path)
		}
		path = ""
		if next := nextLink.FindStringSubmatch(body); next != nil {
			path = html.UnescapeString(next[1])
		}
		between()
	}
	return pages
}

func TestListIsPagedToItsEndAndShowsEachRowOnce(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	exec(t, pool, "select parley.create_queue('others', kind => 'SIMPLE')")
	// Many are due at the same time, so that a page ends within them.
	exec(t, pool, `select parley.put('others', 'x'::text, key => 'k', deliver_at => '2100-01-01'::timestamptz + g / 70 * interval '1 hour')
		from generate_series(1, 250) as g`)
	exec(t, pool, `select parley.schedule('s' || g, 'others', 'x', every => '1 day') from generate_series(1, 201) as g`)
	exec(t, pool, `select parley.begin_dialog('//customer', '//shop', encryption => false) from generate_series(1, 120)`)
	v := enter(t, pool, "", false)
	for path, wanted := range map[string][]int{"/delayed?key=k&queue=others": {100, 100, 50}, "/schedules": {100, 100, 1}, "/conversations?service=//customer": {100, 21}} {
		pages := v.pages(path, rowsOfKey, func() {})
		var lengths []int
		for _, page := range pages {
			lengths = append(lengths, len(page))
		}
		keys := slices.Concat(pages...)
		slices.Sort(keys)
		if !slices.Equal(lengths, wanted) || len(slices.Compact(keys)) != len(slices.Concat(pages...)) {
			t.Errorf("%s has pages of %v rows, or a row twice", path, lengths)
		}
	}
	// Rows that go before a page is shown leave no other row out, and "all" is more than the page.
	pages := v.pages("/delayed?queue=others", rowsOfKey, func() {
		exec(t, pool, `select parley.withdraw_message('others', d.delayed_id) from (
			select x.delayed_id from parley.delayed_messages as x where x.queue_name = 'others' order by x.due_at, x.delayed_id limit 100) as d`)
	})
	if n := len(slices.Concat(pages...)); n != 250 {
		t.Errorf("%d rows were shown while rows went", n)
	}
}

func TestAllThatTheFiltersKeepIsMoreThanThePage(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	exec(t, pool, `select parley.put('jobs', 'x'::text, key => 'k', deliver_at => '2100-01-01'::timestamptz) from generate_series(1, 250)`)
	v := enter(t, pool, "", false)
	_, body := v.get("/delayed?key=k")
	next := nextLink.FindStringSubmatch(body)
	if next == nil {
		t.Fatalf("there is no second page: %s", body)
	}
	if _, question := v.post(html.UnescapeString(next[1]), map[string][]string{"action": {"now"}, "all": {"1"}}); !strings.Contains(question, "these 250") {
		t.Errorf("the question is about others: %s", question)
	}
}

func TestListOfTheIntegrationEngineIsPagedByItsFunction(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	for range 101 {
		f.PublishFlow("nobody", "{}")
	}
	v := enter(t, f.Pool, "", false)
	if pages := v.pages("/flow/suspended?stage=ROUTE", rowsOfKey, func() {}); len(pages) != 2 || len(pages[1]) != 1 {
		t.Errorf("the pages are %v", pages)
	}
	message := regexp.MustCompile(`<td class="code"><a href="(/flow/messages/\d+)">`)
	pages := v.pages("/flow/messages?message_type=nobody", message, func() {})
	if len(pages) != 2 || len(pages[1]) != 1 || slices.Contains(pages[0], pages[1][0]) {
		t.Errorf("the pages are %v", pages)
	}
}

func TestQueuesArePaged(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	exec(t, pool, "select parley.create_queue('q' || g, kind => 'SIMPLE') from generate_series(1, 130) as g")
	pages := enter(t, pool, "", false).pages("/queues", queueLink, func() {})
	all := slices.Concat(pages...)
	slices.Sort(all)
	if len(pages) != 2 || len(pages[0]) != 100 || len(all) < 130 || len(slices.Compact(all)) != len(all) {
		t.Errorf("%d pages show %d queues", len(pages), len(all))
	}
}

func TestMessagesOfAQueueArePaged(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	exec(t, pool, "select parley.create_queue('others', kind => 'SIMPLE')")
	exec(t, pool, "select parley.put('others', 'x', priority => 4 + g % 3) from generate_series(1, 120) as g")
	exec(t, pool, "select parley.begin_and_send('//customer', '//shop', 'DEFAULT', 'x') from generate_series(1, 59)")
	v := enter(t, pool, "", false)
	message := regexp.MustCompile(`<details id="message-(\d+)">`)
	for path, wanted := range map[string][]int{"/queues/others": {50, 50, 20}, "/queues/orders": {50, 10}} {
		var lengths []int
		pages := v.pages(path, message, func() {})
		for _, page := range pages {
			lengths = append(lengths, len(page))
		}
		all := slices.Concat(pages...)
		slices.Sort(all)
		if count := len(all); !slices.Equal(lengths, wanted) || len(slices.Compact(all)) != count {
			t.Errorf("%s has pages of %v messages, or a message twice", path, lengths)
		}
	}
	if status, _ := v.get("/queues/others?after=x"); status != http.StatusBadRequest {
		t.Errorf("a place that is none was answered with %d", status)
	}
}

func TestEachListIsReadBehindAPlaceAndRefusesOneThatIsNone(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	shop(t, pool)
	v := enter(t, pool, "", false)
	for _, path := range console.PathsBehindAPlace() {
		if status, body := v.get(path); status != http.StatusOK {
			t.Errorf("%s was answered with %d: %s", path, status, body)
		}
	}
	for _, path := range []string{"/delayed?after=x", "/delayed?after=[]", `/delayed?after=["1"]`, "/flow/suspended?after=7"} {
		if status, _ := v.get(path); status != http.StatusBadRequest {
			t.Errorf("%s was answered with %d", path, status)
		}
	}
}
