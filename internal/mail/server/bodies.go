package server

import (
	"container/list"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/mail/spool"
)

// smallestKept is the size up to which a body comes with its claim, in bytes: nobody asks for it here.
const smallestKept = 8000

// bodyStale is how long a body may wait before it makes room for others: it is for a hop that does not answer.
const bodyStale = 30 * time.Second

// bodyCache keeps bodies by the message that holds them, up to a number of bytes, until the database has nobody left who needs them: it
// knows of forks, members of groups, services and reports, which nobody knows when a message arrives. When the cache is full what is stale
// goes; else what comes is not kept: those that came before leave before, and to drop one of them for each that comes would have all of
// them read again.
type bodyCache struct {
	limit int64

	mu     sync.Mutex
	most   int64 // limit, or less while memory is short
	bytes  int64
	order  *list.List
	bodies map[int64]*list.Element
	// hits and misses count how often a body was there, and was not; dehydrated, those dropped before they were delivered.
	hits, misses, dehydrated atomic.Int64
	// reads and writes count statements that read bodies from the database, and chunks or small bodies that were written.
	reads, bytesRead, writes, bytesWritten atomic.Int64
}

type keptBody struct {
	id    int64
	body  spool.Pieces
	bytes int64
	since time.Time
}

func newBodyCache(limit int64) *bodyCache {
	return &bodyCache{limit: limit, most: limit, order: list.New(), bodies: make(map[int64]*list.Element)}
}

// keep keeps a body, which nobody changes from now on.
func (c *bodyCache) keep(id int64, body spool.Pieces) {
	size := body.Size()
	if size <= smallestKept {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.bodies[id]; there || size > c.most/4 {
		return
	}
	for c.bytes+size > c.most {
		oldest := c.order.Front()
		if time.Since(oldest.Value.(*keptBody).since) < bodyStale {
			return
		}
		c.remove(oldest)
		c.dehydrated.Add(1)
	}
	c.bodies[id] = c.order.PushBack(&keptBody{id: id, body: body, bytes: size, since: time.Now()})
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
	return element.Value.(*keptBody).body
}

// wrote counts a body or a chunk that was written to the database.
func (c *bodyCache) wrote(bytes int) {
	c.writes.Add(1)
	c.bytesWritten.Add(int64(bytes))
}

// kept gives those of some holders whose bodies are here; nil means all.
func (c *bodyCache) kept(holders map[int64]bool) (ids []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if holders == nil {
		return slices.Collect(maps.Keys(c.bodies))
	}
	for id := range holders {
		if c.bodies[id] != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// drop drops bodies that nobody needs any more.
func (c *bodyCache) drop(ids []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if element := c.bodies[id]; element != nil {
			c.remove(element)
		}
	}
}

// resize changes how much the cache may hold. Bodies that are dropped now are dehydrated: they are read again when they are delivered.
func (c *bodyCache) resize(most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = most
	c.shrink()
}

// size gives how many bytes are held, and how many may be.
func (c *bodyCache) size() (bytes, most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes, c.most
}

func (c *bodyCache) shrink() {
	for c.bytes > c.most {
		c.remove(c.order.Front())
		c.dehydrated.Add(1)
	}
}

func (c *bodyCache) remove(element *list.Element) {
	kept := element.Value.(*keptBody)
	c.order.Remove(element)
	delete(c.bodies, kept.id)
	c.bytes -= kept.bytes
}
