package demo

import (
	"bytes"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/machine"
	"github.com/parley-broker/parley/internal/measure/observe"
	"github.com/parley-broker/parley/internal/measure/present"
	"github.com/parley-broker/parley/internal/measure/record"
)

// benchRun is a run of the benchmark with something of everything in it, long names, and texts from outside that are up to no good.
func benchRun() *record.Head {
	head := &record.Head{
		Scenario: "drain", Parley: "0.1.0", StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 75,
		Machine:  machine.Machine{CPU: "A CPU " + hostile, Cores: 8, OS: "An OS", PostgresVersion: "18.1"},
		Settings: map[string]any{"fsync": "on"},
		Setup: []record.Check{
			{Name: "storage", State: record.OK, Text: "a sync takes 80 microseconds"},
			{Name: "neighbours", State: record.Warning, Text: "others use 35% of the processors " + hostile, Hint: "measure again"},
		},
		Verdict: &record.Verdict{Grade: record.Warnings, Reasons: []string{"neighbours: others use 35% of the processors"}},
		Figures: []record.Figure{
			{Name: "basic", Unit: "messages/s", Value: 4200, Published: 312, Limit: record.Limit{AtLeast: 3120}, Spread: 0.04},
			{Name: "cursor", Unit: "messages/s", Value: 23063, Published: 1676, Limit: record.Limit{AtLeast: 16760}, Spread: 0.3},
			{Name: "set_binary", Unit: "messages/s", Value: 31200, Published: 2712, Limit: record.Limit{AtLeast: 27120}},
			{Name: "added by the send", Unit: "ms", Value: 0.41, IsCost: true},
		},
		Analysis: &bottleneck.Analysis{
			Samples: 600, IntervalMS: 100, Sessions: 15.9, Working: 10.5, SyncMicroseconds: 80,
			Counters: map[string]float64{"wal.wal_bytes": 1.2e9},
			Waits: []bottleneck.Wait{
				{Event: "LWLock:WALWrite", Share: 0.41, Sessions: 6.5},
				{Event: "IO:WALSync", Share: 0.2},
				{Event: "Lock:tuple", Object: "a tuple of bench.account_with_a_name_that_is_long", Share: 0.2},
				{Event: "CPU", Share: 0.19},
			},
			Messages: 120_000, Notes: []string{"Old snapshots were not seen: " + hostile},
			Buffers: &bottleneck.Cache{All: 16384, Unused: 900, Dirty: 400, Relations: []bottleneck.BufferRelation{{
				Name: "parley._p_message_of_a_queue_with_a_name_that_is_long_" + hostile, Fork: "visibility map", Buffers: 4000, Share: 0.25,
				Dirty: 120, Pinned: 2, Usage: []int64{0, 0, 0, 100, 400, 3500},
			}}},
			Tables: []bottleneck.Table{{
				Name: "parley._p_message_of_a_queue_with_a_name_that_is_long", Inserted: 120_000, Updated: 240_000, HotUpdated: 230_000,
				Deleted: 120_000, Dead: 5000, Live: 10, Bytes: 9e7, Bloat: new(0.97),
			}},
			Statements: []bottleneck.Statement{{
				ID: 1, Text: "select a.handle from parley.receive(queue => $1) as a " + hostile, Calls: 1200, MS: 900, WALBytes: 3e7, Read: 8,
			}},
			Horizon: []bottleneck.Holder{{Kind: "session", Name: "psql, process 4711, idle in transaction " + hostile, Transactions: 9e5, Seconds: 75}},
			System: bottleneck.System{
				IsSeen: true, Cores: 8, Busy: 0.7, Client: 0.2, Servers: 0.4,
				Disks: []bottleneck.Disk{{Name: "nvme0n1", Busy: 0.5, WriteMS: 0.08}},
			},
		},
		Compared: &record.Comparison{
			With: "before.json", Changed: []string{"fsync: off, now on"},
			Differences: []record.Difference{{Name: "basic", Before: 5200, After: 4200, Change: -0.19, Noise: 0.1, Worse: true}},
		},
	}
	head.Analysis.Conclude()
	for i := range 30 {
		head.Samples = append(head.Samples, observe.Sample{
			Seconds: float64(i), In: float64(1000 + 10*i), Out: float64(900 + 9*i),
			P50MS: 1, P99MS: 9,
		})
	}
	return head
}

// The page of a benchmark: the verdict first, then figures, charts, what limits, and what to try.
func TestPageOfABenchmarkInABrowser(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	var page bytes.Buffer
	if err := present.Page(&page, benchRun(), "parley bench drain --repeat=3", nil); err != nil {
		t.Fatal(err)
	}
	show(t, b, page.Bytes())
	checkClaims(t, b, []claim{
		{
			"the verdict comes before everything else",
			`document.querySelector("h1").nextElementSibling.nextElementSibling.innerText.startsWith("Pass with warnings")`,
		},
		{
			"bars are as long as their values",
			`(w => Math.abs(w[1] / w[0] - 312 / 4200) < 0.01 && Math.abs(w[2] / w[4] - 23063 / 31200) < 0.01)(
				[...document.querySelectorAll("svg.broad[aria-labelledby^=figures] rect")].map(r => r.getBoundingClientRect().width))`,
		},
		{
			"published figures stand back",
			`document.querySelectorAll("svg.broad[aria-labelledby^=figures] .bar.other").length == 3`,
		},
		{
			"both rates have all their points",
			`[...document.querySelectorAll("svg.broad polyline")].map(p => p.points.numberOfItems).join() == "30,30"`,
		},
		{
			"the limit is one sentence, with what to try",
			`document.body.innerText.includes("WAL flush: 61% of the sessions' time") &&
				document.body.innerText.includes("Try next: larger batches; --try does it and measures again.")`,
		},
		{
			"a regression is named",
			`document.body.innerText.includes("-19%, regression")`,
		},
		{
			"the command is there",
			`document.querySelector("pre").innerText == "parley bench drain --repeat=3"`,
		},
		{
			"no text became an element",
			`document.querySelectorAll("img,script").length == 0`,
		},
	})
	checkColours(t, b)
	checkLayout(t, b, "bench")
}
