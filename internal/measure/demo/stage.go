package demo

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/measure/machine"
)

// stage is the part that runs on one server and on several have in common: where the readers log, the messages that were sent, and who is
// notified.
type stage struct {
	// control is a session where the readers are; start is the time of the first message there.
	control *pgx.Conn
	start   time.Time
	sent    func() int64
	// patience is how long nothing may move before the rest is given up.
	patience time.Duration

	observing sync.Mutex
	observer  interface{ Notice(text string) } // nil for none
}

func (s *stage) notice(text string) {
	s.observing.Lock()
	defer s.observing.Unlock()
	if s.observer != nil {
		s.observer.Notice(text)
	}
}

// now is the time by the clock of the server, by which all is measured.
func (s *stage) now(ctx context.Context) (at time.Time, err error) {
	if err := s.control.QueryRow(ctx, "select clock_timestamp()").Scan(&at); err != nil {
		return at, fmt.Errorf("ask for the time: %w", err)
	}
	return at, nil
}

// watched runs work beside a watch, which is stopped when the work is done. The first error of either ends both.
func watched(ctx context.Context, background *crew, watch func(stop <-chan struct{}) error, work func() error) error {
	var watching sync.WaitGroup
	stop := make(chan struct{})
	watching.Go(func() {
		if err := watch(stop); err != nil {
			background.fail(err)
		}
	})
	if err := work(); err != nil {
		background.fail(err)
	}
	close(stop)
	watching.Wait()
	return context.Cause(ctx)
}

// playPhase lets senders send messages of one size while meanwhile runs, waits until all are received, and gives the figures.
func (s *stage) playPhase(
	ctx context.Context, senders []*sender, payloadBytes int, meanwhile func(context.Context) error,
) (Payload, error) {
	begun, err := s.now(ctx)
	if err != nil {
		return Payload{}, err
	}
	before := s.sent()
	if err := sendWhile(ctx, senders, payloadBytes, meanwhile); err != nil {
		return Payload{}, err
	}
	stopped, err := s.now(ctx)
	if err != nil {
		return Payload{}, err
	}
	if err := s.drain(ctx); err != nil {
		return Payload{}, err
	}
	payload, err := readPhase(ctx, s.control, begun)
	if err != nil {
		return Payload{}, err
	}
	payload.PayloadBytes, payload.MessagesSent = payloadBytes, s.sent()-before
	payload.SendSeconds, payload.begun = stopped.Sub(begun).Seconds(), begun.Sub(s.start).Seconds()
	var took []time.Duration
	for _, one := range senders {
		took = append(took, one.took...)
	}
	slices.Sort(took)
	payload.SendP50MS, payload.SendP99MS = milliseconds(took, 0.50), milliseconds(took, 0.99)
	return payload, nil
}

// sendWhile lets senders send for as long as something else takes.
func sendWhile(ctx context.Context, senders []*sender, payloadBytes int, meanwhile func(context.Context) error) error {
	sending, ctx := newCrew(ctx)
	defer sending.fail(nil)
	var stopped atomic.Bool
	for _, s := range senders {
		s.took = s.took[:0]
		sending.start(func() error { return s.sendUntil(ctx, payloadBytes, &stopped) })
	}
	err := meanwhile(ctx)
	stopped.Store(true)
	sending.working.Wait()
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}

// warmUp sends one message on each conversation that is in use, so that all targets exist.
func (s *stage) warmUp(ctx context.Context, senders []*sender) error {
	if err := each(ctx, senders, func(ctx context.Context, one *sender) error { return one.warmUp(ctx) }); err != nil {
		return err
	}
	return s.drain(ctx)
}

// drain waits until everything that was sent is received.
func (s *stage) drain(ctx context.Context) error {
	return s.await(ctx, func() (standing, error) {
		_, received, err := readProgress(ctx, s.control)
		return standing{left: s.sent() - received}, err
	})
}

// standing is how far a run has come. Where one on the way becomes many, such as a file of many orders, what is left grows for a while; so
// what has arrived counts, too.
type standing struct{ left, arrived int64 }

// await waits until nothing is left. A message that is stuck for long does not come any more; the check reports it.
func (s *stage) await(ctx context.Context, stands func() (standing, error)) error {
	best, since := standing{left: math.MaxInt64, arrived: -1}, time.Now()
	for {
		now, err := stands()
		switch {
		case err != nil:
			return err
		case now.left <= 0:
			return nil
		case now.left < best.left || now.arrived > best.arrived:
			best, since = standing{min(best.left, now.left), max(best.arrived, now.arrived)}, time.Now()
		case time.Since(since) > s.patience:
			s.notice(fmt.Sprintf("Nothing has moved for %v; %d are still open.", s.patience, now.left))
			return nil
		}
		if err := backoff.Wait(ctx, drainPoll); err != nil {
			return err
		}
	}
}

// countOpen counts the conversations of a database that are not over.
func countOpen(ctx context.Context, conn *pgx.Conn) (open int64, err error) {
	err = conn.QueryRow(ctx, "select count(*) from parley.conversation_endpoints where state <> 'CD'").Scan(&open)
	if err != nil {
		return 0, fmt.Errorf("count open conversations: %w", err)
	}
	return open, nil
}

// ending is the text about a run when it is over.
type ending struct {
	Findings
	machine machine.Machine
	server  map[string]string
	// seconds is the time from the first message sent to the last that was received.
	seconds float64
}

// conclude checks every message, and reads where they were measured.
func (s *stage) conclude(ctx context.Context) (e ending, err error) {
	if e.Findings, err = check(ctx, s.control); err != nil {
		return e, err
	}
	if e.machine, err = machine.Read(ctx, s.control); err != nil {
		return e, err
	}
	if e.server, err = machine.Settings(ctx, s.control, serverSettings...); err != nil {
		return e, err
	}
	var last time.Time
	if err := s.control.QueryRow(ctx, "select coalesce(max(received_at), clock_timestamp()) from receive_log").Scan(&last); err != nil {
		return e, fmt.Errorf("read the log of the readers: %w", err)
	}
	e.seconds = last.Sub(s.start).Seconds()
	return e, nil
}

// serverSettings decide what a commit costs, and so what the figures are worth.
var serverSettings = []string{
	"fsync", "full_page_writes", "max_wal_size", "shared_buffers", "synchronous_commit", "wal_compression", "wal_sync_method",
}
