package host

import (
	"sync"
	"time"
)

// span is how far back ratios of counters go.
const span = time.Minute

// Recent keeps what counters were in the last minute, for ratios of what they have grown by. The zero value is empty. It may be used by
// several goroutines.
type Recent struct {
	mu      sync.Mutex
	samples []sample
}

type sample struct {
	at     time.Time
	values map[string]float64
}

// Add records values, and gives by how much each has grown since it was recorded a minute ago, or first.
func (r *Recent) Add(now time.Time, values map[string]float64) (grown map[string]float64, over time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.samples) > 1 && now.Sub(r.samples[1].at) >= span {
		r.samples = r.samples[1:]
	}
	grown = make(map[string]float64, len(values))
	if len(r.samples) > 0 {
		oldest := r.samples[0]
		over = now.Sub(oldest.at)
		for name, value := range values {
			if before, is := oldest.values[name]; is && value > before {
				grown[name] = value - before
			}
		}
	}
	r.samples = append(r.samples, sample{at: now, values: values})
	return grown, over
}

// Ratio is one number for each of others, 0 where there are none.
func Ratio(of, each float64) float64 {
	if each <= 0 {
		return 0
	}
	return of / each
}
