package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/mapping/mappingtest"
	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/maprate"
	"github.com/parley-broker/parley/parleytest"
)

func TestEnginesOfIntegrationAreMeasuredInTheSameRun(t *testing.T) {
	t.Parallel()
	for _, peer := range hopPeers() {
		t.Run(peer.Name, func(t *testing.T) {
			t.Parallel()
			if missing := peer.Missing(); missing != "" {
				t.Skip(missing)
			}
			report, err := bench.MeasureFlow(t.Context(), bench.FlowConfig{
				Frame: bench.Frame{DSN: parleytest.DSN(t, parleytest.EmptyDatabase(t))}, Systems: []string{"copy", peer.Name}, Sizes: []int{188},
				Connections: 5, Workers: 2, Duration: 300 * time.Millisecond, Repeat: 1, Peers: []bench.HopPeer{peer},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Results {
				if r.Messages == 0 || r.ProcessedPerSecond <= 0 {
					t.Errorf("%s processed %d messages, %.0f a second", r.System, r.Messages, r.ProcessedPerSecond)
				}
			}
		})
	}
}

// Each peer makes of a document what the worker makes of it, or the measurement fails.
func TestMapsOfOthersAreMeasuredInTheSameRun(t *testing.T) {
	peer := camelMapPeer()
	if missing := peer.Missing(); missing != "" {
		t.Skip(missing)
	}
	t.Setenv("PATH", filepath.Dir(mappingtest.Worker(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	report, err := maprate.Measure(t.Context(), maprate.Config{
		Documents: 20, Processes: 1, Repeat: 1, Peers: []bench.MapPeer{peer}, Progress: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Peers) != 1 || report.Peers[0].PerSecond <= 0 || report.Peers[0].WorkerTo <= 0 {
		t.Errorf("the peers are %+v", report.Peers)
	}
}
