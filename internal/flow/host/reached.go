package host

import (
	"context"

	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// unreachable takes that the destination of a port is away, and gives back what waits for it.
func (ps *ports) unreachable(p *port) {
	ps.mu.Lock()
	p.isFailed = true
	ps.mu.Unlock()
	ps.giveBackAll(p)
}

// reached takes that the destination of a port is there. After a failure the database is told, so that all that waits for the port goes on.
func (ps *ports) reached(p *port) {
	ps.mu.Lock()
	wasFailed := p.isFailed
	p.isFailed = false
	ps.mu.Unlock()
	if !wasFailed {
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
