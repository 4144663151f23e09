package link

import (
	"context"
	"slices"
	"sync"
)

// class parts questions, so that large messages leave room for small ones.
type class int

const (
	forBatches class = iota
	forFragments
	classes
)

// gauge admits questions as the window of the far side allows: what is open together never exceeds it, but that a single one is
// always let through. Within a class they are admitted in the order in which they came. Fragments have at most half of the window;
// when both classes wait, the one that has less of it open comes first, so neither starves.
type gauge struct {
	mu      sync.Mutex
	window  int64
	used    [classes]int64
	waiting [classes][]*waiter
}

type waiter struct {
	cost     int64
	admitted chan struct{} // closed when its cost counts
}

// acquire waits until there is room, ctx ends, or the connection does.
func (g *gauge) acquire(ctx context.Context, c class, cost int64, done <-chan struct{}) bool {
	w := &waiter{cost: cost, admitted: make(chan struct{})}
	g.mu.Lock()
	g.waiting[c] = append(g.waiting[c], w)
	g.admit()
	g.mu.Unlock()
	select {
	case <-w.admitted:
		return true
	case <-ctx.Done():
	case <-done:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting[c], w); i >= 0 {
		g.waiting[c] = slices.Delete(g.waiting[c], i, i+1)
	} else {
		g.used[c] -= cost
	}
	g.admit()
	return false
}

func (g *gauge) release(c class, cost int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used[c] -= cost
	g.admit()
}

// grant changes the window.
func (g *gauge) grant(window int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.window = window
	g.admit()
}

// state reports how much is open, of how much, and whether a request waits.
func (g *gauge) state() (open, window int64, isWaiting bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used[forBatches] + g.used[forFragments], g.window, len(g.waiting[forBatches])+len(g.waiting[forFragments]) > 0
}

func (g *gauge) admit() {
	for {
		c, found := g.next()
		if !found {
			return
		}
		w := g.waiting[c][0]
		open := g.used[forBatches] + g.used[forFragments]
		if open > 0 && open+w.cost > g.window {
			return
		}
		g.waiting[c] = g.waiting[c][1:]
		g.used[c] += w.cost
		close(w.admitted)
	}
}

// next is the class whose turn it is.
func (g *gauge) next() (class, bool) {
	batches := len(g.waiting[forBatches]) > 0
	fragments := len(g.waiting[forFragments]) > 0 &&
		(g.used[forFragments] == 0 || g.used[forFragments]+g.waiting[forFragments][0].cost <= g.window/2)
	switch {
	case batches && fragments && g.used[forFragments] < g.used[forBatches]:
		return forFragments, true
	case batches:
		return forBatches, true
	case fragments:
		return forFragments, true
	default:
		return 0, false
	}
}
