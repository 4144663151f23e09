package server

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/hostfolders"
	"github.com/parley-broker/parley/internal/mail/groupcommit"
	"github.com/parley-broker/parley/internal/mail/nexthop"
	"github.com/parley-broker/parley/internal/mail/receive"
	"github.com/parley-broker/parley/internal/mail/send"
	"github.com/parley-broker/parley/internal/mail/spool"
	"github.com/parley-broker/parley/internal/mail/submission"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

const (
	// categorizedAtOnce bounds the items of one call of the categorizer.
	categorizedAtOnce = 100
	// maintenanceInterval is how often delays, expiry and leases are seen to, and reports made.
	maintenanceInterval = 2 * time.Second
	// configurationInterval is how often the configuration is read again.
	configurationInterval = 5 * time.Second
	// pace is how often a part works at most: under load it has more to do at a time then, and most of what it costs is for each time.
	pace = 20 * time.Millisecond
	// scanInterval is how often the database is asked for work that nothing has announced.
	scanInterval = time.Second
	// grace is how long messages that are being received may take when the daemon stops.
	grace = 30 * time.Second
)

// DefaultLease is how long what a daemon had in its hands waits for others when it was killed.
const DefaultLease = send.DefaultLease

// Config holds the parts and the settings of mail transport. Only Pool is needed.
type Config struct {
	// Pool leads to the database, as a role that holds the right SERVE.
	Pool *pgxpool.Pool
	// Name distinguishes this daemon from others; "" means host and process id.
	Name string
	// SpoolFolder holds large messages while they arrive; "" means that of the system.
	SpoolFolder string
	// BodyCache is how much memory bodies may take between receipt and delivery, in bytes; 0 means 512 MB. Commands refuse less than
	// 128 MB; tests have caches that are full sooner.
	BodyCache int64
	// PolicyClient reads the MTA-STS policies of domains; nil means one that trusts what the machine does. RootCAs are trusted by
	// connections whose hosts have to prove their names; nil means those of the machine.
	PolicyClient *http.Client
	RootCAs      *x509.CertPool
	// DataFolder and LogFolder are folders of this machine on the volumes of the database's data and of its log. "" means those of the
	// server, where it is on this machine and the role may know them.
	DataFolder, LogFolder string
	// Version is that of the program, for the list of daemons.
	Version string
	// NameServers are asked for next hops, as host:port; none means those of the machine.
	NameServers []string
	// Lease is how long what this daemon has in its hands is its own after it was killed; 0 means [DefaultLease].
	Lease time.Duration
	// Folders are those of this machine below which the configuration may name folders, files and sockets, by full paths; none means that
	// it may name none.
	Folders []string
	// Bindings are those, of the bindings of receive connectors, that this daemon listens on; none means all.
	Bindings []netip.AddrPort
	Logger   *slog.Logger
}

// Server is mail transport as a part of a daemon.
type Server struct {
	config     Config
	host       string
	settings   atomic.Pointer[settings]
	nodes      atomic.Pointer[nodes]
	bodies     *bodyCache
	deliveries *deliveries
	resolver   *nexthop.Resolver
	receiver   *receive.Server
	committer  *groupcommit.Committer
	dispatcher *send.Dispatcher
	pressure   *pressure
	directory  *directory
	equipment  equipment
	// waysIn are the folders and HTTP listeners.
	waysIn runs
	// httpBudget bounds what all HTTP listeners read at the same time.
	httpBudget submission.Budget
	// unbound is why a binding is not listened on, as it was logged last.
	unbound   string
	governing *governing
	tally     tally
	// submitted, queued and local have a token when something may wait to be categorized, to be sent, and for services of the database.
	submitted, queued, local chan struct{}
}

