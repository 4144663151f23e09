package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/site"
)

// parleyMail is the daemon of mail with its database.
type parleyMail struct {
	place   *bench
	d       database
	control *pgx.Conn
	daemon  *site.Daemon
	listen  string
	before  mailCounters
	// isTracked reports that all messages came by SMTP and left so, which the database has tracked.
	isTracked bool
}

// mailCounters are the counts of the server in the database.
type mailCounters struct {
	walBytes, walWrites, reads, commits, bodyTuples float64
	pressureSeconds                                 float64
	hasWALWrites                                    bool
}

// mailStage is a database with the schema and nothing in it.
func (b *bench) mailStage(ctx context.Context) (stage, error) {
	return b.stage(ctx, "a database for mail", func(context.Context, *pgx.Conn, *stage) error { return nil })
}

func (b *bench) startMailDaemon(ctx context.Context, load mailLoad, sink, probe string) (mailRelay, error) {
	s, err := b.mailStage(ctx)
	if err != nil {
		return nil, err
	}
	d, err := b.cluster.create(ctx, s.database)
	if err != nil {
		return nil, err
	}
	listen, err := site.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	connectors, err := smartHosts(map[string]string{"*": sink, probeDomain: probe})
	if err != nil {
		return nil, err
	}
	p, err := b.serveMail(ctx, d, listen, connectors, load.cache)
	if err != nil {
		return nil, err
	}
	p.isTracked = true
	return p, nil
}

