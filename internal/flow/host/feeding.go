package host

import (
	"sync"
	"time"
)

// bringsCorrelations is of locations whose messages something waits for.
const bringsCorrelations = "correlations"

const (
	// fedFor is how long a port counts as fed by a location.
	fedFor = time.Minute
	// pauseMost is the longest delay of a location for ports that are paused.
	pauseMost = 30 * time.Second
)

// feeding has the send ports to which the messages of a location went of late. A location whose messages go to paused ports alone is
// delayed: others would not notice that a destination is away. A batch a minute goes through, and shows whether that is still so.
type feeding struct {
	mu   sync.Mutex
	fed  map[int64]time.Time // by port; 0 stands for those that are not known
	wait time.Duration
}

func newFeeding() *feeding { return &feeding{fed: map[int64]time.Time{}} }

// feed takes that a message went to some ports; none stands for ports that are not known, and for waiters that are no ports.
func (f *feeding) feed(ports []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if len(ports) == 0 {
		f.fed[0] = now
	}
	for _, port := range ports {
		f.fed[port] = now
	}
}

// delay is how long each intake is delayed now.
func (f *feeding) delay() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wait
}

// ease lets the delay grow while all ports that are fed are paused, and ends it otherwise. It reports whether there is one.
func (f *feeding) ease(paused map[int64]bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	areAll, fed := true, 0
	for port, at := range f.fed {
		if time.Since(at) > fedFor {
			delete(f.fed, port)
			continue
		}
		fed++
		areAll = areAll && paused[port]
	}
	if !areAll || fed == 0 {
		f.wait = 0
		return false
	}
	f.wait = min(f.wait+max(delayStep, f.wait/4), pauseMost)
	return true
}
