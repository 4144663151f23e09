package verbs

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/present"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/verb"
)

// Nothing that a benchmark writes is wider than a terminal of 80 columns, which would break its tables.
func TestNothingIsWiderThanATerminal(t *testing.T) {
	t.Parallel()
	peers := []bench.Peer{}
	latency := bench.LatencyReport{Ratios: map[string]float64{}}
	latency.Settings = map[string]any{"rate": 1000}
	for i := range 9 {
		p := bench.Peer{Name: fmt.Sprintf("outbox-rabbitmq-inbox-%d", i)}
		peers = append(peers, p)
		latency.Results = append(latency.Results, bench.LatencyResult{System: "parley_activation"})
		latency.Ratios["p50:parley_activation/"+p.Name] = 0.25
	}
	var matrix bench.Report
	matrix.Settings = map[string]any{}
	for i := range 20 {
		matrix.Results = append(matrix.Results, bench.Result{
			System: "parley", Variant: fmt.Sprintf("3x%d, 8192 B, 1 of 150 dialogs, PostgreSQL 15", i), Sessions: 3 * i, Conversations: 450 * i,
			Size: 8192, Batch: 1, MessagesPerSecond: 18_000, Latency: &bench.Latency{P50MS: 1000, P90MS: 1e4, P99MS: 1e5, MaxMS: 1e6},
		})
		matrix.Figures = append(matrix.Figures, record.Figure{Name: matrix.Results[i].Variant, Unit: "messages/s", Value: 18_000})
	}
	matrix.Figures = append(matrix.Figures, record.Figure{Name: strings.Repeat("a long name ", 8), Unit: "ms", Value: 1234, Limit: record.Limit{AtMost: 1}})
	matrix.Seed = []bench.SeedColumn{{Test: "T5", CacheMB: 512, Limit: "I/O", Size: 10_240_000, MessagesPerSecond: 1.34, LogKBPerMessage: 12_345.67}}
	matrix.Results[0].Figures = map[string]float64{bench.MailFigures()[0][0]: 123_456.78}
	flow := bench.FlowReport{Ratios: map[string]float64{"parley/spring-integration 2048": 1234.5}, Latency: &bench.FlowLatency{InsertP50MS: 1}}
	flow.Results = []bench.FlowResult{{System: "spring-integration", Size: 2048, Promise: strings.Repeat("what it promises less ", 8)}}
	flow.Requests = &bench.FlowRequests{}
	bbw := bench.BBWReport{Patterns: []bench.BBWPattern{{Name: "step 123456/s"}}, KPIs: []bench.KPI{{Name: strings.Repeat("Processor ", 8)}}}
	bbw.Environment.Short = strings.Repeat("one server of each kind ", 5)
	for i := range 7 {
		bbw.Thresholds = append(bbw.Thresholds, bench.Threshold{Edition: "later", Rate: float64(1000 + i)})
	}
	head := matrix.Head
	head.Verdict = &record.Verdict{Grade: record.Fail, Reasons: []string{strings.Repeat("a reason of many words ", 9)}}
	head.Analysis = &bottleneck.Analysis{
		Samples: 600_000, Sessions: 12_345.6, Waits: []bottleneck.Wait{{Event: "LWLock:SerializableXactHash", Object: strings.Repeat("object ", 12)}},
		Tables: []bottleneck.Table{{Name: strings.Repeat("t", 63), Inserted: 1e9, Updated: 1e9, Deleted: 1e9, Dead: 1e9, Bytes: 1e12}},
	}
	head.Compared = &record.Comparison{Differences: []record.Difference{{Name: matrix.Results[0].Variant, Worse: true}}, Changed: []string{
		strings.Repeat("setting ", 14),
	}}
	for name, write := range map[string]func(out io.Writer) error{
		"latency":  func(out io.Writer) error { return writeLatency(out, latency, peers) },
		"scenario": func(out io.Writer) error { return writeReport(out, matrix) },
		"flow":     func(out io.Writer) error { return writeFlow(out, flow) },
		"bbw":      func(out io.Writer) error { return writeBBW(out, bbw) },
		"the rest": func(out io.Writer) error { return present.Text(out, &head, func(io.Writer) error { return nil }) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%s has a line of %d: %s", name, n, line)
			}
		}
	}
}

// The product has no peers: it says where they are, unless there are some.
func TestRunWithoutPeersSaysWhereTheyAre(t *testing.T) {
	t.Parallel()
	for _, peers := range [][]bench.Peer{nil, {{Name: "table"}}} {
		var said bytes.Buffer
		m := &measuring{App: &verb.App{Stderr: &said}, peers: bench.Peers{Jobs: peers}}
		m.suggestPeers("latency")
		if got := strings.HasSuffix(said.String(), "too: go -C bench/peers run . bench latency\n"); got != (peers == nil) {
			t.Errorf("with %d peers it says %q", len(peers), &said)
		}
	}
}
