package publish

import (
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/record"
)

// table has a row for each result of a run that is no base of others, and beside it the result that it is compared with.
func table(run Run) string {
	bases := map[string]bench.Result{}
	for _, above := range run.Results {
		for _, base := range run.Results {
			if key := above.RatioKey(); key != "" && base.IsBaseOf(above) {
				bases[key] = base
			}
		}
	}
	isBase := func(r bench.Result) bool {
		for _, base := range bases {
			if base.Name() == r.Name() {
				return true
			}
		}
		return false
	}
	var out strings.Builder
	fmt.Fprintln(&out, "| Variant | Sessions | Bytes | A second | Spread | Beside it | Ratio |")
	fmt.Fprintln(&out, "| --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range run.Results {
		base, hasBase := bases[r.RatioKey()]
		if r.MessagesPerSecond == 0 || !hasBase && isBase(r) {
			continue
		}
		beside, ratio := "", ""
		if hasBase && run.Ratios[r.RatioKey()] > 0 {
			beside, ratio = perSecond(base.MessagesPerSecond), fmt.Sprintf("%.2f", run.Ratios[r.RatioKey()])
		}
		fmt.Fprintf(&out, "| `%s` | %d | %d | %s | %.0f%% | %s | %s |\n", r.Name(), r.Sessions, r.Size, perSecond(r.MessagesPerSecond),
			100*r.Spread, beside, ratio)
	}
	for _, r := range run.Results {
		if l := r.Latency; l != nil {
			fmt.Fprintf(&out, "\n%s", wrapped(fmt.Sprintf("%#q: p50 %s, p90 %s, p99 %s, largest %s.", r.Name(), ms(l.P50MS), ms(l.P90MS),
				ms(l.P99MS), ms(l.MaxMS))))
		}
	}
	return out.String() + "\n" + wrapped(circumstancesOf(run))
}

func perSecond(value float64) string { return record.Number(value) + "/s" }
