package script_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/script"
)

// A line that is typed ends a batch where it says GO, outside of strings; RESET drops what is not run, and EXIT ends the feed.
func TestTypedLinesBecomeBatches(t *testing.T) {
	t.Parallel()
	var ran []string
	feed := script.NewFeed(script.Options{}, func(b *script.Batch) bool {
		ran = append(ran, b.Text)
		return true
	})
	for _, line := range []string{"PRINT 'a", "GO", "'", "go", "PRINT 'dropped'", "RESET", ":setvar x 1", "PRINT '$(x)'", "GO", "PRINT 'left'"} {
		if err := feed.Add(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	if feed.Lines() != 1 || feed.HasEnded() {
		t.Errorf("%d lines wait, ended %v", feed.Lines(), feed.HasEnded())
	}
	if err := feed.Add(":nosuch"); err == nil || feed.Lines() != 1 {
		t.Errorf("a command that is none gives %v and leaves %d lines", err, feed.Lines())
	}
	feed.Reset()
	if err := feed.Add("exit"); err != nil || !feed.HasEnded() || feed.Lines() != 0 {
		t.Errorf("EXIT gives %v", err)
	}
	if got := strings.Join(ran, "|"); got != "PRINT 'a\nGO\n'\n|\nPRINT '1'\n" {
		t.Errorf("%q", got)
	}
}
