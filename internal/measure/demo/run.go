package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/machine"
)

// Run plays the workload in a database of its own, beside the one that admin is connected to, and checks it. A run that
// found something wrong is a Result that has not Passed, and no error.
func Run(ctx context.Context, admin *pgx.Conn, config Config) (Result, error) {
	if err := config.Validate(); err != nil {
		return Result{}, err
	}
	db, err := createDatabase(ctx, admin, config.Database)
	if err != nil {
		return Result{}, err
	}
	result, err := play(ctx, db, config)
	if !config.Keep {
		err = errors.Join(err, db.drop(ctx))
	}
	return result, err
}

// run is a run under way.
type run struct {
	config  Config
	db      *database
	control *pgx.Conn
	handles []parley.UUID
	senders []*sender
	readers *readers
	watch   *watch
	sent    atomic.Int64
	phase   atomic.Int32
	kill    kill

	observing sync.Mutex
}

func play(ctx context.Context, db *database, config Config) (Result, error) {
	r := &run{config: config, db: db, readers: &readers{db: db}}
	defer r.close(ctx)
	startedAt := time.Now()
	if err := r.prepare(ctx); err != nil {
		return Result{}, err
	}
	background, ctx := newCrew(ctx)
	defer background.fail(nil)
	r.readers.fail = background.fail
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	background.start(func() error { return r.readers.run(serving, config.Readers) })
	var watching sync.WaitGroup
	stop := make(chan struct{})
	watching.Go(func() {
		if err := r.watch.run(ctx, stop, r.show); err != nil {
			background.fail(err)
		}
	})
	payloads, err := r.workload(ctx)
	if err != nil {
		background.fail(err)
	}
	r.readers.done.Store(true)
	stopServing()
	background.working.Wait()
	close(stop)
	watching.Wait()
	if err := context.Cause(ctx); err != nil {
		return Result{}, err
	}
	return r.conclude(ctx, startedAt, payloads)
}

// prepare installs everything and opens the sessions of the senders and of those that watch.
func (r *run) prepare(ctx context.Context) (err error) {
	r.notice("Installing the schema and creating the paper's objects.")
	if r.control, err = r.db.connect(ctx); err != nil {
		return err
	}
	if err := furnish(ctx, r.control, ledgerTable, initiatorObjects, targetObjects); err != nil {
		return err
	}
	if err := activate(ctx, r.control, r.config.Readers); err != nil {
		return err
	}
	if r.handles, err = openDialogs(ctx, r.control, 1, r.config.Conversations); err != nil {
		return err
	}
	r.watch = &watch{sent: &r.sent}
	if r.watch.conn, err = r.db.connect(ctx); err != nil {
		return err
	}
	for i := range r.config.Senders {
		conn, err := r.db.connect(ctx)
		if err != nil {
			return err
		}
		r.senders = append(r.senders, &sender{number: i, conn: conn, bodies: newBodyWriter(i)})
	}
	deal(r.handles, 0, r.senders)
	r.watch.start, err = r.now(ctx)
	if err != nil {
		return err
	}
	r.notice(fmt.Sprintf("%d senders and %d conversations are ready in database %s. Messages start their readers, %d at most.",
		r.config.Senders, r.config.Conversations, r.config.Database, r.config.Readers))
	return nil
}

func (r *run) close(ctx context.Context) {
	conns := []*pgx.Conn{r.control}
	if r.watch != nil {
		conns = append(conns, r.watch.conn)
	}
	for _, s := range r.senders {
		conns = append(conns, s.conn)
	}
	for _, conn := range conns {
		if conn != nil {
			closeConn(ctx, conn)
		}
	}
}

// workload sends on every conversation once, then each payload size for its share of the time, and ends all conversations.
func (r *run) workload(ctx context.Context) ([]Payload, error) {
	err := each(ctx, r.senders, func(ctx context.Context, s *sender) error { return s.warmUp(ctx, &r.sent) })
	if err != nil {
		return nil, err
	}
	if err := r.drain(ctx); err != nil {
		return nil, err
	}
	var payloads []Payload
	for i, size := range PayloadBytes {
		r.phase.Store(int32(i))
		payload, err := r.playPhase(ctx, size, i == killPhase)
		if err != nil {
			return nil, err
		}
		payloads = append(payloads, payload)
	}
	return payloads, r.endDialogs(ctx)
}

