package pairing

import (
	"context"
	"sync"
	"time"
)

// gate knows whether a pairing is open. Each caller gets an answer that was read after its question, and questions share one poll: they
// wait for the next one, and polls are some time apart. So a pairing that has just been opened is known, and unknown peers cannot make
// the databases busy.
type gate struct {
	mu      sync.Mutex
	next    *poll // which has not begun
	begunAt time.Time
}

// poll is one query of the databases.
type poll struct {
	done   chan struct{} // closed when isOpen is there
	isOpen bool
}

// ask returns what the next poll finds; false when ctx ends before.
func (g *gate) ask(ctx context.Context, isOpen func(context.Context) bool) bool {
	g.mu.Lock()
	l := g.next
	if l == nil {
		l = &poll{done: make(chan struct{})}
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

func (g *gate) run(l *poll, isOpen func(context.Context) bool) {
	defer close(l.done)
	g.mu.Lock()
	// Callers from now on need a poll that begins later.
	g.next, g.begunAt = nil, time.Now()
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), pollTimeout)
	defer cancel()
	l.isOpen = isOpen(ctx)
}

// calls counts the calls of each host in a period. Its zero value is ready.
type calls struct {
	mu      sync.Mutex
	begunAt time.Time
	of      map[string]int
}

// hostsMost bounds the memory: hosts beyond share one count.
const hostsMost = 10_000

// allow counts a call of a host, and reports whether it is answered.
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
