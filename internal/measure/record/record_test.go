package record_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/machine"
	"github.com/parley-broker/parley/internal/measure/record"
)

func run(figures ...record.Figure) *record.Head {
	return &record.Head{
		Scenario: "drain", Settings: map[string]any{"fsync": "on"}, Machine: machine.Machine{PostgresVersion: "15.1"}, Figures: figures,
		StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Verdict: &record.Verdict{Grade: record.Pass},
	}
}

func TestLossBeyondTheNoiseIsARegression(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after record.Figure
		worse         bool
	}{
		"half the rate":                 {record.Figure{Value: 100}, record.Figure{Value: 50}, true},
		"within the least noise":        {record.Figure{Value: 100}, record.Figure{Value: 92}, false},
		"beyond it":                     {record.Figure{Value: 100}, record.Figure{Value: 88}, true},
		"within the noise of both runs": {record.Figure{Value: 100, Spread: 0.3}, record.Figure{Value: 78, Spread: 0.2}, false},
		"beyond the noise of both":      {record.Figure{Value: 100, Spread: 0.3}, record.Figure{Value: 70, Spread: 0.2}, true},
		"faster":                        {record.Figure{Value: 100}, record.Figure{Value: 200}, false},
		"a time that doubled":           {record.Figure{Value: 4, IsCost: true}, record.Figure{Value: 8, IsCost: true}, true},
		"a time that halved":            {record.Figure{Value: 4, IsCost: true}, record.Figure{Value: 2, IsCost: true}, false},
	} {
		c.before.Name, c.after.Name = "f", "f"
		got, err := record.Compare(run(c.before), run(c.after), "before.json")
		if err != nil {
			t.Fatal(err)
		}
		if worse := len(got.Regressions()) > 0; worse != c.worse {
			t.Errorf("%s: regression %v, want %v: %+v", name, worse, c.worse, got.Differences)
		}
	}
}

func TestRunsThatCannotBeComparedAreRefused(t *testing.T) {
	t.Parallel()
	one, other := run(record.Figure{Name: "a", Value: 1}), run(record.Figure{Name: "b", Value: 1})
	if _, err := record.Compare(one, other, "f"); err == nil {
		t.Error("runs without a common figure are compared")
	}
	other.Scenario = "mixed"
	if _, err := record.Compare(one, other, "f"); err == nil {
		t.Error("runs of two scenarios are compared")
	}
}

func TestComparisonNamesSettingsThatChanged(t *testing.T) {
	t.Parallel()
	before, after := run(record.Figure{Name: "a", Value: 1}), run(record.Figure{Name: "a", Value: 1})
	before.Settings["messages"] = 1e6 // as it is read
	after.Settings = map[string]any{"fsync": "off", "messages": 1_000_000}
	got, err := record.Compare(before, after, "f")
	if err != nil || !slices.Equal(got.Changed, []string{"fsync: on, now off"}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestVerdictIsTheWorstOfItsGrounds(t *testing.T) {
	t.Parallel()
	slow, lost := record.Figure{Name: "rate", Value: 10, Limit: record.Limit{AtLeast: 10}}, record.Figure{
		Name: "lost",
		Unit: record.Count, Value: 1, Limit: record.Limit{AtMost: 1},
	}
	crowd := []record.Check{{Name: record.Neighbours, State: record.Warning, Value: 80}}
	for name, c := range map[string]struct {
		checks  []record.Check
		figures []record.Figure
		want    record.Grade
	}{
		"nothing wrong": {nil, []record.Figure{
			{Value: 11, Limit: record.Limit{AtLeast: 10}},
			{Value: 9, Limit: record.Limit{AtMost: 10}},
		}, record.Pass},
		"a warning of the set-up":              {crowd, []record.Figure{{Value: 11, Limit: record.Limit{AtLeast: 10}}}, record.Warnings},
		"runs far apart":                       {nil, []record.Figure{{Value: 1, Spread: 0.5}}, record.Warnings},
		"a rate that only reaches its limit":   {nil, []record.Figure{slow}, record.Fail},
		"a rate below it on a crowded machine": {crowd, []record.Figure{slow}, record.Invalid},
		"a message lost on a crowded machine":  {crowd, []record.Figure{lost}, record.Fail},
	} {
		if got := record.Judge(c.checks, c.figures); got.Grade != c.want {
			t.Errorf("%s: %s, want %s: %v", name, got.Grade, c.want, got.Reasons)
		}
	}
}

func TestHistoryKeepsRunsAndSkipsWhatWasCutOff(t *testing.T) {
	t.Parallel()
	h := record.History{Path: filepath.Join(t.TempDir(), "new", "history.jsonl")}
	if runs, err := h.Runs(); err != nil || len(runs) != 0 {
		t.Fatalf("%v, %v", runs, err)
	}
	for _, value := range []float64{1, 2} {
		if err := h.Add(run(record.Figure{Name: "a", Value: value})); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.OpenFile(h.Path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.WriteString(`{"scenario":"dra`)
	_ = file.Close()
	runs, err := h.Runs()
	if err != nil || len(runs) != 2 || runs[1].Figures[0].Value != 2 {
		t.Errorf("%+v, %v", runs, err)
	}
	// A run that is added behind it is no part of it.
	if err := h.Add(run(record.Figure{Name: "a", Value: 3})); err != nil {
		t.Fatal(err)
	}
	if runs, err = h.Runs(); err != nil || len(runs) != 3 || runs[2].Figures[0].Value != 3 {
		t.Errorf("after a line that was cut off %+v, %v", runs, err)
	}
}

func TestFiguresAsCSV(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	if err := run(record.Figure{Name: `a "b", c`, Unit: "ms", Value: 1.5, Runs: []float64{1, 2}, Published: 3}).WriteCSV(&text); err != nil {
		t.Fatal(err)
	}
	const want = `drain,2026-01-02T03:04:05Z,,15.1,"a ""b"", c",ms,1.5,0,3,0,0,1 2`
	if lines := strings.Split(text.String(), "\n"); len(lines) != 3 || lines[1] != want {
		t.Errorf("got %q", lines)
	}
}

func TestNumbersAreAsLongAsTheyAreWorth(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]string{
		0: "0", 0.125: "0.12", 9.5: "9.50", 12.34: "12.3", 123.4: "123", 1234: "1,234", 1234567: "1,234,567", -1234: "-1,234", -12.34: "-12.3",
	} {
		if got := record.Number(value); got != want {
			t.Errorf("%v is %q, want %q", value, got, want)
		}
	}
}
