package main

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/parleytest"
)

func TestJobQueuesAndBrokersAreMeasuredInTheSameRun(t *testing.T) {
	t.Parallel()
	peers, end := jobPeers()
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	scenarios := bench.Scenarios()
	life := scenarios[slices.IndexFunc(scenarios, func(s bench.Scenario) bool { return s.Name == "life" })]
	for _, peer := range peers {
		t.Run(peer.Name, func(t *testing.T) {
			dsn := parleytest.DSN(t, parleytest.EmptyDatabase(t))
			skipWithout(t, peer, dsn)
			latency, err := bench.MeasureLatency(t.Context(), bench.LatencyConfig{
				Frame: bench.Frame{DSN: dsn}, Rate: 50, Duration: 500 * time.Millisecond, Systems: []string{"parley_consumer", peer.Name},
				Senders: 1, Readers: 2, Conversations: 2, Size: 20, Repeat: 1, Peers: []bench.Peer{peer},
			})
			if err != nil {
				t.Fatal(err)
			}
			// No ratio where a broker that is no part of the transaction has most work begun before the commit: that counts as 0.
			isMeasured := func(r bench.LatencyResult) bool {
				return r.System == peer.Name && len(r.Runs) == 1 && r.Runs[0].Messages > 0
			}
			if !slices.ContainsFunc(latency.Results, isMeasured) {
				t.Errorf("latency has the results %v", latency.Results)
			}
			report, err := life.Run(t.Context(), bench.Config{
				Frame: bench.Frame{DSN: dsn}, Variants: []string{"life_one_session"}, Size: 20, Messages: 1, Duration: time.Millisecond, Repeat: 1,
				Peers: []bench.Peer{peer},
			})
			if err != nil {
				t.Fatal(err)
			}
			if report.Ratios["life_one_session:"+peer.Name+"/insert"] <= 0 || report.Ratios["life_one_session:parley/insert"] <= 0 {
				t.Errorf("life has the ratios %v", report.Ratios)
			}
		})
	}
}

func skipWithout(t *testing.T, peer bench.Peer, dsn string) {
	t.Helper()
	if peer.Missing == nil {
		return
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	reason, err := peer.Missing(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if reason != "" {
		t.Skip(reason)
	}
}

func TestEachPeerSaysWhatItPromisesOrPromisesTheSame(t *testing.T) {
	t.Parallel()
	peers, _ := jobPeers()
	for _, p := range peers {
		if p.Promise == "" && p.Name != "river" {
			t.Errorf("%s does not say what it promises less", p.Name)
		}
	}
}
