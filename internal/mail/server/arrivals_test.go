package server // The batches are not exported.

import (
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/groupcommit"
	"github.com/parley-broker/parley/internal/mail/spool"
)

// A batch of large bodies takes long to write on any disk: it is no sign of a disk that is busy.
func TestTheLatencyOfACommitCountsForEachMegabyteOfBodies(t *testing.T) {
	t.Parallel()
	var seen time.Duration
	a := arrivals{committed: func(took time.Duration) { seen = took }}
	bodies := spool.New("", 0, 0)
	for _, c := range []struct{ bodies, bytes, want int }{{1, 100, 80}, {2, 512 << 10, 80}, {2, 2 << 20, 20}} {
		batch := make([]groupcommit.Arrival, c.bodies)
		for i := range batch {
			batch[i].Body = bodies.Open()
			batch[i].Body.SetHead(make([]byte, c.bytes))
		}
		a.observe(batch)(80 * time.Millisecond)
		if seen != time.Duration(c.want)*time.Millisecond {
			t.Errorf("80 ms for %d bodies of %d bytes count as %v, want %d ms", c.bodies, c.bytes, seen, c.want)
		}
	}
}
