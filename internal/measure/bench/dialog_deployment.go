package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/site"
)

// dialogQueue is the queue and the service of the targets; the initiators have one of their own.
const dialogQueue = "dialog"

// broker is one database of a dialog.
type broker struct {
	database
	place    *bench
	instance parley.UUID
	control  *pgx.Conn
	daemon   *site.Daemon
	trusts   map[*site.Daemon]bool
	handles  []parley.UUID // of the initiators' ends
}

// deployment is the brokers and the daemons of one run.
type deployment struct {
	initiators, targets []*broker
	daemons             []*site.Daemon
}

// place is the server of the target's side (0) or of an initiator (from 1), as a bench of its own.
func (b *bench) place(ctx context.Context, number int) (*bench, error) {
	if b.servers == nil || !b.Dialog.SeparateServers || number == 0 {
		return b, nil
	}
	for len(b.places) < number {
		c, err := openCluster(ctx, b.servers.DSN(len(b.places)+1, "postgres"))
		if err != nil {
			return nil, err
		}
		b.places = append(b.places, &bench{Config: b.Config, cluster: c, stages: map[string]stage{}, settled: b.settled})
	}
	return b.places[number-1], nil
}

// newDeployment makes the databases of a run, starts their daemons and joins them. The caller must clear it.
func (b *bench) newDeployment(ctx context.Context, t traffic, queue, procedure string) (made *deployment, err error) {
	made = &deployment{}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.clear(ctx))
		}
	}()
	for i := range t.initiators {
		one, err := b.addInitiator(ctx, i+1, queue)
		if err != nil {
			return made, err
		}
		made.initiators = append(made.initiators, one)
	}
	for range t.targets {
		one, err := b.addBroker(ctx, 0, queue, func(ctx context.Context, conn *pgx.Conn, _ *stage) error {
			return errors.Join(addService(ctx, conn, queue), grantToAll(ctx, conn, queue))
		})
		if err != nil {
			return made, err
		}
		made.targets = append(made.targets, one)
		_, err = one.control.Exec(ctx, `
			select parley.alter_queue($1, activation_procedure => $2, max_queue_readers => $3, execute_as => 'OWNER', activation => true)`,
			queue, procedure, t.readers)
		if err != nil {
			return made, fmt.Errorf("activate the queue: %w", err)
		}
	}
	if err := b.startDaemons(ctx, made); err != nil {
		return made, err
	}
	if err := made.join(ctx, queue); err != nil {
		return made, err
	}
	return made, made.begin(ctx, queue, t.conversations)
}

// addInitiator makes the database of an initiator.
func (b *bench) addInitiator(ctx context.Context, place int, queue string) (*broker, error) {
	return b.addBroker(ctx, place, initiator(queue), func(ctx context.Context, conn *pgx.Conn, _ *stage) error {
		return addService(ctx, conn, initiator(queue))
	})
}

// addBroker makes a database, as a copy of a stage that is built once on each server.
func (b *bench) addBroker(ctx context.Context, place int, name string, build builder) (*broker, error) {
	at, err := b.place(ctx, place)
	if err != nil {
		return nil, err
	}
	s, err := at.stage(ctx, "database with service "+name, build)
	if err != nil {
		return nil, err
	}
	one := &broker{place: at, trusts: map[*site.Daemon]bool{}}
	if one.database, err = at.cluster.create(ctx, s.database); err != nil {
		return nil, err
	}
	if one.control, err = one.connect(ctx); err != nil {
		return nil, err
	}
	if err := one.control.QueryRow(ctx, "select parley.new_broker()").Scan(&one.instance); err != nil {
		return nil, fmt.Errorf("name the broker of a copy: %w", err)
	}
	return one, nil
}

// startDaemons starts one daemon for each side, or one for each database.
func (b *bench) startDaemons(ctx context.Context, made *deployment) error {
	sides := [][]*broker{made.targets, made.initiators}
	if b.Dialog.SeparateServers {
		sides = sides[:1]
		for _, one := range made.initiators {
			sides = append(sides, []*broker{one})
		}
	}
	for _, brokers := range sides {
		b.daemons++
		config := site.DaemonConfig{
			Program: b.Dialog.Program, Name: fmt.Sprintf("daemon%d", b.daemons), Folder: b.folder.Path, Listens: true,
			Args: []string{"--log-level", "warn"},
		}
		for _, one := range brokers {
			config.DSNs = append(config.DSNs, one.dsn())
		}
		d, err := site.StartDaemon(ctx, config)
		if err != nil {
			return err
		}
		made.daemons = append(made.daemons, d)
		for _, one := range brokers {
			one.daemon = d
		}
	}
	return nil
}

// join makes both sides known to each other: keys and routes.
func (m *deployment) join(ctx context.Context, queue string) error {
	for _, one := range m.initiators {
		for _, other := range m.targets {
			if err := one.know(ctx, other, queue); err != nil {
				return err
			}
			if err := other.know(ctx, one, initiator(queue)); err != nil {
				return err
			}
		}
	}
	return nil
}

