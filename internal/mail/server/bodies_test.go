package server // The cache is not exported.

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-broker/parley/internal/mail/spool"
)

// The body that came first leaves first: to drop it for the next would have every body read again.
func TestAFullBodyCacheKeepsWhatCameFirst(t *testing.T) {
	t.Parallel()
	c := newBodyCache(100_000)
	c.keep(7, spool.Pieces{make([]byte, smallestKept)})
	for id := range int64(6) {
		c.keep(id, spool.Pieces{make([]byte, 15_000), make([]byte, 10_000)})
	}
	for id := range int64(6) {
		if kept := c.of(id) != nil; kept != (id < 4) {
			t.Errorf("body %d of 6 is there: %v; 4 have room", id, kept)
		}
	}
	c.drop([]int64{0, 5})
	c.keep(6, spool.Pieces{make([]byte, 25_000)})
	if c.of(6) == nil || c.of(1) == nil {
		t.Error("a body that was forgotten did not make room")
	}
	if c.of(7) != nil {
		t.Error("a body that comes with its claim is kept")
	}
}

// Kept bodies are those that do not come with a claim, and have no more than a quarter of the room; while there is less room, less.
func TestABodyOfAnySizeButTheSmallestAndTheLargestIsKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size int
		most int64
		want bool
	}{{8000, 100_000, false}, {8001, 100_000, true}, {25_000, 100_000, true}, {25_001, 100_000, false}, {12_500, 50_000, true}, {12_501, 50_000, false}} {
		b := newBodyCache(100_000)
		b.resize(c.most)
		b.keep(1, spool.Pieces{make([]byte, c.size)})
		if got := b.of(1) != nil; got != c.want {
			t.Errorf("of %d bytes in %d: %v", c.size, c.most, got)
		}
	}
}

// When there is no room the oldest go that have waited for 30 seconds, as they wait for a hop that does not answer.
func TestAStaleBodyMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBodyCache(100_000)
		put := func(ids ...int64) {
			for _, id := range ids {
				b.keep(id, spool.Pieces{make([]byte, 25_000)})
			}
		}
		there := func(ids ...int64) {
			t.Helper()
			for id := range int64(9) {
				is := false
				for _, one := range ids {
					is = is || one == id
				}
				if (b.bodies[id] != nil) != is {
					t.Errorf("body %d is there: %v", id, !is)
				}
			}
		}
		pass := func(duration time.Duration) {
			select {
			case <-time.After(duration):
			case <-t.Context().Done():
			}
		}
		put(0, 1)
		pass(time.Second)
		put(2, 3)
		pass(29*time.Second - 1)
		put(4)
		there(0, 1, 2, 3)
		pass(1)
		put(5)
		there(1, 2, 3, 5)
		put(1) // It is there.
		put(6, 7)
		there(2, 3, 5, 6)
		if bytes, most := b.size(); bytes != 100_000 || most != 100_000 || b.dehydrated.Load() != 2 {
			t.Errorf("%d of %d bytes are kept, %d were dropped", bytes, most, b.dehydrated.Load())
		}
		b.resize(60_000)
		there(5, 6)
		if bytes, most := b.size(); bytes != 50_000 || most != 60_000 || b.dehydrated.Load() != 4 {
			t.Errorf("%d of %d bytes are kept, %d were dropped", bytes, most, b.dehydrated.Load())
		}
	})
}
