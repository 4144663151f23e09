package bench_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/bench"
)

func TestLatencyOfEachSystemIsMeasuredAndLeavesNothing(t *testing.T) {
	t.Parallel()
	report, err := bench.MeasureLatency(t.Context(), bench.LatencyConfig{
		Frame: bench.Frame{DSN: ordinaryRole(t)}, Rate: 50, Duration: time.Second, WarmUp: 100 * time.Millisecond,
		Senders: 2, Readers: 2, Conversations: 3, Size: 20, Repeat: 1, Peers: peers(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var systems []string
	for _, r := range report.Results {
		systems = append(systems, r.System)
		if len(r.Runs) != 1 || r.Runs[0].Messages != 50 || r.Runs[0].SentPerSecond <= 0 {
			t.Errorf("%s: runs %+v", r.System, r.Runs)
		}
		if r.P50MS <= 0 || r.P50MS > r.P90MS || r.P90MS > r.P99MS || r.P99MS > r.MaxMS {
			t.Errorf("%s: the percentiles do not rise: %+v", r.System, r.Latency)
		}
	}
	var want []string
	for _, system := range bench.LatencySystems(peers()) {
		want = append(want, system.Name)
	}
	if !slices.Equal(systems, want) {
		t.Errorf("measured %v, want %v", systems, want)
	}
	for _, key := range []string{
		"p50:parley_activation/table", "p99:parley_activation/table", "p50:parley_consumer/table",
		"p99:parley_consumer/table",
	} {
		if report.Ratios[key] <= 0 {
			t.Errorf("no ratio %s among %v", key, slices.Sorted(maps.Keys(report.Ratios)))
		}
	}
}

func TestLatencyConfigurationThatCannotBeMeasuredIsRefused(t *testing.T) {
	t.Parallel()
	good := bench.LatencyConfig{Rate: 1, Duration: time.Second, Senders: 1, Readers: 1, Conversations: 1, Size: 8, Repeat: 1}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*bench.LatencyConfig){
		"no rate":                  func(c *bench.LatencyConfig) { c.Rate = 0 },
		"no time":                  func(c *bench.LatencyConfig) { c.Duration = 0 },
		"no readers":               func(c *bench.LatencyConfig) { c.Readers = 0 },
		"no room for the number":   func(c *bench.LatencyConfig) { c.Size = 7 },
		"a system nobody knows of": func(c *bench.LatencyConfig) { c.Systems = []string{"pigeon"} },
		"a peer without functions": func(c *bench.LatencyConfig) { c.Peers = []bench.Peer{{Name: "pigeon"}} },
		"a peer of our name":       func(c *bench.LatencyConfig) { c.Peers = peers(); c.Peers[0].Name = "parley_consumer" },
		"a peer twice":             func(c *bench.LatencyConfig) { c.Peers = append(peers(), peers()...) },
	} {
		bad := good
		spoil(&bad)
		if bad.Check() == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}
