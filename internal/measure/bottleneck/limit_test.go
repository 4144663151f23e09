package bottleneck_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
)

// Each analysis has one thing that limits; the sentence names it, with its number.
func TestSentenceNamesWhatLimits(t *testing.T) {
	t.Parallel()
	wait := func(event string, share float64) bottleneck.Wait { return bottleneck.Wait{Event: event, Share: share} }
	for name, c := range map[string]struct {
		a        bottleneck.Analysis
		kind     string
		sentence []string
		setting  string
	}{
		"the log": {
			bottleneck.Analysis{
				Waits:            []bottleneck.Wait{wait("LWLock:WALWrite", 0.41), wait("IO:WALSync", 0.2), wait("CPU", 0.39)},
				SyncMicroseconds: 80,
			},
			bottleneck.WAL,
			[]string{"WAL flush: 61% of", "a sync takes 80 microseconds"},
			bottleneck.SettingBatch,
		},
		"the log, as version 18 names it": {
			bottleneck.Analysis{Waits: []bottleneck.Wait{wait("IO:WalSync", 0.7), wait("CPU", 0.3)}},
			bottleneck.WAL,
			[]string{"WAL flush: 70% of"},
			bottleneck.SettingBatch,
		},
		"a hot row": {
			bottleneck.Analysis{Waits: []bottleneck.Wait{
				{Event: "Lock:transactionid", Object: "a row of bench.account", Share: 0.2},
				{Event: "Lock:tuple", Object: "a tuple of bench.account", Share: 0.5},
				wait("LWLock:WALWrite", 0.1),
			}},
			bottleneck.Lock,
			[]string{"Lock on a tuple of bench.account: 70% of"},
			bottleneck.SettingRows,
		},
		"commits that notify": {
			bottleneck.Analysis{Waits: []bottleneck.Wait{
				{Event: "Lock:object", Object: "the queue of NOTIFY", Share: 0.31}, wait("LWLock:WALWrite", 0.21), wait("CPU", 0.1),
			}},
			bottleneck.Lock,
			[]string{"Lock on the queue of NOTIFY: 31% of", "commits that notify wait for one another"},
			bottleneck.SettingBatch,
		},
		"few buffers": {
			bottleneck.Analysis{
				Waits: []bottleneck.Wait{wait("CPU", 0.5), wait("IO:DataFileRead", 0.2)}, Counters: map[string]float64{
					"database.blks_read": 400,
					"database.blks_hit":  600,
				},
			},
			bottleneck.Buffers,
			[]string{"Buffers: 40% of the blocks"},
			"",
		},
		"a back end": {
			bottleneck.Analysis{Balance: bottleneck.Balance{In: 300, Out: 120, Backlog: 900, BackEndMS: 20, BackEndBusy: 0.9}},
			bottleneck.BackEnd,
			[]string{"300 messages a second go in and 120 come out", "20.0 ms"},
			bottleneck.SettingWorkers,
		},
		"readers that finish nothing": {
			bottleneck.Analysis{Balance: bottleneck.Balance{In: 300, Out: 0, Backlog: 900}},
			bottleneck.Backlog,
			[]string{"300 messages a second go in and 0 come out"},
			bottleneck.SettingReaders,
		},
		"too few readers": {
			bottleneck.Analysis{
				Balance: bottleneck.Balance{In: 300, Out: 120, Backlog: 900},
				Waits:   []bottleneck.Wait{wait("LWLock:WALWrite", 0.9)},
			},
			bottleneck.Backlog,
			[]string{"and 900 wait"},
			bottleneck.SettingReaders,
		},
		"the client": {
			bottleneck.Analysis{Waits: []bottleneck.Wait{wait("Client:ClientRead", 0.95), wait("CPU", 0.05)}},
			bottleneck.Client,
			[]string{"wait 95% of their time for the client"},
			bottleneck.SettingSessions,
		},
		"the processor": {
			bottleneck.Analysis{
				Waits: []bottleneck.Wait{wait("CPU", 0.8), wait("Client:ClientRead", 0.2)}, System: bottleneck.System{
					IsSeen: true, Busy: 0.97,
					Client: 0.2, Servers: 0.4,
				},
			},
			bottleneck.Processor,
			[]string{"80% of", "97% busy, 37% with other programs"},
			bottleneck.SettingBatch,
		},
		"pages that many change": {
			bottleneck.Analysis{Waits: []bottleneck.Wait{wait("LWLock:BufferContent", 0.5), wait("CPU", 0.5)}},
			bottleneck.Contention,
			[]string{"LWLock:BufferContent"},
			bottleneck.SettingBatch,
		},
		"an old snapshot": {
			bottleneck.Analysis{
				Seconds: 60, Waits: []bottleneck.Wait{wait("CPU", 0.9)},
				Horizon: []bottleneck.Holder{{Kind: "prepared transaction", Name: "moved", Transactions: 90_000, Seconds: 61}},
				Tables:  []bottleneck.Table{{Name: "bench.few", Dead: 20_000, Live: 90_000}, {Name: "bench.queue", Dead: 80_000, Live: 10}},
			},
			bottleneck.Snapshot,
			[]string{"prepared transaction moved is 61 s old", "80000 dead rows of bench.queue stay beside 10 live ones"},
			"",
		},
		"a young snapshot": {
			bottleneck.Analysis{
				Seconds: 60, Waits: []bottleneck.Wait{wait("CPU", 0.9)},
				Horizon: []bottleneck.Holder{{Kind: "session", Name: "process 1", Transactions: 90, Seconds: 1}},
				Tables:  []bottleneck.Table{{Name: "bench.queue", Dead: 80_000, Live: 10}},
			},
			bottleneck.Processor,
			[]string{"90% of"},
			bottleneck.SettingBatch,
		},
		"a standby": {
			bottleneck.Analysis{Waits: []bottleneck.Wait{wait("IPC:SyncRep", 0.9)}}, bottleneck.Replica, []string{"90%"}, bottleneck.SettingBatch,
		},
		"nothing": {
			bottleneck.Analysis{Waits: []bottleneck.Wait{wait("CPU", 0.25), wait("Client:ClientRead", 0.5), wait("LWLock:WALWrite", 0.25)}},
			bottleneck.Nothing,
			[]string{"Nothing stands out"},
			bottleneck.SettingSessions,
		},
	} {
		c.a.Conclude()
		if c.a.Limit.Kind != c.kind || c.a.Limit.Change.Setting != c.setting || c.a.Limit.Change.Text == "" {
			t.Errorf("%s: found %+v", name, c.a.Limit)
		}
		for _, part := range c.sentence {
			if !strings.Contains(c.a.Limit.Sentence, part) {
				t.Errorf("%s: the sentence is %q, and lacks %q", name, c.a.Limit.Sentence, part)
			}
		}
	}
}

func TestFewBlocksAreNoRatio(t *testing.T) {
	t.Parallel()
	a := bottleneck.Analysis{
		Waits: []bottleneck.Wait{{Event: "CPU", Share: 1}}, Counters: map[string]float64{"database.blks_read": 90, "database.blks_hit": 10},
	}
	a.Conclude()
	if a.Limit.Kind != bottleneck.Processor {
		t.Errorf("found %+v", a.Limit)
	}
}
