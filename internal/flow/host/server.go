package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapters"
	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// DefaultLease is how long what a node had in its hands waits for others when it was killed.
const DefaultLease = 15 * time.Second

// DefaultDrain is how long a node that was asked to stop finishes what it has in its hands.
const DefaultDrain = 30 * time.Second

// Config holds the parts and the settings of a server. Only Pool is needed.
type Config struct {
	// Pool leads to the database, as a role that is a member of the roles of the hosts.
	Pool *pgxpool.Pool
	// Hosts are those that are served, by their names; none means all whose roles the role of the session is a member of.
	Hosts []string
	// Node distinguishes this process from others; "" means host and process id.
	Node string
	// Adapters are those that there are; the zero value means all that are built in.
	Adapters adapters.Registry
	// Compile makes programs of orchestrations; nil means [orchestrator.Compile].
	Compile func(name string, settings json.RawMessage, known process.Known) (orchestrator.Program, error)
	// Permission limits what definitions may use of this machine and its network.
	Permission adapter.Permission
	// Maps says how the workers of maps are started; the zero value finds them.
	Maps mapping.PoolConfig
	// Lease is how long what this node has in its hands is its own after it was killed; 0 means [DefaultLease].
	Lease time.Duration
	// Drain is how long the node finishes what it has in its hands when it is asked to stop; 0 means [DefaultDrain].
	Drain time.Duration
	// Poll is how often resources are measured; 0 means two seconds.
	Poll time.Duration
	// Now gives the time by which schedules open and close; nil means that of the machine.
	Now func() time.Time
	// Version is that of the program, for the list of nodes.
	Version string
	Tracer  trace.Tracer
	Logger  *slog.Logger
}

// Server serves hosts.
type Server struct {
	config    Config
	process   string // a random text of this process
	governing *governing
	maps      *mapping.Pool // for all hosts
	// fail ends the server with an error, once it runs.
	fail context.CancelCauseFunc

	mu    sync.Mutex
	hosts map[string]*Host
	hears bool // whether answers are notified now
}

// New checks the configuration. Nothing runs before [Server.Run].
func New(config Config) (*Server, error) {
	if config.Pool == nil {
		return nil, errors.New("flow: Pool is missing")
	}
	if err := config.Permission.Check(); err != nil {
		return nil, err
	}
	if config.Node == "" {
		name, err := os.Hostname()
		if err != nil {
			name = "localhost"
		}
		config.Node = fmt.Sprintf("%s:%d", name, os.Getpid())
	}
	config.Lease, config.Drain = cmp.Or(config.Lease, DefaultLease), cmp.Or(config.Drain, DefaultDrain)
	if len(config.Adapters.Kinds()) == 0 {
		config.Adapters = adapters.All()
	}
	if config.Tracer == nil {
		config.Tracer = noop.NewTracerProvider().Tracer("")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	s := &Server{config: config, process: rand.Text(), hosts: map[string]*Host{}, maps: mapping.NewPool(config.Maps)}
	s.governing = newGoverning(s)
	return s, nil
}

// Prepare asks whether the hosts that are named may be served.
func (s *Server) Prepare(ctx context.Context) error {
	for _, name := range s.config.Hosts {
		written, err := flowstore.Configuration(ctx, s.config.Pool, name)
		if err != nil {
			return fmt.Errorf("serve host %q: %w", name, err)
		}
		if _, err := readConfiguration(written, s.maps); err != nil {
			s.config.Logger.Warn("the definitions cannot be used yet", "host", name, "error", err)
		}
	}
	_, err := flowstore.ConfigurationVersion(ctx, s.config.Pool)
	if pgdb.SQLState(err) == "3F000" {
		return errors.New("prepare integration: schema parley_flow is not installed: run parley install with the same --dsn")
	}
	if err != nil {
		return fmt.Errorf("prepare integration: %w", err)
	}
	return nil
}

// Close gives back what Prepare has opened, and ends the workers of maps.
func (s *Server) Close() { s.maps.Close() }

// Run serves hosts until ctx ends, and then finishes what it has in its hands, for as long as Drain says. It fails when another process
// serves one of them under the same name of a node.
func (s *Server) Run(outer context.Context) error {
	ctx, fail := context.WithCancelCause(outer)
	defer fail(nil)
	s.fail = fail
	var parts sync.WaitGroup
	changed := newSignal()
	parts.Go(func() { s.listen(ctx, changed) })
	parts.Go(func() { s.governing.run(ctx) })
	parts.Go(func() { s.maintain(ctx) })
	s.follow(ctx, changed)
	parts.Wait()
	if outer.Err() == nil {
		return fmt.Errorf("serve as node %q: %w", s.config.Node, context.Cause(ctx))
	}
	return nil
}

// follow starts hosts as they come to be served, and has them read their configuration when it changes, until ctx ends.
func (s *Server) follow(ctx context.Context, changed *signal) {
	var running sync.WaitGroup
	defer running.Wait()
	failures := backoff.NewFailures(s.config.Logger, "the definitions of integration cannot be read")
	version, listed := int64(0), time.Time{}
	for ctx.Err() == nil {
		pause := configurationInterval
		found, err := s.version(ctx)
		if err == nil && (found != version || time.Since(listed) > time.Minute) {
			if err = s.startHosts(ctx, &running); err == nil {
				for _, host := range s.served() {
					host.reload.send()
				}
				version, listed = found, time.Now()
			}
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = failures.Failed(err)
		default:
			failures.Succeeded()
		}
		changed.wait(ctx, pause)
	}
}

func (s *Server) version(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return flowstore.ConfigurationVersion(ctx, s.config.Pool)
}

// startHosts starts those hosts that are to be served and are not yet.
func (s *Server) startHosts(ctx context.Context, running *sync.WaitGroup) error {
	wanted := s.config.Hosts
	if len(wanted) == 0 {
		asking, cancel := context.WithTimeout(ctx, statementTimeout)
		defer cancel()
		var err error
		if wanted, err = flowstore.ServableHosts(asking, s.config.Pool); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range wanted {
		if s.hosts[name] != nil {
			continue
		}
		host := newHost(s, name)
		host.requests.isDeaf = !s.hears
		s.hosts[name] = host
		running.Go(func() { host.run(ctx) })
	}
	return nil
}

// served gives the hosts.
func (s *Server) served() []*Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	hosts := make([]*Host, 0, len(s.hosts))
	for _, name := range names(s.hosts) {
		hosts = append(hosts, s.hosts[name])
	}
	return hosts
}

// maintain sees to leases that ran out, counters and retentions, until ctx ends.
func (s *Server) maintain(ctx context.Context) {
	failures := backoff.NewFailures(s.config.Logger, "integration cannot be maintained")
	failing := map[string]string{}
	for ctx.Err() == nil {
		pause := backoff.Jitter(maintenanceInterval, 0.2)
		working, cancel := context.WithTimeout(ctx, statementTimeout)
		failed, err := flowstore.Maintain(working, s.config.Pool)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = failures.Failed(err)
		default:
			failures.Succeeded()
			for task, text := range failed {
				if failing[task] == "" {
					s.config.Logger.Warn("a task of maintenance could not be done; it is tried again", "task", task, "error", text)
				}
			}
			failing = failed
		}
		_ = backoff.Wait(ctx, pause)
	}
}
