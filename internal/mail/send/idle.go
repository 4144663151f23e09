package send

import (
	"sync"
	"time"
)

// idleWays are open ways that wait for another message to their hop.
type idleWays struct {
	mu     sync.Mutex
	ways   map[Hop][]*idleWay
	closed bool
}

type idleWay struct {
	way   Way
	timer *time.Timer
}

func newIdleWays() *idleWays { return &idleWays{ways: make(map[Hop][]*idleWay)} }

// take is an open way to a hop, or nil.
func (w *idleWays) take(hop Hop) Way {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kept := w.ways[hop]; len(kept) > 0; kept = w.ways[hop] {
		last := kept[len(kept)-1]
		w.forget(hop, last)
		if last.timer.Stop() {
			return last.way
		}
	}
	return nil
}

// keep keeps a way for a while, and then closes it.
func (w *idleWays) keep(hop Hop, way Way, idle time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		way.Close()
		return
	}
	kept := &idleWay{way: way}
	kept.timer = time.AfterFunc(idle, func() {
		w.mu.Lock()
		w.forget(hop, kept)
		w.mu.Unlock()
		way.Close()
	})
	w.ways[hop] = append(w.ways[hop], kept)
}

// forget removes a way. The caller holds mu.
func (w *idleWays) forget(hop Hop, gone *idleWay) {
	kept := w.ways[hop]
	for i, way := range kept {
		if way == gone {
			w.ways[hop] = append(kept[:i], kept[i+1:]...)
			break
		}
	}
	if len(w.ways[hop]) == 0 {
		delete(w.ways, hop)
	}
}

// bound closes ways of a connector until there are at most so many of it.
func (w *idleWays) bound(connector string, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := 0
	for hop, ways := range w.ways {
		if connectorOf(hop) != connector {
			continue
		}
		kept += len(ways)
		for ; kept > most && len(ways) > 0; ways = w.ways[hop] {
			last := ways[len(ways)-1]
			w.forget(hop, last)
			if last.timer.Stop() {
				go last.way.Close()
			}
			kept--
		}
	}
}

// close closes all.
func (w *idleWays) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, kept := range w.ways {
		for _, way := range kept {
			if way.timer.Stop() {
				way.way.Close()
			}
		}
	}
	clear(w.ways)
}
