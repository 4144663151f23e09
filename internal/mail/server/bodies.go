package server

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/mail/spool"
)

// bodyStale is how long a body may wait before it makes room for others: it is for a hop that does not answer.
const bodyStale = 30 * time.Second

// bodyCache keeps bodies of messages by number, up to a number of bytes. When it is full what is stale goes; else what comes is not kept:
// those that came before leave before, and to drop one of them for each that comes would have all of them read again.
type bodyCache struct {
	limit int64

	mu     sync.Mutex
	bytes  int64
	order  *list.List
	bodies map[int64]*list.Element
	// hits and misses count how often a body was there, and was not.
	hits, misses atomic.Int64
}

type keptBody struct {
	id    int64
	body  spool.Pieces
	bytes int64
	since time.Time
}

func newBodyCache(limit int64) *bodyCache {
	return &bodyCache{limit: limit, order: list.New(), bodies: make(map[int64]*list.Element)}
}

// keep keeps a body, which nobody changes from now on.
func (c *bodyCache) keep(id int64, body spool.Pieces) {
	size := body.Size()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.bodies[id]; there || size > c.limit/4 {
		return
	}
	for c.bytes+size > c.limit {
		oldest := c.order.Front()
		if time.Since(oldest.Value.(keptBody).since) < bodyStale {
			return
		}
		c.remove(oldest)
	}
	c.bodies[id] = c.order.PushBack(keptBody{id: id, body: body, bytes: size, since: time.Now()})
	c.bytes += size
}

// of is a body, or nil.
func (c *bodyCache) of(id int64) spool.Pieces {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, there := c.bodies[id]
	if !there {
		c.misses.Add(1)
		return nil
	}
	c.hits.Add(1)
	return element.Value.(keptBody).body
}

// forget drops a body.
func (c *bodyCache) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, there := c.bodies[id]; there {
		c.remove(element)
	}
}

func (c *bodyCache) remove(element *list.Element) {
	kept := element.Value.(keptBody)
	c.order.Remove(element)
	delete(c.bodies, kept.id)
	c.bytes -= kept.bytes
}