// know lets a broker trust the daemon of another one, and gives it the route there.
func (one *broker) know(ctx context.Context, other *broker, service string) error {
	if !one.trusts[other.daemon] {
		if err := other.daemon.BeTrusted(ctx, one.control, other.daemon.Address()); err != nil {
			return err
		}
		one.trusts[other.daemon] = true
	}
	_, err := one.control.Exec(ctx, "select parley.create_route($1, 'tcp://' || $2, service_name => $3, broker_instance => $4)",
		other.name, other.daemon.Address(), service, other.instance.String())
	if err != nil {
		return fmt.Errorf("create a route: %w", err)
	}
	return nil
}

// begin begins the conversations, shared out among initiators and targets, and sends a first message on each.
func (m *deployment) begin(ctx context.Context, queue string, conversations int) error {
	for i, one := range m.initiators {
		for j, other := range m.targets {
			number := i*len(m.targets) + j
			all := len(m.initiators) * len(m.targets)
			n := conversations/all + min(1, max(0, conversations%all-number))
			rows, err := one.control.Query(ctx, `
				with begun as materialized (
					select parley.begin_dialog($1, $2, broker_instance => $3, contract => $4, encryption => false) as handle
					from generate_series(1, $5::integer)
				), sent as materialized (
					select parley.send(conversation_handle => b.handle, message_type => $4, body => '\x00'::bytea) from begun as b
				)
				select b.handle from begun as b cross join (select count(*) from sent) as s`,
				initiator(queue), queue, other.instance.String(), messageType, n)
			if err != nil {
				return fmt.Errorf("begin dialogs: %w", err)
			}
			handles, err := pgx.CollectRows(rows, pgx.RowTo[parley.UUID])
			if err != nil {
				return fmt.Errorf("begin dialogs: %w", err)
			}
			one.handles = append(one.handles, handles...)
		}
	}
	return nil
}

// clear stops the daemons and drops the databases, also when ctx has ended.
func (m *deployment) clear(ctx context.Context) error {
	var failures []error
	for _, d := range m.daemons {
		failures = append(failures, d.Stop(ctx))
	}
	for _, one := range append(append([]*broker{}, m.initiators...), m.targets...) {
		closeAll(ctx, []*pgx.Conn{one.control})
		if ctx.Err() == nil { // else the clean-up of the whole drops it
			failures = append(failures, one.place.cluster.drop(ctx, one.database))
		}
	}
	return errors.Join(failures...)
}

// stalled is how long nothing may arrive before a run is given up.
const stalled = time.Minute

// arrived counts the messages whose rows the readers have committed, and returns when the last of them was.
func (m *deployment) arrived(ctx context.Context) (messages int64, last time.Time, err error) {
	for _, one := range m.targets {
		var n int64
		var at *time.Time
		err := one.control.QueryRow(ctx, `
			select coalesce(sum(l.messages), 0)::bigint, max(l.received_at) from bench.receive_log as l`).Scan(&n, &at)
		if err != nil {
			return 0, last, fmt.Errorf("count what arrived: %w", err)
		}
		messages += n
		if at != nil && at.After(last) {
			last = *at
		}
	}
	return messages, last, nil
}

// await waits until so many messages have arrived, all in all, and returns when the last did.
func (m *deployment) await(ctx context.Context, want int64) (last time.Time, err error) {
	var most int64
	since := time.Now()
	for {
		n, at, err := m.arrived(ctx)
		switch {
		case err != nil:
			return at, err
		case n == want:
			return at, nil
		case n > want:
			return at, fmt.Errorf("%d messages arrived, %d were sent", n, want)
		case n > most:
			most, since = n, time.Now()
		case time.Since(since) > stalled:
			return at, fmt.Errorf("%d of %d messages arrived, and then none for %v%s", n, want, stalled, m.complaints())
		}
		if !waitUntil(ctx, time.Now().Add(arrivalPoll)) {
			return at, context.Cause(ctx)
		}
	}
}

// arrivalPoll is how often the targets are asked what has arrived.
const arrivalPoll = 20 * time.Millisecond

// complaints are of daemons that have ended.
func (m *deployment) complaints() string {
	var text strings.Builder
	for _, d := range m.daemons {
		if err := d.Err(); err != nil {
			fmt.Fprintf(&text, "; %v", err)
		}
	}
	return text.String()
}

// addService creates a queue with a service of its name.
func addService(ctx context.Context, conn *pgx.Conn, name string) error {
	if _, err := conn.Exec(ctx, "select parley.create_queue($1)", name); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "select parley.create_service(name => $1, queue => $1, contracts => array[$2])", name, messageType)
	return err
}

// grantToAll lets all peers that the links accept send to a service.
func grantToAll(ctx context.Context, conn *pgx.Conn, service string) error {
	_, err := conn.Exec(ctx, `
		select parley.grant(
			permission => 'SEND', class => 'SERVICE', object => $1, grantee => 'PUBLIC'
		)`, service)
	return err
}

// dsn is the connection string of the database, for another process.
func (d database) dsn() string {
	text := d.config.ConnString()
	if address, err := url.Parse(text); err == nil && strings.HasPrefix(address.Scheme, "postgres") {
		query := address.Query()
		query.Del("dbname")
		address.Path, address.RawQuery = "/"+d.name, query.Encode()
		return address.String()
	}
	// Of a keyword that is given twice the last one counts.
	return text + " dbname='" + d.name + "'"
}
