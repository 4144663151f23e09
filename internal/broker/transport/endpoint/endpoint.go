package endpoint

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/inbox"
	"github.com/parley-broker/parley/internal/broker/transport/link"
	"github.com/parley-broker/parley/internal/broker/transport/router"
	"github.com/parley-broker/parley/internal/broker/transport/transmitter"
	"github.com/parley-broker/parley/internal/daemon"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// notConfigured is the number under which Service Broker says that nothing goes over the network.
const notConfigured = 9666

// Config reports how an endpoint works. Its zero value is one without a network: the databases of the daemon talk to each other.
type Config struct {
	// Network leads to other servers; nil when there is none.
	Network *Network
	// Forward passes messages on that are for others, of which ForwardSize bytes may be in memory at a time, 0 means 10 MiB.
	Forward     bool
	ForwardSize int64
	// Guard makes what protects the dialogs of a database on their way through the network; nil for one without keys, which believes
	// that links are encrypted and takes nothing that is sealed.
	Guard func(logger *slog.Logger) dialogsecurity.Guard
	// Name distinguishes this daemon from others in views; "" means host and process id.
	Name string
	// Logger receives what happens; nil means [slog.Default].
	Logger *slog.Logger
}

func (c Config) forwardSize() int64 { return cmp.Or(c.ForwardSize, router.DefaultForwardSize) }

// Endpoint serves any number of databases.
type Endpoint struct {
	config    Config
	directory *router.Directory
	forwarder *router.Forwarder
	arrivals  *router.Router
	links     *links
	server    *link.Server
	// id distinguishes this daemon from others in what it reports.
	id parley.UUID

	mu        sync.Mutex
	databases []*Database
}

// New makes an endpoint without databases. Nothing goes over the network before [Endpoint.Run]. Close it.
func New(config Config) (*Endpoint, error) {
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.Name == "" {
		host, _ := os.Hostname()
		config.Name = fmt.Sprintf("%s:%d", cmp.Or(host, "localhost"), os.Getpid())
	}
	e := &Endpoint{config: config, directory: router.NewDirectory()}
	_, _ = rand.Read(e.id[:])
	if config.Network == nil {
		return e, nil
	}
	speaks := e.complete(config.Network.Link)
	e.links = &links{config: speaks, byAddress: map[string]*link.Link{}}
	if config.Forward {
		e.forwarder = &router.Forwarder{
			Link:    func(address string) (transport.Deliverer, error) { return e.links.to(address) },
			SizeMax: config.forwardSize(), Logger: config.Logger,
		}
	}
	routes := &router.InboundRoutes{Directory: e.directory}
	arrivals, err := router.New(router.Config{Directory: e.directory, Route: routes.Find, Forwarder: e.forwarder, Logger: config.Logger})
	if err != nil {
		return nil, err
	}
	e.arrivals = arrivals
	if e.server, err = link.NewServer(arrivals, speaks); err != nil {
		return nil, fmt.Errorf("prepare the broker endpoint: %w", err)
	}
	return e, nil
}

// Close closes the links to other servers, when nothing runs any more. The databases are closed one by one.
func (e *Endpoint) Close() {
	if e.links != nil {
		e.links.close()
	}
}

// Database is one that the endpoint serves.
type Database struct {
	daemon.Simple

	endpoint    *Endpoint
	guard       dialogsecurity.Guard
	inbox       *inbox.Inbox
	transmitter *transmitter.Transmitter
	tally       tally

	reporting   atomic.Bool
	reportMu    sync.Mutex
	reported    transportstore.DaemonReport
	reportedAt  time.Time
	hasReported bool
}

// Add begins to serve a database, which settings say how to reach. Nothing is connected before there is something to do. Close it.
func (e *Endpoint) Add(ctx context.Context, settings *pgxpool.Config, logger *slog.Logger) (d *Database, err error) {
	d = &Database{endpoint: e}
	switch {
	case e.config.Guard != nil:
		d.guard = e.config.Guard(logger)
	case e.config.Network != nil:
		d.guard = dialogsecurity.New(dialogsecurity.Config{IsLinkEncrypted: true, Logger: logger})
	}
	in := inbox.Config{Settings: settings, Guard: d.guard, Observer: &d.tally, Logger: logger}
	out := transmitter.Config{Settings: settings, Resolve: d.resolve, Locate: d.locate, Observer: &d.tally, Logger: logger}
	if d.inbox, err = inbox.New(ctx, in); err != nil {
		return nil, err
	}
	if d.transmitter, err = transmitter.New(ctx, out); err != nil {
		d.inbox.Close()
		return nil, err
	}
	e.directory.Add(d.inbox)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.databases = append(e.databases, d)
	return d, nil
}

var _ daemon.LedPart = (*Database)(nil)

func (e *Endpoint) all() []*Database {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.databases)
}

// Close closes the connections to the database, when nothing runs any more.
func (d *Database) Close() {
	d.transmitter.Close()
	d.inbox.Close()
}

// Lead transmits what the database has for others, while the daemon leads it.
func (d *Database) Lead(ctx context.Context, term *daemon.Term) { d.transmitter.Run(ctx, term) }

// resolve finds the way to an address.
func (d *Database) resolve(address string) (transmitter.Way, error) {
	if strings.HasPrefix(address, "broker:") {
		return d.endpoint.directory.Neighbour(d.inbox, address)
	}
	if d.endpoint.links != nil {
		way, err := d.endpoint.links.to(address)
		return transmitter.Way{Deliverer: way, Guard: d.guard}, err
	}
	return transmitter.Way{}, transport.Fail(notConfigured,
		"the way to %s is closed: the daemon of this database has no broker endpoint (parley serve --listen)", address)
}

func (d *Database) locate(ctx context.Context, unresolved []transportstore.Unresolved) ([]transmitter.Location, error) {
	locations, err := d.endpoint.directory.Locate(ctx, d.inbox, unresolved)
	if err != nil {
		return nil, fmt.Errorf("find services in the databases of this daemon: %w", err)
	}
	return locations, nil
}
