package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/site"
)

const (
	targetName = "target"
	// siteDatabase is the database of each server. It is made for the run and goes with its server.
	siteDatabase = "parley_demo"
	// siteMemory is little enough for four servers on one machine.
	siteMemory = "256MB"
)

// host is one of the servers, with its daemon.
type host struct {
	name string
	dsn  string
	// control is for what is done and read one at a time, watching for the samples.
	control, watching *pgx.Conn
	daemon            *site.Daemon
}

// initiator is a host that sends.
type initiator struct {
	host
	link    *link
	senders []*sender
	sent    atomic.Int64
	// handles are the conversations that are used from the start, spread those of the last phase; idle ones are used by nobody.
	handles, spread, idle []parley.UUID
	// conversations is how many it uses at a time; first is the number of the first among those of all initiators.
	first, conversations int
}

// network is the servers, the daemons and the links between them.
type network struct {
	config     ServersConfig
	folder     *site.Folder
	servers    *site.Servers
	target     *host
	initiators []*initiator
}

// buildNetwork starts everything. The caller must stop it, also when it fails.
func buildNetwork(ctx context.Context, config ServersConfig, notice func(string)) (n *network, err error) {
	n = &network{config: config, target: &host{name: targetName}}
	names := []string{targetName}
	for i := range config.Servers - 1 {
		one := &initiator{host: host{name: fmt.Sprintf("initiator %d", i+1)}}
		n.initiators = append(n.initiators, one)
		names = append(names, fmt.Sprintf("initiator%d", i+1))
	}
	notice(fmt.Sprintf("Starting %d PostgreSQL servers.", config.Servers))
	if n.folder, err = site.NewFolder(); err != nil {
		return n, err
	}
	n.servers, err = site.StartServers(ctx, n.folder, names, site.ServerConfig{
		Version: config.PostgresVersion, Logger: config.Logger,
		Settings: map[string]string{"shared_buffers": siteMemory, "max_wal_size": "2GB"},
	})
	if err != nil {
		return n, err
	}
	notice("Installing the schema and creating the paper's objects on each of them.")
	if err := n.eachHost(ctx, n.furnish); err != nil {
		return n, err
	}
	notice("Starting their daemons, and joining them by links with mutual TLS.")
	if err := n.eachHost(ctx, n.serve); err != nil {
		return n, err
	}
	for _, i := range n.initiators {
		if i.link, err = newLink(ctx, i.daemon, n.target.daemon); err != nil {
			return n, err
		}
	}
	return n, n.introduce(ctx)
}

// hosts are all of them; the target comes first.
func (n *network) hosts() []*host {
	all := []*host{n.target}
	for _, i := range n.initiators {
		all = append(all, &i.host)
	}
	return all
}

// eachHost runs work for all hosts at once.
func (n *network) eachHost(ctx context.Context, work func(ctx context.Context, number int, h *host) error) error {
	hosts := n.hosts()
	numbers := make([]int, len(hosts))
	for i := range numbers {
		numbers[i] = i
	}
	return each(ctx, numbers, func(ctx context.Context, number int) error {
		if err := work(ctx, number, hosts[number]); err != nil {
			return fmt.Errorf("%s: %w", hosts[number].name, err)
		}
		return nil
	})
}

// furnish makes the database of a host, and what the paper has in it.
func (n *network) furnish(ctx context.Context, number int, h *host) error {
	if err := n.servers.EnsureDatabase(ctx, number, siteDatabase); err != nil {
		return err
	}
	h.dsn = n.servers.DSN(number, siteDatabase)
	var err error
	if h.control, err = h.connect(ctx); err != nil {
		return err
	}
	if h.watching, err = h.connect(ctx); err != nil {
		return err
	}
	if h != n.target {
		return furnish(ctx, h.control, ledgerTable, initiatorObjects)
	}
	if err := furnish(ctx, h.control, targetObjects); err != nil {
		return err
	}
	return activate(ctx, h.control, n.config.Readers)
}

func (h *host) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(h.dsn)
	if err != nil {
		return nil, fmt.Errorf("read the DSN: %w", err)
	}
	config.RuntimeParams["application_name"] = "parley demo"
	config.RuntimeParams["search_path"] = "public"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

// serve starts the daemon of a host.
func (n *network) serve(ctx context.Context, number int, h *host) (err error) {
	h.daemon, err = site.StartDaemon(ctx, site.DaemonConfig{
		Program: n.config.Program, Name: fmt.Sprintf("daemon%d", number), Folder: n.folder.Path, DSNs: []string{h.dsn}, Listens: true,
		Args: []string{"--sessions", fmt.Sprint(n.config.Readers)},
	})
	return err
}

// stop ends everything, in the order in which it leaves nothing behind, also when ctx has ended.
func (n *network) stop(ctx context.Context) error {
	var failures []error
	for _, i := range n.initiators {
		for _, s := range i.senders {
			closeConn(ctx, s.conn)
		}
		if i.link != nil {
			i.link.close()
		}
	}
	failures = append(failures, n.stopDaemons(ctx)...)
	for _, h := range n.hosts() {
		if h.control != nil {
			closeConn(ctx, h.control)
		}
		if h.watching != nil {
			closeConn(ctx, h.watching)
		}
	}
	if n.servers != nil {
		failures = append(failures, n.servers.Stop(ctx))
	}
	if n.folder != nil {
		failures = append(failures, n.folder.Remove())
	}
	return errors.Join(failures...)
}

func (n *network) stopDaemons(ctx context.Context) []error {
	failures := make([]error, len(n.hosts()))
	var stopping sync.WaitGroup
	for i, h := range n.hosts() {
		if h.daemon != nil {
			stopping.Go(func() { failures[i] = h.daemon.Stop(ctx) })
		}
	}
	stopping.Wait()
	return failures
}

// guard ends the run when a daemon ends by itself.
func (n *network) guard(ctx context.Context, fail func(error)) {
	for _, h := range n.hosts() {
		go func() {
			select {
			case <-ctx.Done():
			case <-h.daemon.Ended():
				fail(h.daemon.Err())
			}
		}()
	}
}
