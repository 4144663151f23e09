package bench_test

import (
	"runtime"
	"testing"
	"time"
)

func TestJobsAreMeasuredWithWorkersThatWait(t *testing.T) {
	t.Parallel()
	config := small(t)
	config.Peers, config.Repeat, config.Duration = peers(), 1, 200*time.Millisecond
	config.Variants = []string{"paced", "one", "one_behind", "peak_batches"}
	report, err := scenario(t, "jobs").Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]bool{}
	for _, r := range report.Results {
		measured[r.Variant+" "+r.System] = true
		if r.MessagesPerSecond <= 0 {
			t.Errorf("%s %s: the runs are %v", r.Variant, r.System, r.Runs)
		}
		if isPaced := r.Variant == "paced"; isPaced != (r.Latency != nil) || isPaced && r.Latency.P50MS <= 0 {
			t.Errorf("%s %s: the latency is %v", r.Variant, r.System, r.Latency)
		}
		if r.ProcessorMSPerJob == nil && runtime.GOOS == "linux" {
			t.Errorf("%s %s: the processor's time is not known", r.Variant, r.System)
		}
	}
	for _, system := range []string{"parley_simple", "parley_take", "table"} {
		for _, variant := range config.Variants {
			if isLeftOut := variant == "one_behind" && system != "parley_take"; !isLeftOut && !measured[variant+" "+system] {
				t.Errorf("%s of %s was not measured", variant, system)
			}
		}
	}
}
