// Package groupcommit hands arriving messages to the store in batches: at once while nothing is under way, and otherwise up to a number of
// messages, or those of a short time, in one transaction.
package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/spool"
)

// Arrival is a message that has come, and waits for its commit.
type Arrival struct {
	Envelope message.Envelope
	Body     *spool.Body
}

// Batch stores messages in one transaction, and returns their numbers in order once it is durable. An error means that none is stored, as
// far as is known. It must not wait beyond its context.
type Batch func(ctx context.Context, arrivals []Arrival) ([]int64, error)

// Options are how messages are collected. Zero values are the defaults.
type Options struct {
	Most       int              // messages of a batch: 40
	Bytes      int64            // bytes of a batch, beyond which no further message is added: 8 MB
	Wait       time.Duration    // how long a message waits for others while batches are under way: 100 ms
	Concurrent int              // batches under way at a time: [Writers]
	Limit      time.Duration    // how long a batch may take: 60 s
	IsAlone    func(error) bool // whether an error may be that of one message, so that each is tried alone; nothing means never
	// Observe learns of each batch, for metrics.
	Observe func(messages int, took time.Duration, err error)
}

// Committer collects messages into batches. Accept may be called by any number of goroutines.
type Committer struct {
	batch   Batch
	options Options

	mu       sync.Mutex
	waiting  []*entry
	underWay int   // batches
	inBatch  int   // messages of them
	bytes    int64 // of the bodies of all messages that are not durable yet
	timer    *time.Timer
	isClosed bool
	running  sync.WaitGroup
}

type entry struct {
	arrival Arrival
	since   time.Time
	done    chan struct{}
	id      int64
	err     error
}

// ErrClosed is returned to those who come after Close.
var ErrClosed = errors.New("no more messages are taken: the server is stopping")

// New gives a Committer over a function that stores a batch.
func New(batch Batch, options Options) *Committer {
	options.Most = orDefault(options.Most, 40)
	options.Bytes = orDefault(options.Bytes, 8<<20)
	options.Wait = orDefault(options.Wait, 100*time.Millisecond)
	options.Concurrent = orDefault(options.Concurrent, Writers())
	options.Limit = orDefault(options.Limit, time.Minute)
	return &Committer{batch: batch, options: options}
}

// Writers is how many batches are under way at a time where nothing else is said, each in a connection: one for two cores, and 4 at least
// (spec hub-transport 13).
func Writers() int { return max(runtime.NumCPU()/2, 4) }

func orDefault[T int | int64 | time.Duration](value, standard T) T {
	if value == 0 {
		return standard
	}
	return value
}

// Accept stores a message and returns its number when it is durable. It waits for the outcome whatever happens to the caller: the
// message is in a transaction, and only its end says what became of it.
func (c *Committer) Accept(envelope message.Envelope, body *spool.Body) (int64, error) {
	e := &entry{arrival: Arrival{Envelope: envelope, Body: body}, since: time.Now(), done: make(chan struct{})}
	c.mu.Lock()
	if c.isClosed {
		c.mu.Unlock()
		return 0, ErrClosed
	}
	c.waiting = append(c.waiting, e)
	size := int64(0)
	if body != nil {
		size = body.Size()
	}
	c.bytes += size
	c.startDue()
	c.mu.Unlock()
	<-e.done
	c.mu.Lock()
	c.bytes -= size
	c.mu.Unlock()
	return e.id, e.err
}

// Waiting gives how many messages wait for a batch or are in one: the write units that are not durable yet.
func (c *Committer) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) + c.inBatch
}

// WaitingBytes gives how many bytes the bodies of these messages have.
func (c *Committer) WaitingBytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// Close refuses new messages, and returns when those that have come are through.
func (c *Committer) Close() {
	c.mu.Lock()
	c.isClosed = true
	if c.timer != nil && c.timer.Stop() {
		c.running.Done()
	}
	c.startDue()
	c.mu.Unlock()
	c.running.Wait()
}

// startDue starts what batches are due. The caller holds mu.
func (c *Committer) startDue() {
	for len(c.waiting) > 0 && c.underWay < c.options.Concurrent {
		left := c.options.Wait - time.Since(c.waiting[0].since)
		n, isFull := c.next()
		isDue := c.isClosed || c.underWay == 0 || isFull || left <= 0
		if !isDue {
			c.startLater(left)
			return
		}
		entries := c.waiting[:n:n]
		c.waiting = c.waiting[n:]
		c.underWay++
		c.inBatch += n
		c.running.Add(1)
		go c.run(entries)
	}
}

// next gives how many messages the next batch has now, and whether it takes no more. The caller holds mu.
func (c *Committer) next() (n int, isFull bool) {
	bytes := int64(0)
	for _, e := range c.waiting[:min(len(c.waiting), c.options.Most)] {
		if bytes >= c.options.Bytes {
			break
		}
		if e.arrival.Body != nil {
			bytes += e.arrival.Body.Size()
		}
		n++
	}
	return n, n == c.options.Most || bytes >= c.options.Bytes
}

// startLater has the oldest message go when it has waited long enough. The caller holds mu.
func (c *Committer) startLater(left time.Duration) {
	if c.timer != nil {
		return
	}
	c.running.Add(1)
	c.timer = time.AfterFunc(left, func() {
		defer c.running.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timer = nil
		c.startDue()
	})
}

func (c *Committer) run(entries []*entry) {
	defer c.running.Done()
	c.store(entries)
	c.mu.Lock()
	c.underWay--
	c.inBatch -= len(entries)
	c.startDue()
	c.mu.Unlock()
}

// store has a batch stored and reports its outcome to each. Where one message may have failed all, each is tried by itself.
func (c *Committer) store(entries []*entry) {
	ids, err := c.call(entries)
	if err != nil && len(entries) > 1 && c.options.IsAlone != nil && c.options.IsAlone(err) {
		for i := range entries {
			c.store(entries[i : i+1])
		}
		return
	}
	for i, e := range entries {
		if e.err = err; err == nil {
			e.id = ids[i]
		}
		close(e.done)
	}
}

func (c *Committer) call(entries []*entry) (ids []int64, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), c.options.Limit)
	defer cancel()
	defer func() {
		if panicked := recover(); panicked != nil {
			ids, err = nil, fmt.Errorf("storing messages failed: %v", panicked)
		}
		if err == nil && len(ids) != len(entries) {
			ids, err = nil, fmt.Errorf("the store returned %d numbers for %d messages", len(ids), len(entries))
		}
		if c.options.Observe != nil {
			c.options.Observe(len(entries), time.Since(began), err)
		}
	}()
	arrivals := make([]Arrival, len(entries))
	for i, e := range entries {
		arrivals[i] = e.arrival
	}
	return c.batch(ctx, arrivals)
}
