package tcp

import (
	"context"
	"sync"
)

// budget is the memory that the bodies of a location have together while they wait to be stored.
type budget struct {
	turn sync.Mutex // of those that wait: a large body is not passed by small ones for ever

	mu       sync.Mutex
	free     int64
	returned chan struct{} // closed when something comes back and somebody waits
}

func newBudget(bytes int64) *budget { return &budget{free: bytes} }

// take waits until there are so many bytes. The whole budget has room for each body.
func (b *budget) take(ctx context.Context, bytes int64) error {
	b.turn.Lock()
	defer b.turn.Unlock()
	for {
		b.mu.Lock()
		if b.free >= bytes {
			b.free -= bytes
			b.mu.Unlock()
			return nil
		}
		returned := make(chan struct{})
		b.returned = returned
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-returned:
		}
	}
}

func (b *budget) giveBack(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += bytes
	if b.returned != nil {
		close(b.returned)
		b.returned = nil
	}
}
