package main

import (
	"slices"
	"strings"
	"testing"
	"time"

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
	queues := scenarios[slices.IndexFunc(scenarios, func(s bench.Scenario) bool { return s.Name == "queues" })]
	report, err := queues.Run(t.Context(), bench.Config{
		Frame: bench.Frame{DSN: parleytest.DSN(t, parleytest.EmptyDatabase(t))}, Dialog: bench.DialogOptions{Rate: 50},
		Size: 20, Messages: 1, Duration: 200 * time.Millisecond, Repeat: 1, Sessions: 1, Conversations: 2, Peers: peers,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range report.Verdict.Reasons {
		if strings.Contains(reason, "the counts differ") {
			t.Error(reason)
		}
	}
	missing, _ := report.Settings["missing"].(map[string]string)
	failed, _ := report.Settings["failed"].(map[string]string)
	versions, _ := report.Settings["peer_versions"].(map[string]string)
	for _, peer := range peers {
		t.Run(peer.Name, func(t *testing.T) {
			if reason := missing[peer.Name]; reason != "" {
				t.Skip(reason)
			}
			if reason := failed[peer.Name]; reason != "" {
				t.Fatal(reason)
			}
			if peer.Count == nil {
				t.Error("it is not asked what it has counted")
			}
			if versions[peer.Name] == "" {
				t.Error("its version is not known")
			}
			if report.Ratios["rate:"+peer.Name+"/insert"] <= 0 {
				t.Errorf("the ratios are %v", report.Ratios)
			}
			// A broker that is no part of the transaction may have all work begun before the commit: that counts as 0.
			isTimed := func(r bench.Result) bool { return r.System == peer.Name && r.Variant == "latency" && r.Latency != nil }
			if !slices.ContainsFunc(report.Results, isTimed) {
				t.Error("its latency was not measured")
			}
		})
	}
}

func TestEachPeerSaysWhatItPromisesOrPromisesTheSame(t *testing.T) {
	t.Parallel()
	peers, _ := jobPeers()
	for _, p := range peers {
		if p.Promise == "" {
			t.Errorf("%s does not say what it promises less or more", p.Name)
		}
	}
}
