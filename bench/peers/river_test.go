package main

import (
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/parleytest"
)

func TestRiverIsMeasuredInTheSameRun(t *testing.T) {
	t.Parallel()
	dsn := parleytest.DSN(t, parleytest.EmptyDatabase(t))
	peers := []bench.Peer{riverPeer()}

	latency, err := bench.MeasureLatency(t.Context(), bench.LatencyConfig{
		DSN: dsn, Rate: 50, Duration: 500 * time.Millisecond, Systems: []string{"parley_consumer", "river"},
		Senders: 1, Readers: 2, Conversations: 2, Size: 20, Repeat: 1, Peers: peers,
	})
	if err != nil {
		t.Fatal(err)
	}
	if latency.Ratios["p50:parley_consumer/river"] <= 0 {
		t.Errorf("latency has the ratios %v", latency.Ratios)
	}

	for _, scenario := range bench.Scenarios() {
		if scenario.Name != "life" {
			continue
		}
		report, err := scenario.Run(t.Context(), bench.Config{
			DSN: dsn, Variants: []string{"life_one_session"}, Size: 20, Messages: 1, Duration: time.Millisecond, Repeat: 1, Peers: peers,
		})
		if err != nil {
			t.Fatal(err)
		}
		if report.Ratios["life_one_session:river/insert"] <= 0 || report.Ratios["life_one_session:parley/insert"] <= 0 {
			t.Errorf("life has the ratios %v", report.Ratios)
		}
		return
	}
	t.Error("there is no scenario life")
}
