package demo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
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
	stage
	config  Config
	db      *database
	handles []parley.UUID
	senders []*sender
	readers *readers
	watch   *watch
	counter atomic.Int64
	phase   atomic.Int32
	kill    kill
}

func play(ctx context.Context, db *database, config Config) (Result, error) {
	r := &run{config: config, db: db, readers: &readers{db: db}}
	r.patience, r.sent = stallTimeout, r.counter.Load
	if config.Observer != nil {
		r.observer = config.Observer
	}
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
	var payloads []Payload
	err := watched(ctx, background, func(stop <-chan struct{}) error { return r.watch.run(ctx, stop, r.show) }, func() (err error) {
		if payloads, err = r.workload(ctx); err != nil {
			background.fail(err)
		}
		r.readers.done.Store(true)
		stopServing()
		background.working.Wait()
		return nil
	})
	if err != nil {
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
	r.watch = &watch{sent: &r.counter}
	if r.watch.conn, err = r.db.connect(ctx); err != nil {
		return err
	}
	for i := range r.config.Senders {
		conn, err := r.db.connect(ctx)
		if err != nil {
			return err
		}
		r.senders = append(r.senders, &sender{number: i, conn: conn, bodies: newBodyWriter(i), sent: &r.counter})
	}
	deal(r.handles, 0, r.senders)
	if r.start, err = r.now(ctx); err != nil {
		return err
	}
	r.watch.start = r.start
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
	if err := r.warmUp(ctx, r.senders); err != nil {
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
	return r.await(ctx, func() (standing, error) {
		open, err := countOpen(ctx, r.control)
		return standing{left: open}, err
	})
}

// conclude checks and puts the result together.
func (r *run) conclude(ctx context.Context, startedAt time.Time, payloads []Payload) (Result, error) {
	r.notice("Checking every message.")
	end, err := r.stage.conclude(ctx)
	if err != nil {
		return Result{}, err
	}
	result := Result{
		Findings:       end.Findings,
		Seconds:        end.seconds,
		Machine:        end.machine,
		Server:         end.server,
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
	if result.LeftBehind, err = findLeftovers(ctx, r.control, targetQueue, initiatorQueue); err != nil {
		return Result{}, err
	}
	if result.batches, err = readBatches(ctx, r.control); err != nil {
		return Result{}, err
	}
	result.MessagesPerSecond = perSecond(result.MessagesReceived, result.Seconds)
	result.Passed = result.Clean() && result.LeftBehind.None() && result.ReadersKilled == 1
	return result, nil
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
