// Package observe is how a measurement shows itself while it runs: rates in and out, times, how much is done, and when it is measured.
// A context carries the watch, so that a measurement that nobody watches costs nothing.
package observe

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/measure/statistics"
)

// Watch takes what a measurement shows. All methods do nothing on a nil watch.
type Watch struct {
	in, out atomic.Int64

	mu       sync.Mutex
	times    []float64 // in milliseconds, the latest of them
	at       int
	recent   []float64 // those since the last sample
	stage    string
	total    int
	done     int
	throttle string
	windows  int
	inAt     int64 // what was counted when the open window began
	outAt    int64
	inAll    int64 // what was counted in the windows that have ended
	outAll   int64
	since    time.Time // when the open window began
	measured time.Duration
	hooks    []Hooks
	samples  []Sample
	last     Sample
	lastIn   int64
	lastOut  int64
	lastAt   time.Time
}

// Hooks are called when the first of several windows begins, and when the last ends.
type Hooks struct {
	Begin, End func()
}

// Sample is one look at a measurement. As JSON it is part of a stable format.
type Sample struct {
	Seconds float64 `json:"seconds"` // of measured time, all runs one after another
	In      float64 `json:"in"`      // messages a second
	Out     float64 `json:"out"`     // messages a second
	P50MS   float64 `json:"p50_ms"`
	P99MS   float64 `json:"p99_ms"`
}

// State is how far a measurement has come.
type State struct {
	Stage       string
	Done, Total int
	Throttling  string // "" for none
	Sample
}

// kept are how many times of calls are kept for the percentiles so far.
const kept = 20_000

type key struct{}

// With gives a context that carries a watch.
func With(ctx context.Context, w *Watch) context.Context { return context.WithValue(ctx, key{}, w) }

// From gives the watch of a context, or nil.
func From(ctx context.Context) *Watch {
	w, _ := ctx.Value(key{}).(*Watch)
	return w
}

type takesKey struct{}

// WithTaking gives a context in which the operations take messages out of queues; else they put some in.
func WithTaking(ctx context.Context) context.Context { return context.WithValue(ctx, takesKey{}, true) }

// Takes reports whether the operations take messages out of queues.
func Takes(ctx context.Context) bool { return ctx.Value(takesKey{}) != nil }

// Add adds hooks.
func (w *Watch) Add(h Hooks) {
	if w != nil {
		w.hooks = append(w.hooks, h)
	}
}

// In counts messages that went into queues.
func (w *Watch) In(n int) {
	if w != nil {
		w.in.Add(int64(n))
	}
}

// Out counts messages that came out of queues.
func (w *Watch) Out(n int) {
	if w != nil {
		w.out.Add(int64(n))
	}
}

// Took records how long a call took.
func (w *Watch) Took(span time.Duration) {
	if w == nil {
		return
	}
	ms := float64(span) / float64(time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.recent) < kept {
		w.recent = append(w.recent, ms)
	}
	if len(w.times) < kept {
		w.times = append(w.times, ms)
		return
	}
	w.times[w.at%kept] = ms
	w.at++
}

// Plan records how many runs there will be.
func (w *Watch) Plan(runs int) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total += runs
}

// Stage records what is done now.
func (w *Watch) Stage(text string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage = text
}

// Done counts a run that has ended.
func (w *Watch) Done() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done++
}

// Throttling records what throttles now, or "".
func (w *Watch) Throttling(state string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.throttle = state
}

// Window begins a stretch of time that is measured. The function that comes back ends it.
func (w *Watch) Window() (end func()) {
	if w == nil {
		return func() {}
	}
	w.mu.Lock()
	w.windows++
	first := w.windows == 1
	if first {
		w.since = time.Now()
		w.lastAt, w.lastIn, w.lastOut = w.since, w.in.Load(), w.out.Load()
		w.inAt, w.outAt = w.lastIn, w.lastOut
	}
	w.mu.Unlock()
	if first {
		for _, h := range w.hooks {
			h.Begin()
		}
	}
	return sync.OnceFunc(func() {
		w.mu.Lock()
		w.windows--
		last := w.windows == 0
		if last {
			w.sample(time.Now())
			w.measured += time.Since(w.since)
			w.inAll, w.outAll = w.inAll+w.in.Load()-w.inAt, w.outAll+w.out.Load()-w.outAt
		}
		w.mu.Unlock()
		if last {
			for _, h := range w.hooks {
				h.End()
			}
		}
	})
}

// Follow takes a sample every interval while something is measured, until ctx ends.
func (w *Watch) Follow(ctx context.Context, interval time.Duration) {
	if w == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
		w.mu.Lock()
		if w.windows > 0 {
			w.sample(time.Now())
		}
		w.mu.Unlock()
	}
}

// sample takes one, of what was since the last.
func (w *Watch) sample(now time.Time) {
	span := now.Sub(w.lastAt).Seconds()
	if span < leastSample.Seconds() && len(w.samples) > 0 {
		return
	}
	in, out := w.in.Load(), w.out.Load()
	s := Sample{Seconds: (w.measured + now.Sub(w.since)).Seconds()}
	if span > 0 {
		s.In, s.Out = float64(in-w.lastIn)/span, float64(out-w.lastOut)/span
	}
	s.P50MS, s.P99MS = percentiles(w.recent)
	w.recent = w.recent[:0]
	w.lastAt, w.lastIn, w.lastOut, w.last = now, in, out, s
	w.samples = append(w.samples, s)
}

// leastSample is how long a sample is at least, but for the first: a shorter one says nothing of a rate.
const leastSample = 100 * time.Millisecond

func percentiles(times []float64) (p50, p99 float64) {
	if len(times) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return statistics.Percentile(sorted, 0.50), statistics.Percentile(sorted, 0.99)
}

// State gives how far it has come, with the percentiles of all calls so far.
func (w *Watch) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := State{Stage: w.stage, Done: w.done, Total: w.total, Throttling: w.throttle, Sample: w.last}
	s.P50MS, s.P99MS = percentiles(w.times)
	return s
}

// Measured is how many messages were counted while something was measured, on the side that counted more.
func (w *Watch) Measured() float64 {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return float64(max(w.inAll, w.outAll))
}

// Samples gives all samples, and what was counted on the client's side.
func (w *Watch) Samples() (samples []Sample, in, out int64) {
	if w == nil {
		return nil, 0, 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.samples), w.in.Load(), w.out.Load()
}
