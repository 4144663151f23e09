package server //nolint:testpackage // The cache is not exported.

import (
	"testing"

	"github.com/parley-broker/parley/internal/mail/spool"
)

// What came first leaves first: to drop it for what comes would have every body read again.
func TestAFullBodyCacheKeepsWhatCameFirst(t *testing.T) {
	t.Parallel()
	c := newBodyCache(100)
	for id := range int64(6) {
		c.keep(id, spool.Pieces{make([]byte, 15), make([]byte, 10)}, 1)
	}
	for id := range int64(6) {
		if kept := c.of(id) != nil; kept != (id < 4) {
			t.Errorf("body %d of 6 is there: %v; 4 have room", id, kept)
		}
	}
	c.finish(0, 1)
	c.keep(6, spool.Pieces{make([]byte, 25)}, 1)
	if c.of(6) == nil || c.of(1) == nil {
		t.Error("a body that was forgotten did not make room")
	}
}
