package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/observe"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/measure/site"
)

// chaosObjects are the ledgers and the reader of the scenario chaos.
//
//go:embed chaos.sql
var chaosObjects string

const (
	chaosQueue    = "chaos"
	chaosSenders  = 8
	chaosReaders  = 4
	chaosStalled  = time.Minute
	recoveryLimit = 30.0 // seconds until each conversation moves again
)

// kills lists the victims, one after another, with an equal part of the time in between.
var kills = []string{"reader", "backend", "daemon"}

func chaosScenario() Scenario {
	return Scenario{
		Name:     "chaos",
		Short:    "what is lost, doubled or out of order when a reader, a backend and the daemon are killed, and how long it stands",
		Variants: []Variant{{"kills", "8 senders with a conversation each, readers by activation of a daemon that is a process of its own"}},
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			return b.measure(ctx, []trial{b.chaosTrial()})
		},
	}
}

func (b *bench) chaosTrial() trial {
	senders := or(b.Sessions, chaosSenders)
	found := map[string][]float64{}
	return trial{
		result: Result{System: systemParley, Variant: "kills", Sessions: senders, Conversations: senders, Size: b.Size, Batch: 1},
		run: func(ctx context.Context) (float64, error) {
			s, err := b.stage(ctx, "ledgers", func(ctx context.Context, conn *pgx.Conn, s *stage) error {
				if _, err := conn.Exec(ctx, chaosObjects); err != nil {
					return fmt.Errorf("make the ledgers: %w", err)
				}
				if err := s.addQueue(ctx, conn, chaosQueue, 0); err != nil {
					return err
				}
				_, err := conn.Exec(ctx, `
					select parley.alter_queue($1, activation_procedure => 'bench.read_chaos', max_queue_readers => $2,
						execute_as => 'OWNER', activation => true)`,
					chaosQueue, chaosReaders)
				if err != nil {
					return fmt.Errorf("activate the queue: %w", err)
				}
				return nil
			})
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) {
				c := chaos{bench: b, database: d, found: found}
				return c.run(ctx, senders)
			})
		},
		conclude: func(*Result) { b.extra = append(b.extra, chaosFigures(found)...) },
	}
}

// chaosFigures are the worst of all runs: each limit is that of every run.
func chaosFigures(found map[string][]float64) (list []record.Figure) {
	worst := func(name string) (most float64) {
		for _, value := range found[name] {
			most = max(most, value)
		}
		return most
	}
	for _, name := range []string{"lost", "doubled", "out of order", "never sent"} {
		list = append(list, record.Figure{
			Name: name, Unit: record.Count, Value: worst(name), Runs: found[name], IsCost: true,
			Limit: record.Limit{AtMost: 1},
		})
	}
	for _, kill := range kills {
		name := "recovered after the " + kill
		list = append(list, record.Figure{
			Name: name, Unit: "s", Value: worst(name), Runs: found[name], IsCost: true,
			Limit: record.Limit{AtMost: recoveryLimit},
		})
	}
	return list
}

// chaos is one run.
type chaos struct {
	*bench
	database

	handles []parley.UUID
	found   map[string][]float64
	control *pgx.Conn
	folder  *site.Folder
	daemon  *site.Daemon
	stopped atomic.Bool
	pids    []atomic.Uint32
	killed  []time.Time // by the clock of the server
}

