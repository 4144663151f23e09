package server // The cache is not exported.

import (
	"testing"

	"github.com/parley-broker/parley/internal/mail/spool"
)

// What came first leaves first: to drop it for what comes would have every body read again.
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
