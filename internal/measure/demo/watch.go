package demo

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// samplePoll is how often the demo is sampled, drainPoll how often when the end of a phase is awaited.
	samplePoll = 250 * time.Millisecond
	drainPoll  = 20 * time.Millisecond
	// stallTimeout is how long nothing may move before the rest is given up.
	stallTimeout = 30 * time.Second
	// rateSamples is how many samples a rate of late spans.
	rateSamples = 4
)

// Sample holds the counts at one time of a run, in seconds since the first message.
type Sample struct {
	Seconds        float64
	Sent, Received int64
}

// watch counts what is sent and received, by the clock of the server.
type watch struct {
	conn    *pgx.Conn
	sent    *atomic.Int64
	start   time.Time
	samples []Sample
}

// readProgress counts what was received.
func readProgress(ctx context.Context, conn *pgx.Conn) (at time.Time, received int64, err error) {
	err = conn.QueryRow(ctx, "select clock_timestamp(), coalesce(sum(messages), 0)::bigint from receive_log").Scan(&at, &received)
	if err != nil {
		return at, 0, fmt.Errorf("count what was received: %w", err)
	}
	return at, received, nil
}

// run takes a sample now and then until it is stopped, and shows the latest.
func (w *watch) run(ctx context.Context, stop <-chan struct{}, show func(latest []Sample)) error {
	w.samples = []Sample{{}}
	return eachPoll(ctx, stop, func() error {
		at, received, err := readProgress(ctx, w.conn)
		if err != nil {
			return err
		}
		// A sender may not have counted yet what a reader has.
		w.samples = append(w.samples, Sample{Seconds: at.Sub(w.start).Seconds(), Sent: max(w.sent.Load(), received), Received: received})
		show(latest(w.samples))
		return nil
	})
}

// eachPoll takes a sample now and then until the context or stop ends it.
func eachPoll(ctx context.Context, stop <-chan struct{}, sample func() error) error {
	tick := time.NewTicker(samplePoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-stop:
			return nil
		case <-tick.C:
		}
		if err := sample(); err != nil {
			return err
		}
	}
}

// latest gives the samples that a rate of late spans.
func latest[T any](samples []T) []T { return samples[max(0, len(samples)-rateSamples-1):] }