// New checks the configuration. Nothing runs before [Server.Run].
func New(config Config) (*Server, error) {
	if config.Pool == nil {
		return nil, errors.New("mail: Pool is missing")
	}
	folders, err := hostfolders.Permit(config.Folders...)
	if err != nil {
		return nil, fmt.Errorf("mail: what the configuration may use of this machine: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	config.Name = cmp.Or(config.Name, fmt.Sprintf("%s:%d", host, os.Getpid()))
	config.BodyCache = cmp.Or(config.BodyCache, 512<<20)
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	resolver, err := nexthop.New(nexthop.Config{Servers: config.NameServers, Logger: config.Logger})
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	s := &Server{
		config: config, host: host, bodies: newBodyCache(config.BodyCache), resolver: resolver,
		submitted: make(chan struct{}, 1), queued: make(chan struct{}, 1),
		local: make(chan struct{}, 1),
	}
	s.governing = &governing{server: s}
	s.pressure = newPressure(s.governing.isActive)
	s.deliveries = &deliveries{pool: config.Pool, holder: config.Name, bodies: s.bodies}
	arriving := &arrivals{
		pool: config.Pool, bodies: s.bodies, accepted: func() { signal(s.submitted) }, committed: s.governing.latency.Observe,
	}
	s.committer = groupcommit.New(arriving.accept, groupcommit.Options{IsAlone: isAlone, Observe: s.tally.batch})
	s.directory, s.equipment = &directory{pool: config.Pool}, equipment{newResolver(config.NameServers), folders, config.Logger}
	s.receiver = &receive.Server{
		Accepter: s.committer, Spool: spool.New(config.SpoolFolder, config.BodyCache/8, config.BodyCache), Log: config.Logger, Grace: grace,
		Credentials: credentials{config.Pool, s.credential}, Directory: s.directory, Verifier: newVerifier(s.equipment.resolver),
		Governor: s.pressure, Discarded: s.discarded, IsOwnName: s.isOwnName,
	}
	s.dispatcher, err = send.NewDispatcher(send.Config{
		Store: s.deliveries, Wake: s.queued, Interval: scanInterval, Lease: config.Lease, Logger: config.Logger,
		Carriers: guarded(s.carriers(), config.Logger),
		Paused:   s.pressure.stopsSending,
		PassedBy: func() []string { return s.settings.Load().passedBy(config.Name, host) },
	})
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	return s, nil
}

// signal sends a token to whoever waits for it.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Prepare reads the configuration for the first time.
func (s *Server) Prepare(ctx context.Context) error { return s.readSettings(ctx) }

// Close gives back what Prepare has opened.
func (s *Server) Close() {}

// Run receives, categorizes and sends until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	own, missing := bound(s.settings.Load().receive, s.config.Bindings)
	listeners, err := receive.Listen(ctx, own)
	s.listened(errors.Join(missing, err))
	var parts sync.WaitGroup
	parts.Go(func() { s.governing.run(ctx) })
	parts.Go(func() { s.repeat(ctx, "messages cannot be categorized", s.submitted, scanInterval, s.categorize) })
	parts.Go(func() {
		s.repeat(ctx, "mail cannot be delivered to services", s.local, scanInterval, s.deliverToServices)
	})
	parts.Go(func() { s.repeat(ctx, "mail cannot be maintained", nil, maintenanceInterval, s.maintain) })
	parts.Go(func() {
		s.repeat(ctx, "the configuration of mail cannot be read", nil, configurationInterval, func(ctx context.Context) (bool, error) {
			if err := s.readSettings(ctx); err != nil {
				return false, err
			}
			s.openWaysIn(ctx)
			return false, nil
		})
	})
	parts.Go(func() { _ = s.dispatcher.Run(ctx) })
	err = s.receiver.Run(ctx, listeners)
	s.waysIn.end()
	s.committer.Close()
	parts.Wait()
	if err != nil {
		return fmt.Errorf("mail: %w", err)
	}
	return nil
}

// repeat does something until ctx ends: at once again while there is more, and otherwise when it is woken or the interval is over. A
// failure is logged, and the work tried again.
func (s *Server) repeat(
	ctx context.Context, failure string, wake <-chan struct{}, interval time.Duration, do func(context.Context) (more bool, err error),
) {
	failures := backoff.NewFailures(s.config.Logger, failure)
	for ctx.Err() == nil {
		pause, began := interval, time.Now()
		more, err := do(ctx)
		ended := time.Now()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = failures.Failed(err)
		default:
			failures.Succeeded()
			if more {
				continue
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-wake:
			timer.Reset(backoff.Rest(ended.Sub(began), time.Since(ended), pace))
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		case <-timer.C:
		}
		timer.Stop()
	}
}

// categorize categorizes what waits, and says whether more may. It ends what it has begun when the daemon stops: a rollback would count
// against the messages, as if they had broken something.
func (s *Server) categorize(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	done, err := mailstore.Categorize(ctx, s.config.Pool, categorizedAtOnce, 0)
	if err != nil {
		return false, fmt.Errorf("categorize: %w", err)
	}
	if done.SetAside > 0 {
		s.config.Logger.Warn("messages were set aside because they cannot be categorized", "messages", done.SetAside)
	}
	s.tally.categorized.Add(int64(done.Messages))
	s.tally.categorizerFailures.Add(int64(done.Failed))
	s.tally.setAside.Add(int64(done.SetAside))
	s.tally.resolved.add(done.Resolved)
	if done.Messages > 0 {
		signal(s.queued)
		if s.settings.Load().hasServices {
			signal(s.local)
		}
	}
	// A message that was in hand when a daemon died comes alone, and more of it may wait.
	return done.Messages == 1 || done.Messages+done.Failed >= categorizedAtOnce, nil
}

// maintain sees to leases, delays and expiry, and makes reports.
func (s *Server) maintain(ctx context.Context) (bool, error) {
	failed, err := mailstore.Maintain(ctx, s.config.Pool, !s.pressure.pausesResubmission())
	if err != nil {
		return false, fmt.Errorf("maintain: %w", err)
	}
	for task, text := range failed {
		s.config.Logger.Warn("a task of maintenance could not be done; it is tried again", "task", task, "error", text)
	}
	made, err := s.makeReports(ctx)
	if made > 0 {
		signal(s.submitted)
	}
	return false, errors.Join(err, s.deliveries.dropUnneeded(ctx))
}

// readSettings reads the configuration, and uses it where it is new.
func (s *Server) readSettings(ctx context.Context) (err error) {
	defer func() {
		// A daemon that stops while it reads has no problem to report.
		if ctx.Err() == nil {
			s.governing.setProblem(problemConfiguration, "configuration", err)
		}
	}()
	text, err := mailstore.Configuration(ctx, s.config.Pool)
	if err != nil {
		return err
	}
	used := s.settings.Load()
	reading := reading{
		host: s.host, names: []string{s.config.Name, s.host}, roots: s.config.RootCAs, folders: s.equipment.folders, used: used,
	}
	fresh, err := reading.settings(text)
	if err != nil {
		return err
	}
	s.nodes.Store(knownNodes(fresh.nodes, s.config.Name, s.host, machineAddresses()))
	if used != nil && used.version == fresh.version {
		return nil
	}
	if err := s.equipment.equip(fresh, reading); err != nil {
		return fmt.Errorf("use the configuration of mail: %w", err)
	}
	if err := s.receiver.Configure(fresh.receive); err != nil {
		return fmt.Errorf("use the configuration of mail: %w", err)
	}
	for left, err := range fresh.unusable {
		s.config.Logger.Error("an object of the configuration cannot be used and is left out",
			"kind", left.kind, "object", left.name, "error", err)
	}
	s.settings.Store(fresh)
	s.directory.forget()
	s.config.Logger.Info("the configuration of mail is in use", "version", fresh.version)
	return nil
}
