package pages

import (
	"os"
	"strings"
	"testing"
)

const jobQueues = "docs/reference/job-queues.md"

// The rows of the feature table of the public harness that one can have or not.
var harnessRows = []string{
	"Bulk insert", "Priorities, with ageing", "Retries with back-off", "Cron, scheduled", "Dead letters", "Unique, deduplication",
	"Rate limits of a queue", "Callbacks, external waits", "Console",
}

// The table of features has a tick in each row of the harness, and names only what there is.
func TestFeaturesOfJobQueuesAreThereAndHaveTheNamesOfTheSchema(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../" + jobQueues)
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(page), "\n## ")
	known := knownWords(t)
	for _, command := range []string{"parley", "console", "top", "claims", "parleytest"} {
		known[command] = true
	}
	ticked := map[string]bool{}
	for number, line := range strings.Split(table, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if len(cells) != 3 {
			continue
		}
		ticked[strings.TrimSpace(cells[0])] = strings.HasPrefix(cells[1], "✓")
		for _, span := range codeSpan.FindAllStringSubmatch(cells[2], -1) {
			for _, word := range wordsOf.FindAllString(span[1], -1) {
				if !known[word] {
					t.Errorf("%s:%d: %q in %q is nothing of Parley", jobQueues, number+1, word, span[1])
				}
			}
		}
	}
	for _, row := range harnessRows {
		if !ticked[row] {
			t.Errorf("%s has no tick for %s", jobQueues, row)
		}
	}
}