// run sends, kills, waits until all has arrived, and has the database judge.
func (c *chaos) run(ctx context.Context, senders int) (rate float64, err error) {
	if c.control, err = c.connect(ctx); err != nil {
		return 0, err
	}
	defer closeAll(ctx, []*pgx.Conn{c.control})
	// A daemon does not serve a copy that goes by the name of its original.
	if _, err := c.control.Exec(ctx, "select parley.new_broker()"); err != nil {
		return 0, fmt.Errorf("name the broker of a copy: %w", err)
	}
	if c.handles, err = beginDialogs(ctx, c.control, chaosQueue, senders); err != nil {
		return 0, err
	}
	if c.folder, err = site.NewFolder(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.folder.Remove()) }()
	if err := c.startDaemon(ctx); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.daemon.Stop(ctx)) }()

	defer observe.From(ctx).Window()()
	c.pids = make([]atomic.Uint32, len(c.handles))
	sending, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var working sync.WaitGroup
	defer working.Wait()
	defer c.stopped.Store(true)
	for sender := range c.handles {
		working.Go(func() {
			if err := c.send(sending, sender); err != nil {
				cancel(err)
			}
		})
	}
	step := c.Duration / time.Duration(len(kills)+1)
	for _, what := range kills {
		if !waitUntil(sending, time.Now().Add(step)) {
			return 0, context.Cause(sending)
		}
		if err := c.kill(sending, what); err != nil {
			return 0, fmt.Errorf("kill the %s: %w", what, err)
		}
	}
	if !waitUntil(sending, time.Now().Add(step)) {
		return 0, context.Cause(sending)
	}
	c.stopped.Store(true)
	working.Wait()
	if err := context.Cause(sending); err != nil {
		return 0, err
	}
	return c.judge(ctx)
}

func (c *chaos) startDaemon(ctx context.Context) (err error) {
	c.daemons++
	c.daemon, err = site.StartDaemon(ctx, site.DaemonConfig{
		Program: c.Dialog.Program, Name: fmt.Sprintf("chaos%d", c.daemons), Folder: c.folder.Path, DSNs: []string{c.dsn()},
		Args: []string{"--log-level", "error"},
	})
	return err
}

// send sends the numbers of a sender, one a transaction. A session that was killed is replaced; the ledger says where it stood.
func (c *chaos) send(ctx context.Context, sender int) error {
	for !c.stopped.Load() {
		err := c.sendInSession(ctx, sender)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && c.pids[sender].Load() != killedPid {
			return fmt.Errorf("sender %d: %w", sender, err)
		}
	}
	return nil
}

// killedPid stands in place of the process of a session that was killed.
const killedPid = 1

func (c *chaos) sendInSession(ctx context.Context, sender int) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer closeAll(ctx, []*pgx.Conn{conn})
	var next int64
	if err := conn.QueryRow(ctx, "select coalesce(max(s.number) + 1, 0) from bench.chaos_sent as s where s.sender = $1",
		sender).Scan(&next); err != nil {
		return fmt.Errorf("read where it stood: %w", err)
	}
	c.pids[sender].Store(conn.PgConn().PID())
	for ; !c.stopped.Load(); next++ {
		begun := time.Now()
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "insert into bench.chaos_sent (sender, number) values ($1, $2)", sender, next); err != nil {
				return fmt.Errorf("record what is sent: %w", err)
			}
			body := fmt.Appendf(nil, "%d %d %*s", sender, next, max(0, c.Size-16), "")
			return parley.Send(ctx, tx, c.handles[sender], messageType, body)
		})
		if err != nil {
			return err
		}
		observe.From(ctx).In(1)
		observe.From(ctx).Took(time.Since(begun))
	}
	return nil
}

// kill kills one of a kind, and records when.
func (c *chaos) kill(ctx context.Context, what string) error {
	var at time.Time
	if err := c.control.QueryRow(ctx, "select clock_timestamp()").Scan(&at); err != nil {
		return err
	}
	c.killed = append(c.killed, at)
	c.progress("killing the %s", what)
	switch what {
	case "reader":
		return c.killReader(ctx)
	case "backend":
		for c.pids[0].Load() == 0 { // it has not connected yet
			if !waitUntil(ctx, time.Now().Add(arrivalPoll)) {
				return context.Cause(ctx)
			}
		}
		pid := c.pids[0].Swap(killedPid)
		_, err := c.control.Exec(ctx, "select pg_terminate_backend($1, 10000)", int64(pid))
		return err
	default:
		c.daemon.Kill()
		return c.startDaemon(ctx)
	}
}

