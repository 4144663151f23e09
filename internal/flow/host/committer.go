package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// committedMessages and committedBytes bound what one statement stores.
	committedMessages = 2000
	committedBytes    = 8 << 20
	// committers is how many statements of a location are under way at once.
	committers = 2
)

// errClosed is the error of what comes when the location has ended.
var errClosed = errors.New("the location takes in no more")

// committer stores what calls of Take bring at the same time together: at once while nothing is under way, and otherwise all that has come
// meanwhile.
type committer struct {
	in *intake

	mu       sync.Mutex
	waiting  []*take
	underWay int
	isClosed bool
	running  sync.WaitGroup
}

func newCommitter(in *intake) *committer { return &committer{in: in} }

// commit returns when a call is stored, or has failed.
func (c *committer) commit(t *take) error {
	c.mu.Lock()
	if c.isClosed {
		c.mu.Unlock()
		return errClosed
	}
	c.waiting = append(c.waiting, t)
	if c.underWay < committers {
		c.underWay++
		c.running.Go(c.work)
	}
	c.mu.Unlock()
	return <-t.done
}

// close refuses what comes, and returns when all that came is through.
func (c *committer) close() {
	c.mu.Lock()
	c.isClosed = true
	c.mu.Unlock()
	c.running.Wait()
}

// work stores batches until none waits.
func (c *committer) work() {
	for {
		c.mu.Lock()
		batch := c.next()
		if len(batch) == 0 {
			c.underWay--
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		c.store(batch)
	}
}

// next gives the calls of the next batch. The caller holds mu.
func (c *committer) next() []*take {
	messages, size, n := 0, int64(0), 0
	for _, t := range c.waiting {
		if n > 0 && (messages+t.messages > committedMessages || size+t.bytes > committedBytes) {
			break
		}
		messages, size, n = messages+t.messages, size+t.bytes, n+1
	}
	batch := c.waiting[:n:n]
	c.waiting = c.waiting[n:]
	return batch
}

// store stores a batch, and where the database refuses something of it, each call by itself.
func (c *committer) store(batch []*take) {
	h := c.in.host
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	inputs := []*processed{}
	for _, t := range batch {
		inputs = append(inputs, t.inputs...)
	}
	began := time.Now()
	err := c.in.store(ctx, h.pool, inputs)
	if !isOfData(err) {
		h.observeCommit(time.Since(began), err)
		c.in.observe(err)
		for _, t := range batch {
			t.done <- err
		}
		return
	}
	for _, t := range batch {
		err := c.storeAlone(ctx, t)
		h.observeCommit(0, err)
		t.done <- err
	}
}

// storeAlone stores a call in a transaction, in which those of its inputs that the database refuses become failed messages.
func (c *committer) storeAlone(ctx context.Context, t *take) error {
	return pgx.BeginFunc(ctx, c.in.host.pool, func(tx pgx.Tx) error {
		t.tx = tx
		defer func() { t.tx = nil }()
		return t.storeRest(ctx)
	})
}
