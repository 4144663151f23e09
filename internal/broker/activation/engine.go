package activation

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/daemon"
)

// statementTimeout bounds each statement of the engine itself.
const statementTimeout = 10 * time.Second

// idsMax is how many notified ids may wait for the monitor.
const idsMax = 4096

// Engine activates the queues of one database while the daemon leads it.
type Engine struct {
	daemon.Simple

	config   Config
	sessions *sessions
	// reading are the readers of all terms.
	reading sync.WaitGroup
	// needsSessions is whether there are queues that need warm sessions.
	needsSessions atomic.Bool
}

var _ daemon.LedPart = (*Engine)(nil)

// Run keeps sessions for procedures until ctx ends, which is after the last term. Then it waits for readers: they leave, or are cut off
// when the time of grace is over.
func (e *Engine) Run(ctx context.Context) error {
	e.sessions.tend(ctx, e.needsSessions.Load)
	e.reading.Wait()
	e.sessions.cleaning.Wait()
	return nil
}

// Lead starts readers until ctx ends or the term is over; then they are asked to leave. Failures of the database or of readers are
// logged and tried again.
func (e *Engine) Lead(ctx context.Context, term *daemon.Term) {
	starters := maps.Clone(e.config.Starters)
	if starters == nil {
		starters = map[string]Starter{}
	}
	starters[KindProcedure] = &procedures{config: e.config, sessions: e.sessions, term: term}
	subscription := term.Notifier.Subscribe(idsMax)
	defer subscription.Close()
	newMonitor(e, term, subscription, starters).watch(ctx)
}
