package host

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// Host is a host that this node serves.
type Host struct {
	server *Server
	name   string
	pool   *pgxpool.Pool
	logger *slog.Logger

	settings atomic.Pointer[configuration]
	reload   *signal
	problems problems
	counts   counts
	gate     gate
	throttle *throttle

	// locations is read and changed by follow alone.
	locations map[string]*runningLocation
	// intakes are those of locations that take in, for the governor.
	intakes   atomic.Pointer[[]*intake]
	ports     *ports
	leases    *leases
	completer *completer
	requests  *requests
	runner    *orchestrator.Runner
}

func newHost(s *Server, name string) *Host {
	h := &Host{
		server: s, name: name, pool: s.config.Pool, logger: s.config.Logger.With("host", name), reload: newSignal(),
		locations: map[string]*runningLocation{}, problems: problems{changed: newSignal()},
	}
	h.throttle = newThrottle(h)
	h.leases = newLeases(h)
	h.completer = newCompleter(h)
	h.requests = newRequests(h)
	h.ports = newPorts(h)
	h.runner = newRunner(h)
	return h
}

// run serves the host until ctx ends. Then it takes nothing more, finishes what is in its hands for as long as it may, and gives the rest
// back.
func (h *Host) run(ctx context.Context) {
	if !h.enter(ctx) {
		return
	}
	h.logger.Info("the host is served", "node", h.server.config.Node)
	defer h.logger.Info("the host is served no more", "node", h.server.config.Node)
	// Leases are renewed and outcomes recorded behind the end of ctx, until nothing is in hand any more.
	outlasting, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var keeping, working sync.WaitGroup
	keeping.Go(func() { h.leases.keep(outlasting) })
	keeping.Go(func() { h.completer.run(outlasting) })
	keeping.Go(func() { h.reportUntil(outlasting) })
	keeping.Go(func() { h.requests.run(outlasting) })
	working.Go(func() { h.follow(ctx) })
	working.Go(func() { h.claim(ctx, outlasting) })
	working.Go(func() { h.fireTimers(ctx) })
	working.Wait()
	h.ports.drain(h.server.config.Drain)
	h.completer.flush(flushTime)
	h.requests.flush(flushTime)
	end()
	keeping.Wait()
	h.reportEnd(context.WithoutCancel(ctx))
}

// follow uses each new configuration, until ctx ends, and then ends the locations.
func (h *Host) follow(ctx context.Context) {
	failures := backoff.NewFailures(h.logger, "the definitions of the host cannot be read")
	defer h.endLocations()
	for {
		pause := configurationInterval * 12 // the server says when there is a new one
		err := h.readConfiguration(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			h.problems.set(problemConfiguration, "host", h.name, err)
			if pgdb.SQLState(err) == "PF001" { // it is there no more, or may not be served
				h.settings.Store(nil)
				h.useLocations(ctx, &configuration{})
				h.ports.use(&configuration{})
			}
			pause = failures.Failed(err)
		default:
			h.problems.set(problemConfiguration, "host", h.name, nil)
			failures.Succeeded()
		}
		h.reload.wait(ctx, pause)
	}
}

// readConfiguration reads the configuration, and uses it where it is new.
func (h *Host) readConfiguration(ctx context.Context) error {
	reading, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	written, err := flowstore.Configuration(reading, h.pool, h.name)
	if err != nil {
		return err
	}
	used := h.settings.Load()
	fresh, err := readConfiguration(written, h.server.maps)
	if err != nil {
		return err
	}
	if used != nil && used.Version == fresh.Version {
		// Something that was missing on this node, such as a secret, may be there now.
		h.retryLocations(ctx, used)
		h.ports.use(used)
		return nil
	}
	h.settings.Store(fresh)
	h.useLocations(ctx, fresh)
	h.ports.use(fresh)
	h.logger.Info("the definitions are used", "version", fresh.Version)
	return nil
}

// flushTime is how long a node that stops records what it has sent behind its time to finish.
const flushTime = 5 * time.Second

// gate is closed for a while after each failure of the database, longer with each in a row, so that nothing tries without a pause.
type gate struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// observe takes the outcome of a statement.
func (g *gate) observe(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		g.failures, g.until = 0, time.Time{}
		return
	}
	g.failures++
	g.until = time.Now().Add(backoff.Statement.Pause(g.failures))
}

// closedFor gives how long it is closed yet.
func (g *gate) closedFor() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Until(g.until)
}

// guarded runs something of an adapter or a pipeline, of which a panic is an error.
func guarded(do func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = &panicked{reason}
		}
	}()
	return do()
}

// panicked is the error of what has failed in an unforeseen way.
type panicked struct{ reason any }

func (p *panicked) Error() string { return fmt.Sprintf("internal error: %v", p.reason) }
