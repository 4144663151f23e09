package bench_test

import (
	"runtime"
	"testing"
	"time"
)

func TestPagesOfTheConsoleAreMeasuredByTheProcessorOfTheirBackends(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the time of processes is read as Linux gives it")
	}
	t.Parallel()
	config := small(t)
	config.Repeat, config.Duration, config.Variants = 1, 2*time.Second, []string{"queue", "every"}
	report, err := scenario(t, "console").Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		// All connections of one session together have no more than the cores that they may have.
		if r.ProcessorMSPerMinute == nil || *r.ProcessorMSPerMinute <= 0 || *r.ProcessorMSPerMinute > 2*60_000 {
			t.Errorf("%s: measured is %v", r.Variant, r.ProcessorMSPerMinute)
		}
	}
	if len(report.Results) != len(config.Variants) {
		t.Errorf("measured were %v", report.Results)
	}
}
