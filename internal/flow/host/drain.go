package host

import (
	"context"
	"time"
)

// drain waits until all that is in hand is done, for as long as it may, and gives the rest back.
func (ps *ports) drain(most time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	for ps.count() > 0 && ctx.Err() == nil {
		ps.room.wait(ctx, 100*time.Millisecond)
	}
	ps.mu.Lock()
	ps.isOver = true
	all := []*port{}
	for _, name := range names(ps.byName) {
		all = append(all, ps.byName[name])
	}
	ps.mu.Unlock()
	for _, p := range all {
		ps.giveBackAll(p)
	}
	close(ps.ended)
	ps.work.Wait()
	retired := []*outlet{}
	ps.mu.Lock()
	for _, p := range all {
		retired = append(retired, ps.replace(p, nil)...)
	}
	ps.mu.Unlock()
	ps.close(retired)
}

func (ps *ports) count() int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.inHand
}
