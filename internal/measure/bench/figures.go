package bench

import (
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/measure/record"
)

// figures makes the numbers by which two runs are compared: the rate of each result, and its median latency where that was measured.
func figures(results []Result) []record.Figure {
	var list []record.Figure
	for _, r := range results {
		if r.MessagesPerSecond > 0 {
			list = append(list, record.Figure{
				Name: r.Name(), Unit: r.unit(), Value: r.MessagesPerSecond, Runs: r.Runs, Spread: r.Spread,
				Published: r.published, Limit: record.Limit{AtLeast: r.atLeast},
			})
		}
		if r.Latency != nil {
			list = append(list, record.Figure{Name: r.Name() + " p50", Unit: "ms", Value: r.Latency.P50MS, IsCost: true})
		}
		if r.ProcessorMSPerJob != nil {
			list = append(list, record.Figure{
				Name: r.Name() + " processor", Unit: "ms/job", Value: *r.ProcessorMSPerJob, IsCost: true,
			})
		}
	}
	return list
}

func (r Result) unit() string {
	if r.Unit != "" {
		return r.Unit
	}
	return "messages/s"
}

// Name distinguishes a result from all others of its report.
func (r Result) Name() string {
	parts := []string{r.Variant}
	for _, part := range []string{r.Operation, r.Phase} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if r.System != systemParley {
		parts = append(parts, r.System)
	}
	return strings.Join(parts, " ")
}

func latencyFigures(results []LatencyResult) []record.Figure {
	var list []record.Figure
	for _, r := range results {
		p50 := record.Figure{Name: r.System + " p50", Unit: "ms", Value: r.P50MS, Spread: r.Spread, IsCost: true}
		for _, run := range r.Runs {
			p50.Runs = append(p50.Runs, run.P50MS)
		}
		list = append(list, p50, record.Figure{Name: r.System + " p99", Unit: "ms", Value: r.P99MS, IsCost: true})
	}
	return list
}

func flowFigures(results []FlowResult) []record.Figure {
	var list []record.Figure
	for _, r := range results {
		f := record.Figure{
			Name: r.System + " " + strconv.Itoa(r.Size) + " B", Unit: "messages/s", Value: r.ProcessedPerSecond, Spread: r.Spread,
		}
		for _, run := range r.Runs {
			f.Runs = append(f.Runs, run.ProcessedPerSecond)
		}
		list = append(list, f)
	}
	return list
}
