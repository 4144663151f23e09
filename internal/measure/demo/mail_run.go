package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/site"
	"github.com/parley-broker/parley/internal/verify/mailcheck"
)

//go:embed mail.sql
var mailObjects string

const (
	// mailLease is how long what a daemon had in its hands waits for the other when it was killed: the default of parley mail serve.
	mailLease = 30 * time.Second
	// mailDaemons work on the database.
	mailDaemons = 2
	// mailPatience is how long the rest may take at the end while nothing moves.
	mailPatience = 2*mailLease + 30*time.Second
)

// mailRun is a run under way.
type mailRun struct {
	stage
	config    MailConfig
	db        *database
	folder    *site.Folder
	daemons   []*site.Daemon
	addresses []string
	relay     *mailcheck.Host
	relayAt   string
	began     time.Time
	part      atomic.Int32
	faults    mailcheck.Faults

	orders, rolledBack, answers, received atomic.Int64

	mu          sync.Mutex
	submissions []mailcheck.Submission
	samples     []MailSample
	marks       []mailMark
}

// mailMark is when something happened, in seconds since the beginning.
type mailMark struct {
	seconds float64
	label   string
}

// RunMail plays the demo of mail in a database of its own, beside the one that admin is connected to, and checks every letter. A run
// that found something wrong is a MailResult that has not Passed, and no error.
func RunMail(ctx context.Context, admin *pgx.Conn, config MailConfig) (MailResult, error) {
	if err := config.Validate(); err != nil {
		return MailResult{}, err
	}
	db, err := createDatabase(ctx, admin, config.Database)
	if err != nil {
		return MailResult{}, err
	}
	r := &mailRun{config: config, db: db}
	if config.Observer != nil {
		r.observer = config.Observer
	}
	result, err := r.play(ctx)
	err = errors.Join(err, r.close(ctx))
	if !config.Keep {
		err = errors.Join(err, db.drop(ctx))
	}
	return result, err
}

func (r *mailRun) play(ctx context.Context) (MailResult, error) {
	if err := r.prepare(ctx); err != nil {
		return MailResult{}, err
	}
	background, ctx := newCrew(ctx)
	defer background.fail(nil)
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	background.start(func() error { return r.receiveAnswers(reading) })
	r.began = time.Now()
	err := watched(ctx, background, r.watchMail, func() error {
		err := r.workload(ctx)
		if err == nil {
			err = r.settle(ctx)
		}
		stopReading()
		background.working.Wait()
		return err
	})
	if err != nil {
		return MailResult{}, err
	}
	return r.conclude(ctx)
}

// prepare makes the shop, the relay and the daemons.
func (r *mailRun) prepare(ctx context.Context) (err error) {
	r.notice("Installing the schema; a shop with orders, and a service that answers come to.")
	if r.control, err = r.db.connect(ctx); err != nil {
		return err
	}
	if err := furnishMail(ctx, r.control); err != nil {
		return err
	}
	r.relay = &mailcheck.Host{Name: "relay.example"}
	if r.relayAt, err = r.openRelay(ctx, "127.0.0.1:0"); err != nil {
		return err
	}
	for range mailDaemons {
		address, err := freeLoopback(ctx)
		if err != nil {
			return err
		}
		r.addresses = append(r.addresses, address)
	}
	if err := r.configure(ctx); err != nil {
		return err
	}
	if r.folder, err = site.NewFolder(); err != nil {
		return err
	}
	for number := range mailDaemons {
		if err := r.startDaemon(ctx, number); err != nil {
			return err
		}
	}
	r.notice(fmt.Sprintf("%d daemons serve database %s. Every order sends its confirmation in its own transaction; one in eight rolls back.",
		mailDaemons, r.config.Database))
	return nil
}

// openRelay lets the relay take connections at an address.
func (r *mailRun) openRelay(ctx context.Context, address string) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("open the relay: %w", err)
	}
	r.relay.Serve(listener)
	return listener.Addr().String(), nil
}

// freeLoopback finds an address of this machine that nobody listens on.
func freeLoopback(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

// configure defines the mail that is ours, and where the rest goes. A failed delivery is tried again after a second, so that the run is
// short.
func (r *mailRun) configure(ctx context.Context) error {
	host, port, err := net.SplitHostPort(r.relayAt)
	if err != nil {
		return fmt.Errorf("read the address of the relay: %w", err)
	}
	configuration := fmt.Sprintf(`{
		"organization": {"organization": {"default_domain": "shop.example", "fqdn": "mail.shop.example", "connection_rate_per_node": 0}},
		"accepted domain": {"shop.example": {}},
		"service binding": {"answers": {"pattern": "shop@shop.example", "service": "shop", "from_service": "shop"}},
		"permission group": {"Customers": {"principals": ["ANONYMOUS"], "rights": ["SUBMIT", "ANY_SENDER", "ACCEPT_ROUTING_HEADERS"]}},
		"receive connector": {"inbound": {"bindings": ["%s"], "remote_ranges": ["127.0.0.0/8"], "tls": "OFF",
			"permission_groups": ["Customers"], "max_connections_per_source": 0, "max_connections_per_source_percent": 100,
			"connection_rate": 0, "spf": "OFF", "dkim": "OFF", "dmarc": "OFF"}},
		"send connector": {"relay": {"address_spaces": [{"pattern": "*"}], "routing": "SMART_HOST", "tls": "OFF",
			"smart_hosts": [{"host": "[%s]", "port": %s}]}}
	}`, strings.Join(r.addresses, `", "`), host, port)
	if _, err := r.control.Exec(ctx, "select parley_mail.apply($1::jsonb)", configuration); err != nil {
		return fmt.Errorf("configure mail: %w", err)
	}
	_, err = r.control.Exec(ctx, `
		select parley_store.set_retry_policy(p.policy, 'STEPS', last_interval => '1 second', expires_after => '90 days')
		from parley_store.retry_policies as p`)
	if err != nil {
		return fmt.Errorf("set the retry policies: %w", err)
	}
	return nil
}

// startDaemon starts a daemon with a binding of its own.
func (r *mailRun) startDaemon(ctx context.Context, number int) error {
	daemon, err := site.StartDaemon(ctx, site.DaemonConfig{
		Program: r.config.Program, Name: fmt.Sprint("daemon", number+1), Folder: r.folder.Path, System: "mail", ReadyAt: r.addresses[number],
		DSNs: []string{ownDSN(r.config.DSN, r.config.Database)},
		Args: []string{"--binding", r.addresses[number]},
	})
	if err != nil {
		return fmt.Errorf("start a daemon: %w", err)
	}
	r.daemons = append(r.daemons, daemon)
	return nil
}

// ownDSN leads to another database of the same server. Of two names in a DSN the last counts.
func ownDSN(dsn, name string) string {
	switch {
	case !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://"):
		return strings.TrimSpace(dsn + " dbname=" + name)
	case strings.Contains(dsn, "?"):
		return dsn + "&dbname=" + name
	default:
		return dsn + "?dbname=" + name
	}
}

func (r *mailRun) close(ctx context.Context) (err error) {
	for _, daemon := range r.daemons {
		err = errors.Join(err, daemon.Stop(ctx))
	}
	if r.relay != nil {
		err = errors.Join(err, r.relay.Close())
	}
	if r.folder != nil {
		err = errors.Join(err, r.folder.Remove())
	}
	if r.control != nil {
		closeConn(ctx, r.control)
	}
	return err
}
