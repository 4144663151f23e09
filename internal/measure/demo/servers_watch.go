package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// flowWatch counts what is sent, waits and is received.
type flowWatch struct {
	target     *pgx.Conn
	initiators []*initiator
	start      time.Time

	mu      sync.Mutex
	samples []FlowSample
}

// sample counts now.
func (w *flowWatch) sample(ctx context.Context) (FlowSample, error) {
	s := FlowSample{}
	at, received, err := readProgress(ctx, w.target)
	if err != nil {
		return s, err
	}
	s.Seconds, s.Received = at.Sub(w.start).Seconds(), received
	for _, i := range w.initiators {
		waiting, err := countWaiting(ctx, i.watching)
		if err != nil {
			return s, fmt.Errorf("%s: %w", i.name, err)
		}
		s.Sent, s.Waiting = append(s.Sent, i.sent.Load()), append(s.Waiting, waiting)
	}
	return s, nil
}

// run takes a sample now and then until it is stopped, and shows the latest.
func (w *flowWatch) run(ctx context.Context, stop <-chan struct{}, show func(latest []FlowSample)) error {
	return eachPoll(ctx, stop, func() error {
		s, err := w.sample(ctx)
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.samples = append(w.samples, s)
		recent := latest(w.samples)
		w.mu.Unlock()
		if len(recent) > 1 {
			show(recent)
		}
		return nil
	})
}

// since gives the samples from a time on.
func (w *flowWatch) since(seconds float64) []FlowSample {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []FlowSample
	for _, s := range w.samples {
		if s.Seconds >= seconds {
			found = append(found, s)
		}
	}
	return found
}

// countWaiting counts what a database has in its transmission queue.
func countWaiting(ctx context.Context, conn *pgx.Conn) (waiting int64, err error) {
	err = conn.QueryRow(ctx, `
		select coalesce(sum(d.waiting_messages + d.messages_in_transit), 0)::bigint
		from parley.transmission_destinations() as d`).Scan(&waiting)
	if err != nil {
		return 0, fmt.Errorf("count what waits to be transmitted: %w", err)
	}
	return waiting, nil
}