// killReader kills a reader that has received and not committed: it waits for the table that readers write, which is locked here.
func (c *chaos) killReader(ctx context.Context) error {
	return pgx.BeginFunc(ctx, c.control, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "lock table bench.chaos_received in share row exclusive mode"); err != nil {
			return fmt.Errorf("hold the readers before their commit: %w", err)
		}
		deadline := time.Now().Add(chaosStalled)
		for {
			var ended bool
			err := tx.QueryRow(ctx, `
				select coalesce(bool_or(pg_terminate_backend(v.pid, 10000)), false)
				from (
					select a.pid from pg_stat_activity as a
					where a.datname = current_database() and a.wait_event_type = 'Lock' and pg_backend_pid() = any (pg_blocking_pids(a.pid))
					limit 1
				) as v`).Scan(&ended)
			if err != nil {
				return fmt.Errorf("end the session of a reader: %w", err)
			}
			if ended {
				return nil
			}
			if time.Now().After(deadline) {
				return errors.New("no reader was in the middle of a transaction")
			}
			if !waitUntil(ctx, time.Now().Add(arrivalPoll)) {
				return context.Cause(ctx)
			}
			// The statistics of sessions are those of the transaction's first glance unless they are dropped.
			if _, err := tx.Exec(ctx, "select pg_stat_clear_snapshot()"); err != nil {
				return fmt.Errorf("drop the snapshot of sessions: %w", err)
			}
		}
	})
}

// judge waits until all that was sent has arrived, or nothing moves any more, and takes what the database found.
func (c *chaos) judge(ctx context.Context) (rate float64, err error) {
	var sent, received, most int64
	for since := time.Now(); time.Since(since) < chaosStalled; {
		err := c.control.QueryRow(ctx, "select (select count(*) from bench.chaos_sent), (select count(*) from "+
			"bench.chaos_received)").Scan(&sent, &received)
		if err != nil {
			return 0, fmt.Errorf("count what has arrived: %w", err)
		}
		if received >= sent {
			break
		}
		if received > most {
			most, since = received, time.Now()
		}
		if !waitUntil(ctx, time.Now().Add(arrivalPoll)) {
			return 0, context.Cause(ctx)
		}
	}
	var lost, doubled, disordered, never int64
	err = c.control.QueryRow(ctx, "select f.lost, f.doubled, f.disordered, f.never_sent from bench.chaos_findings as f").
		Scan(&lost, &doubled, &disordered, &never)
	if err != nil {
		return 0, fmt.Errorf("judge what has arrived: %w", err)
	}
	for name, value := range map[string]int64{"lost": lost, "doubled": doubled, "out of order": disordered, "never sent": never} {
		c.found[name] = append(c.found[name], float64(value))
	}
	for i, what := range kills {
		seconds, err := c.recovered(ctx, c.killed[i])
		if err != nil {
			return 0, err
		}
		name := "recovered after the " + what
		c.found[name] = append(c.found[name], seconds)
	}
	observe.From(ctx).Out(int(received))
	err = c.control.QueryRow(ctx, `
		select count(*) / greatest(extract(epoch from max(r.received_at) - min(r.received_at)), 0.001)
		from bench.chaos_received as r`).Scan(&rate)
	return rate, err
}

// recovered is how many seconds after a moment each conversation had a message received that was sent after it.
func (c *chaos) recovered(ctx context.Context, at time.Time) (seconds float64, err error) {
	err = c.control.QueryRow(ctx, `
		select coalesce(max(extract(epoch from f.first_at - $1)), 0)::double precision
		from (
			select min(r.received_at) as first_at
			from bench.chaos_sent as s
			join bench.chaos_received as r on r.sender = s.sender and r.number = s.number
			where s.sent_at > $1
			group by s.sender
		) as f`, at).Scan(&seconds)
	if err != nil {
		return 0, fmt.Errorf("read how long it stood still: %w", err)
	}
	return seconds, nil
}
