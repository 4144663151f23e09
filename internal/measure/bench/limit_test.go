package bench_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/observe"
	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/internal/postgres/postgrestest"
	"github.com/parley-broker/parley/parleytest"
)

// limited measures business transactions and gives what limited them.
func limited(t *testing.T, dsn string, change func(c *bench.Config)) *bottleneck.Analysis {
	t.Helper()
	config := bench.Config{
		Frame: bench.Frame{DSN: dsn, Watch: &observe.Watch{}}, Variants: []string{"business"}, Sessions: 8, Conversations: 8, Size: 100,
		Messages: 1,
		Duration: 1500 * time.Millisecond, WarmUp: 200 * time.Millisecond, Repeat: 1,
	}
	change(&config)
	report, err := scenario(t, "mixed").Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if report.Analysis.Samples < 5 || report.Analysis.Sessions <= 0 || len(report.Samples) == 0 {
		t.Errorf("little was sampled: %+v", report.Analysis)
	}
	return report.Analysis
}

func TestHotRowIsNamed(t *testing.T) {
	t.Parallel()
	a := limited(t, parleytest.DSN(t, parleytest.EmptyDatabase(t)), func(c *bench.Config) { c.Rows = 1 })
	if a.Limit.Kind != bottleneck.Lock || !strings.Contains(a.Limit.Sentence, "bench.account") ||
		a.Limit.Change.Setting != bottleneck.SettingRows {
		t.Errorf("found %+v of %+v", a.Limit, a.Waits)
	}
}

// A delay before each flush of the log is a slow disk: commits wait for it and for one another.
func TestSlowFlushOfTheLogIsNamed(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, postgres.Config{
		Settings: map[string]string{"fsync": "on", "commit_delay": "30000", "commit_siblings": "0", "shared_buffers": "64MB"},
	})
	a := limited(t, server.DSN("postgres"), func(*bench.Config) {})
	if a.Limit.Kind != bottleneck.WAL || a.Limit.Change.Setting != bottleneck.SettingBatch {
		t.Errorf("found %+v of %+v", a.Limit, a.Waits)
	}
}

// A server of its own has buffers for a hundredth of what is touched.
func TestFewBuffersAreNamed(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, postgres.Config{
		Settings: map[string]string{"shared_buffers": "1MB", "fsync": "off", "max_connections": "40"},
	})
	a := limited(t, server.DSN("postgres"), func(c *bench.Config) { c.Rows = 100_000 })
	if a.Limit.Kind != bottleneck.Buffers || a.Counters["database.blks_read"] == 0 {
		t.Errorf("found %+v of %+v, %v", a.Limit, a.Waits, a.Counters)
	}
}
