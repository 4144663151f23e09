package pairing

import (
	"context"
	"sync"
	"time"
)

// gate knows whether anybody is let in. Each who asks gets an answer that is younger than his question, but questions share it: they
// wait for the next look, and looks are some time apart. So a pairing that has just been opened is known, and strangers cannot make
// the databases busy.
type gate struct {
	mu      sync.Mutex
	next    *look // which has not begun
	begunAt time.Time
}

// look is one question to the databases.
type look struct {
	done   chan struct{} // closed when isOpen is there
	isOpen bool
}

// ask gives what the next look finds; false when ctx ends before.
func (g *gate) ask(ctx context.Context, isOpen func(context.Context) bool) bool {
	g.mu.Lock()
	l := g.next
	if l == nil {
		l = &look{done: make(chan struct{})}
		g.next = l
		wait := gateInterval - time.Since(g.begunAt)
		time.AfterFunc(max(wait, 0), func() { g.run(l, isOpen) })
	}
	g.mu.Unlock()
	select {
	case <-l.done:
		return l.isOpen
	case <-ctx.Done():
		return false
	}
}

func (g *gate) run(l *look, isOpen func(context.Context) bool) {
	defer close(l.done)
	g.mu.Lock()
	// Who asks from now on wants to know of what happens from now on.
	g.next, g.begunAt = nil, time.Now()
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	l.isOpen = isOpen(ctx)
}

// calls counts how often somebody has called in a period, by where he comes from. Its zero value is ready.
type calls struct {
	mu      sync.Mutex
	begunAt time.Time
	of      map[string]int
}

// hostsMost bounds the memory: hosts beyond share one count.
const hostsMost = 10_000

// allow counts a call of a host, and tells whether it is to be heard.
func (c *calls) allow(host string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.begunAt) >= callsPeriod {
		c.begunAt, c.of = now, map[string]int{}
	}
	if _, isKnown := c.of[host]; !isKnown && len(c.of) >= hostsMost {
		host = ""
	}
	if c.of[host] >= callsMost {
		return false
	}
	c.of[host]++
	return true
}
