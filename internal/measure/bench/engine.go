package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/machine"
	"github.com/parley-broker/parley/internal/measure/observe"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/measure/setup"
)

// Frame has the settings that all measurements share.
type Frame struct {
	// DSN names a database of the server, where the role may create databases. The database itself is not touched.
	DSN string
	// Progress, if set, receives what is done now.
	Progress func(text string)
	// Watch, if set, shows how the measurement goes; what the sessions wait for is sampled then, too.
	Watch *observe.Watch
	// Checks are those of the set-up; without any it is checked before anything is measured, the storage for so long as Sync says.
	Checks []record.Check
	Sync   time.Duration
	// Limits replace those that figures have of their own, by the names of figures.
	Limits map[string]record.Limit
}

func (f *Frame) progress(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	f.Watch.Stage(text)
	if f.Progress != nil {
		f.Progress(text)
	}
}

// settingsThatMatter are the server's settings that a figure cannot be judged without.
var settingsThatMatter = []string{
	"autovacuum", "checkpoint_timeout", "commit_delay", "data_checksums", "effective_cache_size", "fsync", "full_page_writes", "jit",
	"max_connections", "max_wal_size", "shared_buffers", "synchronous_commit", "wal_buffers", "wal_compression", "wal_level",
	"wal_sync_method", "work_mem",
}

// sampleEvery is the pause between two samples of the rates.
const sampleEvery = time.Second

// onServer lets work measure on the server of the DSN. It gives it the head of the report, with what the server is and how it is set, and
// drops all databases that were made before it returns, also when ctx ends. The head is judged and analysed then. expected is how long will
// be measured in all.
func (f *Frame) onServer(
	ctx context.Context, scenario string, asked map[string]any, expected time.Duration,
	work func(ctx context.Context, c *cluster, head *record.Head) error,
) (head record.Head, err error) {
	c, err := openCluster(ctx, f.DSN)
	if err != nil {
		return head, err
	}
	defer func() {
		f.progress("cleaning up")
		err = errors.Join(err, c.cleanUp(ctx))
	}()
	head = newHead(scenario, asked)
	if head.Machine, err = machine.Read(ctx, c.admin); err != nil {
		return head, err
	}
	ofServer, err := machine.Settings(ctx, c.admin, settingsThatMatter...)
	if err != nil {
		return head, err
	}
	for name, value := range ofServer {
		head.Settings[name] = value
	}
	if head.Setup = f.Checks; head.Setup == nil {
		f.progress("checking the set-up")
		if head.Setup, err = setup.Checks(ctx, c.admin, f.Sync); err != nil {
			return head, err
		}
	}
	followed, stop, err := f.follow(ctx, c, expected)
	if err != nil {
		return head, err
	}
	begun := time.Now()
	err = work(followed, c, &head)
	head.Analysis, head.Samples = stop(head.Analysis, setup.Sync(head.Setup))
	head.Seconds = time.Since(begun).Seconds()
	head.Conclude(f.Limits)
	return head, err
}

// OnMachine lets work measure what needs no server, in the same frame: it gives it the head of the report, and a function that shows what
// is done now. The head is judged then.
func (f *Frame) OnMachine(
	ctx context.Context, scenario string, asked map[string]any, work func(ctx context.Context, head *record.Head, step func(string)) error,
) (head record.Head, err error) {
	head = newHead(scenario, asked)
	head.Machine = machine.Here()
	if head.Setup = f.Checks; head.Setup == nil {
		f.progress("checking the set-up")
		if head.Setup, err = setup.OfMachine(ctx); err != nil {
			return head, err
		}
	}
	begun := time.Now()
	err = work(observe.With(ctx, f.Watch), &head, func(text string) { f.progress("%s", text) })
	head.Seconds = time.Since(begun).Seconds()
	head.Conclude(f.Limits)
	return head, err
}

func newHead(scenario string, asked map[string]any) record.Head {
	return record.Head{
		Scenario: scenario, Settings: maps.Clone(asked), Parley: parley.Release, StartedAt: time.Now().UTC().Truncate(time.Millisecond),
		Verdict: &record.Verdict{Grade: record.Pass},
	}
}

// follow has the watch take samples, and has sampled what sessions wait for, until stop is called, which gives both. Before it concludes it
// takes over the balance that a scenario has counted.
func (f *Frame) follow(ctx context.Context, c *cluster, expected time.Duration) (
	followed context.Context, stop func(counted *bottleneck.Analysis, sync float64) (*bottleneck.Analysis, []observe.Sample), err error,
) {
	if f.Watch == nil {
		return ctx, func(*bottleneck.Analysis, float64) (*bottleneck.Analysis, []observe.Sample) { return nil, nil }, nil
	}
	conn, err := c.observatory(ctx)
	if err != nil {
		return ctx, nil, err
	}
	sampler := bottleneck.NewSampler(conn, c.prefix, expected, setup.IsLocal(conn))
	asking := context.WithoutCancel(ctx)
	f.Watch.Add(observe.Hooks{Begin: func() { sampler.Begin(asking) }, End: func() { sampler.End(asking) }})
	following, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Watch.Follow(following, sampleEvery)
	}()
	return observe.With(ctx, f.Watch), func(counted *bottleneck.Analysis, sync float64) (*bottleneck.Analysis, []observe.Sample) {
		cancel()
		<-done
		analysis := sampler.Conclude(asking)
		analysis.SyncMicroseconds, analysis.Messages = sync, f.Watch.Measured()
		if counted != nil {
			analysis.Balance = counted.Balance
		}
		analysis.Conclude()
		samples, _, _ := f.Watch.Samples()
		return analysis, samples
	}, nil
}

// inTurns runs each of some things once, and all of them as often as is asked for.
func inTurns[T any](
	ctx context.Context, f *Frame, things []T, repeat int, title func(T) string, run func(number int, thing T) error,
) error {
	watch := observe.From(ctx)
	watch.Plan(repeat * len(things))
	for round := range repeat {
		for number, thing := range things {
			f.progress("run %d of %d: %s", round+1, repeat, title(thing))
			if err := run(number, thing); err != nil {
				return fmt.Errorf("%s: %w", title(thing), err)
			}
			watch.Done()
		}
	}
	return nil
}