// endDialogs lets the senders end all conversations and waits until the readers have ended the other sides.
func (r *run) endDialogs(ctx context.Context) error {
	err := each(ctx, r.senders, func(ctx context.Context, s *sender) error {
		var mine []parley.UUID
		for i := s.number; i < len(r.handles); i += len(r.senders) {
			mine = append(mine, r.handles[i])
		}
		return endDialogs(ctx, s.conn, mine)
	})
	if err != nil {
		return err
	}
	r.notice("All messages are sent; the senders have ended their conversations.")
	return r.await(ctx, func() (left int64, err error) {
		err = r.control.QueryRow(ctx, "select count(*) from parley.conversation_endpoints where state <> 'CD'").Scan(&left)
		if err != nil {
			return 0, fmt.Errorf("count open conversations: %w", err)
		}
		return left, nil
	})
}

// conclude checks and puts the result together.
func (r *run) conclude(ctx context.Context, startedAt time.Time, payloads []Payload) (Result, error) {
	r.notice("Checking every message.")
	result := Result{
		ReadersKilled:  r.readers.killed.Load(),
		ReadersStarted: r.readers.started.Load(),
		Payloads:       payloads,
		StartedAt:      startedAt,
		Settings: Settings{
			Senders: r.config.Senders, Readers: r.config.Readers, Conversations: r.config.Conversations,
			DurationSeconds: r.config.Duration.Seconds(),
		},
		samples: r.watch.samples,
		kill:    r.kill,
	}
	var err error
	if result.Findings, err = check(ctx, r.control); err != nil {
		return Result{}, err
	}
	if result.LeftBehind, err = findLeftovers(ctx, r.control, targetQueue, initiatorQueue); err != nil {
		return Result{}, err
	}
	if result.Machine, err = machine.Read(ctx, r.control); err != nil {
		return Result{}, err
	}
	if result.Server, err = machine.Settings(ctx, r.control, serverSettings...); err != nil {
		return Result{}, err
	}
	if result.batches, err = readBatches(ctx, r.control); err != nil {
		return Result{}, err
	}
	last, err := lastReceived(ctx, r.control)
	if err != nil {
		return Result{}, err
	}
	result.Seconds = last.Sub(r.watch.start).Seconds()
	result.MessagesPerSecond = perSecond(result.MessagesReceived, result.Seconds)
	result.Passed = result.Clean() && result.LeftBehind.None() && result.ReadersKilled == 1
	return result, nil
}

// serverSettings decide what a commit costs, and so what the figures are worth.
var serverSettings = []string{
	"fsync", "full_page_writes", "max_wal_size", "shared_buffers", "synchronous_commit", "wal_compression", "wal_sync_method",
}

func (r *run) notice(text string) {
	r.observing.Lock()
	defer r.observing.Unlock()
	if r.config.Observer != nil {
		r.config.Observer.Notice(text)
	}
}

// show reports the state of the demo after these latest samples to the observer.
func (r *run) show(latest []Sample) {
	if r.config.Observer == nil {
		return
	}
	phase := int(r.phase.Load())
	first, last := latest[0], latest[len(latest)-1]
	seconds := last.Seconds - first.Seconds
	r.observing.Lock()
	defer r.observing.Unlock()
	r.config.Observer.Progress(Progress{
		Phase: phase, PayloadBytes: PayloadBytes[phase],
		Elapsed: time.Duration(last.Seconds * float64(time.Second)), Duration: r.config.Duration,
		Sent: last.Sent, Received: last.Received,
		SentPerSecond:     perSecond(last.Sent-first.Sent, seconds),
		ReceivedPerSecond: perSecond(last.Received-first.Received, seconds),
	})
}

func perSecond(count int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(count) / seconds
}