// serveMail configures mail in a database and starts its daemon.
func (b *bench) serveMail(
	ctx context.Context, d database, listen string, connectors map[string]any, cache int64, args ...string,
) (p *parleyMail, err error) {
	p = &parleyMail{place: b, d: d, listen: listen}
	if p.control, err = d.connect(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeAll(ctx, []*pgx.Conn{p.control})
		}
	}()
	if err := configureMail(ctx, p.control, listen, connectors); err != nil {
		return nil, err
	}
	if p.before, err = p.counters(ctx); err != nil {
		return nil, err
	}
	b.daemons++
	p.daemon, err = site.StartDaemon(ctx, site.DaemonConfig{
		Program: b.Dialog.Program, Name: fmt.Sprintf("mail%d", b.daemons), Folder: b.folder.Path, DSNs: []string{d.dsn()},
		System: "mail", ReadyAt: listen,
		Args: append([]string{"--log-level", "warn", "--spool", b.folder.Path, "--body-cache", strconv.FormatInt(cache, 10)}, args...),
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// configureMail lets this machine relay to anybody, without the limits that are for unknown peers.
func configureMail(ctx context.Context, conn *pgx.Conn, listen string, connectors map[string]any) error {
	text, err := json.Marshal(map[string]any{
		"organization": map[string]any{"organization": map[string]any{
			"default_domain": "bench.example", "max_receive_size": 1 << 27, "max_send_size": 1 << 27, "connection_rate_per_node": 0,
		}},
		"permission group": map[string]any{"bench": map[string]any{
			"principals": []string{"ANONYMOUS"},
			"rights": []string{
				"SUBMIT", "ANY_RECIPIENT", "ANY_SENDER", "AUTHORITATIVE_DOMAIN_SENDER", "ACCEPT_ROUTING_HEADERS", "BYPASS_ANTI_SPAM",
			},
		}},
		"receive connector": map[string]any{"bench": map[string]any{
			"bindings": []string{listen}, "remote_ranges": []string{"127.0.0.0/8"}, "permission_groups": []string{"bench"}, "tls": "OFF",
			// A steady rate is held for longer than the ten minutes that a connection has otherwise.
			"connection_timeout": 86400,
			"connection_rate":    0, "max_connections_per_source": 1000, "max_connections_per_source_percent": 100,
			"max_message_size": 1 << 27, "spf": "OFF", "dkim": "OFF", "dmarc": "OFF", // as the relays that it is compared with
		}},
		"send connector": connectors,
	})
	if err != nil {
		return fmt.Errorf("write the configuration of mail: %w", err)
	}
	if _, err := conn.Exec(ctx, "select parley_mail.apply($1::jsonb)", string(text)); err != nil {
		return fmt.Errorf("configure mail: %w", err)
	}
	return nil
}

// smartHosts are send connectors that lead to hosts, by address space.
func smartHosts(hosts map[string]string) (map[string]any, error) {
	connectors := map[string]any{}
	for pattern, address := range hosts {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("read the address of a host: %w", err)
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			return nil, fmt.Errorf("read the address of a host: %w", err)
		}
		connectors["to "+strings.ReplaceAll(pattern, "*", "all")] = map[string]any{
			"address_spaces": []any{map[string]any{"pattern": pattern}}, "routing": "SMART_HOST", "tls": "OFF", "max_message_size": 1 << 27,
			"smart_hosts": []any{map[string]any{"host": "[" + host + "]", "port": number}},
		}
	}
	return connectors, nil
}

func (p *parleyMail) address() string { return p.listen }

func (p *parleyMail) waiting(ctx context.Context) (messages int) {
	_ = p.control.QueryRow(ctx, "select count(*) from parley_mail._p_message").Scan(&messages)
	return messages
}

// memory is the memory of the process as Linux counts it.
func (p *parleyMail) memory() int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.daemon.Process()) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, "VmRSS:"); is {
			kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

func (p *parleyMail) counters(ctx context.Context) (c mailCounters, err error) {
	var writes *float64
	// Reading a body touches the tuples of its chunks; writing one does not.
	err = p.control.QueryRow(ctx, `
		select
			pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8, (to_jsonb(w) ->> 'wal_write')::float8, d.blks_read::float8,
			d.xact_commit::float8,
			(
				select coalesce(sum(t.idx_tup_fetch), 0)::float8
				from pg_class as c
				join pg_stat_all_tables as t on t.relid = c.reltoastrelid
				where c.relnamespace = 'parley_store'::regnamespace and starts_with(c.relname, '_p_content_chunk')
			),
			(
				select coalesce(max(h.seconds), 0)::float8
				from (
					select extract(epoch from sum(h.total_time)) as seconds
					from parley_store.pressure_history as h
					where h.system = 'mail' and lower(h.level) <> 'normal'
					group by h.resource
				) as h
			)
		from pg_stat_wal as w
		cross join pg_stat_database as d
		where d.datname = current_database()`).Scan(&c.walBytes, &writes, &c.reads, &c.commits, &c.bodyTuples, &c.pressureSeconds)
	if err != nil {
		return mailCounters{}, fmt.Errorf("read what the server counts: %w", err)
	}
	if writes != nil {
		c.walWrites, c.hasWALWrites = *writes, true
	}
	return c, nil
}

// bytesOfTuple is how much of a value stands in a tuple of its chunks.
const bytesOfTuple = 1996

func (p *parleyMail) stop(ctx context.Context, figures map[string]float64, messages int, lasted time.Duration) (err error) {
	defer func() { closeAll(ctx, []*pgx.Conn{p.control}) }()
	err = errors.Join(p.daemon.Err(), p.daemon.Stop(ctx))
	if ctx.Err() != nil || err != nil || messages == 0 {
		return err
	}
	if err := p.awaitSessions(ctx); err != nil {
		return err
	}
	after, err := p.counters(ctx)
	if err != nil {
		return err
	}
	if p.isTracked {
		if err := p.compare(ctx, messages); err != nil {
			return err
		}
	}
	each := float64(messages)
	figures["wal_kb_per_message"] = (after.walBytes - p.before.walBytes) / 1000 / each
	if after.hasWALWrites {
		figures["wal_writes_per_message"] = (after.walWrites - p.before.walWrites) / each
	}
	figures["data_reads"] = after.reads - p.before.reads
	figures["commits_per_message"] = (after.commits - p.before.commits) / each
	figures["body_mb_read"] = (after.bodyTuples - p.before.bodyTuples) * bytesOfTuple / 1e6
	figures["pressure_percent"] = 100 * (after.pressureSeconds - p.before.pressureSeconds) / lasted.Seconds()
	return p.place.cluster.drop(ctx, p.d)
}

// compare compares the number of messages that source and sink counted with what the database has tracked.
func (p *parleyMail) compare(ctx context.Context, messages int) error {
	var received, sent int
	err := p.control.QueryRow(ctx, `
		select
			count(distinct t.internal_message_id) filter (where t.event_id = 'RECEIVE'),
			count(distinct t.internal_message_id) filter (where t.event_id = 'SEND')
		from parley_mail.tracking as t`).Scan(&received, &sent)
	if err != nil {
		return fmt.Errorf("count what was tracked: %w", err)
	}
	if received != messages || sent != messages {
		p.place.miscounted(fmt.Errorf("%w: source and sink counted %d messages, the database %d received and %d sent", errMiscounted, messages,
			received, sent))
	}
	return nil
}

// awaitSessions waits until the sessions of the daemon are gone: what they have counted is seen then.
func (p *parleyMail) awaitSessions(ctx context.Context) error {
	for {
		var others int
		err := p.control.QueryRow(ctx, `
			select count(*) from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`).Scan(&others)
		if err != nil {
			return fmt.Errorf("wait for the sessions of the daemon: %w", err)
		}
		if others == 0 {
			return nil
		}
		if !waitUntil(ctx, time.Now().Add(arrivalPoll)) {
			return context.Cause(ctx)
		}
	}
}
