package bench_test

import (
	"context"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/observe"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/parleytest"
)

var othersAtWork = regexp.MustCompile(`; [1-9][0-9]* other sessions at work`)

// crowd keeps all processors busy until it is called off.
func crowd(t *testing.T) (callOff func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		busy.Go(func() {
			for ctx.Err() == nil {
			}
		})
	}
	callOff = sync.OnceFunc(func() {
		cancel()
		busy.Wait()
	})
	t.Cleanup(callOff)
	return callOff
}

// A run behind a pooler, on a server that is not durable, beside programs and sessions of others: the verdict names each of them. A limit
// that is missed then says nothing of the machine.
func TestVerdictNamesWhatIsWrongWithTheSetUp(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	// The server of tests syncs nothing.
	if _, err := pool.Exec(t.Context(), "alter database "+pool.Config().ConnConfig.Database+" set synchronous_commit to off"); err != nil {
		t.Fatal(err)
	}
	dsn := parleytest.PgBouncer(t, pool)
	asleep := make(chan error, 1)
	resting, wake := context.WithCancel(t.Context())
	defer wake()
	go func() {
		_, err := pool.Exec(resting, "select pg_sleep(600)")
		asleep <- err
	}()
	parleytest.Until(t, "a session of another is at work", func() bool {
		var is bool
		err := pool.QueryRow(t.Context(), `
			select exists (select from pg_stat_activity as a where a.state = 'active' and a.query = 'select pg_sleep(600)')`).Scan(&is)
		return err == nil && is
	})
	callOff := crowd(t)
	const writes = "business_one_session writes"
	config := bench.Config{
		Frame: bench.Frame{
			DSN: dsn, Watch: &observe.Watch{}, Limits: map[string]record.Limit{writes: {AtLeast: 1e9}},
			Progress: func(text string) {
				if strings.HasPrefix(text, "preparing") {
					callOff()
					wake()
				}
			},
		},
		Variants: []string{"business_one_session"}, Sessions: 1, Conversations: 2, Rows: 2, Messages: 1, Repeat: 1,
		Duration: 100 * time.Millisecond,
	}
	report, err := scenario(t, "mixed").Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-asleep; err == nil {
		t.Error("the session of another was not at work for as long as the set-up was checked")
	}
	reasons := strings.Join(report.Verdict.Reasons, "\n")
	for _, part := range []string{
		writes + " is ", "others used ", "what is too slow says nothing of this machine", "fsync off", "synchronous_commit off",
		"pooler: a pooler is in between", "neighbours: others use ",
	} {
		if !strings.Contains(reasons, part) {
			t.Errorf("no reason says %q:\n%s", part, reasons)
		}
	}
	if !othersAtWork.MatchString(reasons) { // tests of other packages share the server
		t.Errorf("no reason counts the other sessions:\n%s", reasons)
	}
	if report.Verdict.Grade != record.Invalid {
		t.Errorf("the verdict is %s", report.Verdict.Grade)
	}
	for _, c := range report.Setup {
		if c.State == record.Warning && c.Hint == "" {
			t.Errorf("%s has no hint: %+v", c.Name, c)
		}
	}
}

// A transaction that is idle while messages come and go keeps all their dead rows: the sentence names its session.
func TestOldSnapshotIsNamed(t *testing.T) {
	t.Parallel()
	if os.Getenv("PARLEY_TEST_LONG") == "" {
		t.Skip("it makes dead rows by ten thousands: PARLEY_TEST_LONG=1 has it measured")
	}
	config := bench.Config{
		Frame:    bench.Frame{DSN: parleytest.DSN(t, parleytest.EmptyDatabase(t)), Watch: &observe.Watch{}},
		Variants: []string{"old_snapshot"}, Sessions: 2, Conversations: 10, Size: 10, Messages: 20_000, Repeat: 1, Duration: time.Second,
	}
	report, err := scenario(t, "decay").Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	l := report.Analysis.Limit
	if l.Kind != bottleneck.Snapshot || !strings.HasPrefix(l.Sentence, "Old snapshot: session ") ||
		!strings.Contains(l.Sentence, "idle in transaction") || !strings.Contains(l.Sentence, "dead rows of parley._p_message ") {
		t.Errorf("found %+v, with %+v of %+v", l, report.Analysis.Horizon, report.Analysis.Tables)
	}
}
