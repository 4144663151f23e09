package publish_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/publish"
	"github.com/parley-broker/parley/internal/measure/record"
)

// The pages and the picture show the run that is kept beside them: after a change of how they show it, or of the run, the command of
// docs/reference/benchmarks.md writes them anew.
func TestPagesShowTheRunThatIsKept(t *testing.T) {
	t.Parallel()
	repository := filepath.Join("..", "..", "..")
	files, err := publish.Files(repository)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		is, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(is, want) {
			t.Errorf("%s does not show the runs of docs/reference/runs", name)
		}
	}
	for name, atLeast := range map[string]int{"README.md": 3, "docs/reference/performance.md": 3} {
		if rows := bytes.Count(files[name], []byte("| Parley, ")); rows < atLeast-1 {
			t.Errorf("%s has %d rows of Parley", name, rows)
		}
	}
}

// A run of any scenario becomes a table between the marks of its section, with what each result is compared with beside it; the page keeps
// the rest. A page without the marks is refused.
func TestRunBecomesTheTableOfItsSection(t *testing.T) {
	t.Parallel()
	repository := t.TempDir()
	page := filepath.Join(repository, "docs", "reference", "performance.md")
	if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
		t.Fatal(err)
	}
	run := publish.Run{Command: "parley bench send --duration=1s"}
	run.Scenario = "send"
	run.StartedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run.Machine.CPU, run.Machine.Cores, run.Machine.PostgresVersion = "A CPU", 8, "18.1 (Debian)"
	run.Settings = map[string]any{"fsync": "on", "synchronous_commit": "on", "repeat": 3, "duration_seconds": 1.0, "warm_up_seconds": 0.5, "messages": 100}
	run.Setup = []record.Check{{Name: record.Neighbours, Text: "others use 1% of the processors"}}
	run.Results = []bench.Result{
		{Variant: "many", System: "parley", Sessions: 16, Size: 100, MessagesPerSecond: 8810, Spread: 0.1},
		{Variant: "many", System: "insert", Sessions: 16, Size: 100, MessagesPerSecond: 12_545, Spread: 0.2},
		{Variant: "steps", System: "parley", Operation: "steps_1", Sessions: 3, Size: 100, MessagesPerSecond: 50},
		{Variant: "steps", System: "parley", Operation: "steps_2", Base: "steps_1", Sessions: 3, Size: 100, MessagesPerSecond: 25},
	}
	run.Ratios = map[string]float64{"many:parley/insert": 8810.0 / 12_545, "steps:steps_2/steps_1": 0.5}
	const before, after = "# Performance\n\nText.\n\n", "\nMore text.\n"
	if err := os.WriteFile(page, []byte(before+after), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := publish.Write(repository, run); !errors.Is(err, publish.ErrNoMarks) {
		t.Errorf("a page without marks is taken, with %v", err)
	}
	marked := before + "<!-- send: written by bench send -->\n<!-- send: end -->\n" + after
	if err := os.WriteFile(page, []byte(marked), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time in place of the first
		if err := publish.Write(repository, run); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const want = before + `<!-- send: written by bench send -->

| Variant | Sessions | Bytes | A second | Spread | Beside it | Ratio |
| --- | --- | --- | --- | --- | --- | --- |
` + "| `many` | 16 | 100 | 8,810/s | 10% | 12,545/s | 0.70 |\n| `steps steps_2` | 3 | 100 | 25.0/s | 0% | 50.0/s | 0.50 |\n" + `
One run of 2 January 2026, all in turns, the median of 3: A CPU, 8 cores, PostgreSQL 18.1, ` + "`fsync`" + ` on,
` + "`synchronous_commit`" + ` on, runs of 1 s after 0.5 s of warm-up, 100 messages where they wait. At its beginning: others
use 1% of the processors. Ratios count. The command: ` + "`parley bench send --duration=1s`" + `.

<!-- send: end -->
` + after
	if string(text) != want {
		t.Errorf("the page is\n%s", text)
	}
}
