package server

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// bodyCache keeps bodies of messages by number, up to a number of bytes. When it is full the oldest go first: they wait for a hop that
// does not answer, and are read again when it does.
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
	bytes []byte
}

func newBodyCache(limit int64) *bodyCache {
	return &bodyCache{limit: limit, order: list.New(), bodies: make(map[int64]*list.Element)}
}

// keep keeps a body, which nobody changes from now on.
func (c *bodyCache) keep(id int64, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.bodies[id]; there || int64(len(body)) > c.limit/4 {
		return
	}
	c.bodies[id] = c.order.PushBack(keptBody{id: id, bytes: body})
	c.bytes += int64(len(body))
	c.shrink(c.limit)
}

// of is a body, or nil.
func (c *bodyCache) of(id int64) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, there := c.bodies[id]
	if !there {
		c.misses.Add(1)
		return nil
	}
	c.hits.Add(1)
	return element.Value.(keptBody).bytes
}

// forget drops a body.
func (c *bodyCache) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, there := c.bodies[id]; there {
		c.remove(element)
	}
}

func (c *bodyCache) shrink(limit int64) {
	for c.bytes > limit {
		c.remove(c.order.Front())
	}
}

func (c *bodyCache) remove(element *list.Element) {
	kept := element.Value.(keptBody)
	c.order.Remove(element)
	delete(c.bodies, kept.id)
	c.bytes -= int64(len(kept.bytes))
}
