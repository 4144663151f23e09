package publish

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/record"
)

// jobs is the scenario in which a simple queue is a job queue: its table has a row a system and a column a load.
const jobs = "jobs"

// jobsLoads are the loads of the table, in its order.
var jobsLoads = []struct {
	variant, heading string
}{
	{"paced", "200 a second: p50, p99, processor a job"},
	{"burst", "800 a second: done, p50, p99"},
	{"one", "one in, one out"},
	{"one_behind", "the same behind a backlog"},
	{"peak", "16 workers"},
	{"peak_many", "64 workers"},
	{"peak_batches", "64 workers, 10 at once"},
}

// jobsNames are how the table names what the scenario calls otherwise.
var jobsNames = map[string]string{"parley_simple": "Parley, `SimpleConsumer`", "parley_take": "Parley, sessions in TAKE"}

// jobsTable shows each system that the run measured, ours first.
func jobsTable(run Run) string {
	cells, order := map[string]map[string]string{}, []string(nil)
	used := map[string]bool{}
	for _, r := range run.Results {
		if r.MessagesPerSecond == 0 {
			continue
		}
		if cells[r.System] == nil {
			cells[r.System] = map[string]string{}
			order = append(order, r.System)
		}
		used[r.Variant] = true
		cells[r.System][r.Variant] = jobsCell(r)
	}
	var out strings.Builder
	head, line := "| System |", "| --- |"
	for _, load := range jobsLoads {
		if used[load.variant] {
			head += " " + load.heading + " |"
			line += " --- |"
		}
	}
	fmt.Fprintf(&out, "%s\n%s\n", head, line)
	versions := texts(run, "peer_versions")
	for _, name := range order {
		named := row{name: cmp.Or(jobsNames[name], systemName(name)), version: versions[name]}
		fmt.Fprintf(&out, "| %s |", named.named())
		for _, load := range jobsLoads {
			if used[load.variant] {
				fmt.Fprintf(&out, " %s |", cells[name][load.variant])
			}
		}
		out.WriteString("\n")
	}
	return out.String() + "\n" + wrapped(circumstancesWith(run, fmt.Sprintf(" bodies of 100 bytes, runs of %.3g s after %.3g s of warm-up",
		number(run, "duration_seconds"), number(run, "warm_up_seconds"))))
}

func jobsCell(r bench.Result) string {
	if r.Latency == nil {
		return perSecond(r.MessagesPerSecond)
	}
	times := ms(r.Latency.P50MS) + ", " + ms(r.Latency.P99MS)
	if r.Variant != "paced" || r.ProcessorMSPerJob == nil {
		return perSecond(r.MessagesPerSecond) + ", " + times
	}
	return times + ", " + record.Number(*r.ProcessorMSPerJob) + " ms"
}

// systemName is how pages name a system of a report, or the name that it has there.
func systemName(report string) string {
	for _, s := range systems {
		if s.report == report {
			return s.name
		}
	}
	return report
}
