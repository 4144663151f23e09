package host

import (
	"context"
	"time"

	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// reachedInterval is how often the database is notified that a port sends, without a failure on this node: another node may have failed.
const reachedInterval = 10 * time.Second

// failed takes that a port could not send.
func (ps *ports) failed(p *port) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.isFailed = true
}

// reached takes that a port has sent something. After a failure the database is notified at once, so that all that waits for the port
// goes on and its last error is over.
func (ps *ports) reached(p *port) {
	ps.mu.Lock()
	isNews := p.isFailed || time.Since(p.reported) > reachedInterval
	p.isFailed = false
	if isNews {
		p.reported = time.Now()
	}
	ps.mu.Unlock()
	if !isNews {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	if err := flowstore.Reached(ctx, ps.host.pool, ps.host.name, p.name); err != nil {
		ps.host.logger.Warn("that a destination is there again could not be recorded", "send_port", p.name, "error", err)
	}
}

// tryAgain has what waits for its next attempt at ports tried at once: their definitions were mended, and this node uses them now.
func (ps *ports) tryAgain(names []string) {
	for _, name := range names {
		ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
		err := flowstore.TryAgain(ctx, ps.host.pool, ps.host.name, name)
		cancel()
		if err != nil {
			ps.host.logger.Warn("what waits for the port is tried at its time only", "send_port", name, "error", err)
		}
	}
}
