package activation

import (
	"context"
	"errors"
)

// A portion bounds how many queues one scan reads, so that a server on which a scan of all takes too long has each of them scanned all the
// same. A scan that was cut off ends its session, and the next one would read as much and begin anew.
type portion struct {
	// most is the number of queues; 0 is all of them.
	most int
}

// isFull reports whether a scan of so many queues takes no more.
func (p *portion) isFull(queues int) bool { return p.most > 0 && queues >= p.most }

// failed halves the portion when a scan of so many queues took too long.
func (p *portion) failed(queues int, err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		p.most = max(1, queues/2)
	}
}

// succeeded doubles the portion after a full one, until it is that of all queues.
func (p *portion) succeeded(queues, all int) {
	if !p.isFull(queues) {
		return
	}
	if p.most *= 2; p.most >= all {
		p.most = 0
	}
}
