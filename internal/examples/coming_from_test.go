package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// comingFrom are the programs that have the calls of the page for those who come from other queues, by language.
var comingFrom = map[string]string{"python": "coming_from.py", "node": "coming_from.mjs", "java": "ComingFrom.java"}

const comingFromQueue = `
	select parley.create_queue('jobs', kind => 'SIMPLE'), parley.keep_finished('jobs', '1 hour');
	create table resized (picture text)`

var codeSpan = regexp.MustCompile("`([^`]+)`")

// callsOfThePage gives the calls of each language in the section of the page that has them.
func callsOfThePage(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/guides/coming-from.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## In Python, Node and Java\n")
	if !ok {
		t.Fatal("the page has no section of the clients")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	calls := map[string][]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 4 {
			continue
		}
		for i, name := range []string{"python", "node", "java"} {
			for _, span := range codeSpan.FindAllStringSubmatch(cells[i+1], -1) {
				calls[name] = append(calls[name], span[1])
			}
		}
	}
	return calls
}

// The page shows of each language only calls of a program that runs (see callsForThoseWhoComeRun).
func TestCallsOfTheClientsForThoseWhoComeFromOtherQueuesAreThoseThatRun(t *testing.T) {
	t.Parallel()
	calls := callsOfThePage(t)
	for name, file := range comingFrom {
		program, err := os.ReadFile(filepath.Join("testdata", name, "coming_from", file))
		if err != nil {
			t.Fatal(err)
		}
		if len(calls[name]) < 15 {
			t.Errorf("the page has %d calls of %s", len(calls[name]), name)
		}
		for _, call := range calls[name] {
			if !strings.Contains(string(program), call) {
				t.Errorf("the program of %s has no %s", name, call)
			}
		}
	}
}

// callsForThoseWhoComeRun runs the calls of the page. The program itself checks what each answers.
func (w *workspace) callsForThoseWhoComeRun(t *testing.T, c client, name string) {
	if _, err := w.db.Exec(t.Context(), comingFromQueue); err != nil {
		t.Fatal(err)
	}
	w.complete(t, c.program(w.cache, filepath.Join(w.folder, "coming_from"), comingFrom[name]), parleytest.Patience)
	// Of the two that wait, and of the two that are set aside, the worker has decided about one each.
	for query, want := range map[string]int{
		"select count(*) from resized": 2, "select count(*) from parley.finished_messages": 4,
		"select count(*) from parley.failing_messages": 2, "select count(*) from parley.set_aside_messages": 2,
		"select count(*) from parley.peek_messages('jobs')": 0,
	} {
		var got int
		if ask(t, w.db, query, &got); got != want {
			t.Errorf("%s gives %d, want %d", query, got, want)
		}
	}
	if _, err := w.db.Exec(t.Context(), "drop table resized; select parley.drop_queue('jobs', force => true)"); err != nil {
		t.Fatal(err)
	}
}
