package activation

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley"
)

// statementTimeout bounds each statement of the engine itself.
const statementTimeout = 10 * time.Second

// Engine activates the queues of one database for as long as it runs.
type Engine struct{ config Config }

// Run works until ctx ends; then it hands the leadership over, asks its readers to leave, waits for them for the time of
// grace, and cuts off the rest. Failures of the database or of readers are logged and tried again, never returned.
func (e *Engine) Run(ctx context.Context) error {
	var listening, reading sync.WaitGroup
	b := newBell(e.config)
	listening.Go(func() { b.listen(ctx) })
	var needsSessions atomic.Bool
	s := newSessions(e.config)
	listening.Go(func() { s.tend(ctx, needsSessions.Load) })

	c := &campaign{config: e.config, bell: b}
	for ctx.Err() == nil {
		t, ok := c.win(ctx)
		if !ok {
			break
		}
		starters := maps.Clone(e.config.Starters)
		if starters == nil {
			starters = map[string]Starter{}
		}
		starters[KindProcedure] = &procedures{config: e.config, sessions: s, term: t}
		e.lead(ctx, t, b, newMonitor(e.config, t, b, starters, &reading, &needsSessions))
	}
	// The readers of earlier terms may still be running: they finish what they do.
	reading.Wait()
	listening.Wait()
	s.cleaning.Wait()
	return nil
}

// lead does the leader's work until the term is over or ctx ends. Readers are asked to leave then.
func (e *Engine) lead(ctx context.Context, t *term, b *bell, m *monitor) {
	logger := e.config.Logger
	logger.Info("this daemon leads", "term", t.number)
	e.config.Observer.LeadershipChanged(true, t.number)
	defer e.config.Observer.LeadershipChanged(false, t.number)

	leading, stop := context.WithCancel(ctx)
	defer stop()
	// What the bell said to an earlier term is no news.
	signal(b.overflow)
	var working sync.WaitGroup
	working.Go(func() { t.keep(leading); stop() })
	working.Go(func() { fireTimers(leading, e.config, t, b); stop() })
	working.Go(func() { m.watch(leading); stop() })
	if e.config.Companion != nil {
		working.Go(func() { e.config.Companion(leading, t.share(b)) })
	}
	working.Wait()

	if ctx.Err() == nil {
		logger.Warn("this daemon leads no more; its readers are asked to leave", "term", t.number, "readers", m.running.Load())
	}
	// Another daemon need not wait until our readers have left: no message is given to two. When the term is over this does nothing.
	resign, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease)
	defer cancel()
	if err := parley.Resign(resign, e.config.Pool, t.number); err != nil {
		logger.Warn("the leadership could not be handed over; others have to wait for the end of the lease", "error", err)
	}
}
