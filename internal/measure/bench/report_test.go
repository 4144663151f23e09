package bench

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/parley-broker/parley/internal/measure/machine"
	"github.com/parley-broker/parley/internal/measure/record"
)

func TestRatiosCompareEachResultWithItsBase(t *testing.T) {
	t.Parallel()
	got := ratios([]Result{
		{System: "parley", Variant: "many", MessagesPerSecond: 80},
		{System: "insert", Variant: "many", MessagesPerSecond: 100},
		{System: "parley", Variant: "one", MessagesPerSecond: 30},
		{System: "insert", Variant: "one", MessagesPerSecond: 120},
		{System: "parley", Variant: "no base", MessagesPerSecond: 5},
		{System: "parley", Variant: "base of nothing counted", MessagesPerSecond: 5},
		{System: "insert", Variant: "base of nothing counted"},
		{System: "parley", Variant: "old", Operation: "send", Phase: "fresh", MessagesPerSecond: 10},
		{System: "parley", Variant: "old", Operation: "send", Phase: "aged", MessagesPerSecond: 9},
		{System: "parley", Variant: "old", Operation: "receive", Phase: "fresh", MessagesPerSecond: 10},
		{System: "parley", Variant: "old", Operation: "receive", Phase: "aged", MessagesPerSecond: 11},
	})
	want := map[string]float64{
		"many:parley/insert": 0.8,
		"one:parley/insert":  0.25,
		"old:send/fresh":     0.9,
		"old:receive/fresh":  1.1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("ratios are %v, want %v", got, want)
	}
}

func TestReportKeepsItsShape(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(Report{
		Head: record.Head{
			Scenario: "decay",
			Machine:  machine.Machine{CPU: "c", Cores: 2, MemoryBytes: 3, OS: "o", PostgresVersion: "18.1"},
			Settings: map[string]any{"fsync": "on", "repeat": 3},
		},
		Results: []Result{
			{
				System: "parley", Variant: "v", Sessions: 1, Conversations: 2, Size: 3, Batch: 4,
				MessagesPerSecond: 5.5, Spread: 0.25, Runs: []float64{5.5},
			},
			{System: "parley", Variant: "v", Operation: "send", Phase: "aged"},
		},
		Ratios: map[string]float64{"v:send/fresh": 0.5},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"scenario":"decay",` +
		`"machine":{"cpu":"c","cores":2,"memory_bytes":3,"os":"o","postgres_version":"18.1"},` +
		`"settings":{"fsync":"on","repeat":3},` +
		`"results":[` +
		`{"system":"parley","variant":"v","sessions":1,"conversations":2,"size":3,"batch":4,` +
		`"messages_per_second":5.5,"spread":0.25,"runs":[5.5]},` +
		`{"system":"parley","variant":"v","sessions":0,"conversations":0,"size":0,"batch":0,` +
		`"operation":"send","phase":"aged","messages_per_second":0,"spread":0,"runs":null}],` +
		`"ratios":{"v:send/fresh":0.5}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
