package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/hop"
	"github.com/parley-broker/parley/internal/measure/statistics"
)

// latency offers bodies at a rate, and takes the time of each from the generator to the back end.
func (f *flow) latency(ctx context.Context, size, rate int) (*FlowLatency, error) {
	insert, err := f.insertTime(ctx)
	if err != nil {
		return nil, err
	}
	result := &FlowLatency{Rate: rate, Size: size, InsertP50MS: insert}
	warm := int64(f.WarmUp.Seconds() * float64(rate))
	count := warm + max(1, int64(f.Duration.Seconds()*float64(rate)))
	w := way{sent: make([]time.Time, count), arrived: make([]time.Time, count)}
	err = f.onEngine(ctx, hop.Parley{}, w.arrive, f.startParley, func(_ database, back *hop.BackEnd, listen string) error {
		g := hop.Generator{
			Address: listen, Frames: hop.Parley{}, Connections: f.Connections, Rate: float64(rate), Body: w.send(bodiesOf(size)),
		}
		if _, err := g.Run(ctx, count, 0); err != nil {
			return err
		}
		return back.Await(ctx, count, patience)
	})
	if err != nil {
		return nil, fmt.Errorf("measure the latency: %w", err)
	}
	if lost := slices.IndexFunc(w.arrived, time.Time.IsZero); lost >= 0 {
		return nil, errors.Join(w.err, fmt.Errorf("the back end never got body %d", lost))
	}
	round, err := takeTimes(w.sent, w.arrived, min(warm, count-1))
	result.Latency = round.Latency
	return result, errors.Join(err, w.err)
}

// way has when each body was sent and when it arrived.
type way struct {
	mu            sync.Mutex
	sent, arrived []time.Time
	err           error
}

func (w *way) send(body func(number int64) []byte) func(number int64) []byte {
	return func(number int64) []byte {
		made := body(number)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sent[number] = time.Now()
		return made
	}
}

// arrive is given a body at the back end. One that comes again keeps its first time.
func (w *way) arrive(body []byte) {
	at := time.Now()
	number, err := numberOf(body)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil || number < 0 || number >= int64(len(w.arrived)):
		w.err = errors.Join(w.err, err, fmt.Errorf("the back end got a body %d that was not sent", number))
	case w.arrived[number].IsZero():
		w.arrived[number] = at
	}
}

// inserts is how many bare INSERTs give the median of their time.
const inserts = 500

// insertTime gives the median time of an INSERT with its commit, in milliseconds, on a server that does nothing else.
func (f *flow) insertTime(ctx context.Context) (median float64, err error) {
	d, err := f.cluster.create(ctx, database{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.cluster.drop(context.WithoutCancel(ctx), d)) }()
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, floorTable); err != nil {
			return fmt.Errorf("make the table of the floor: %w", err)
		}
		var times []float64
		body := bodiesOf(f.Sizes[0])
		for id := range int64(inserts) {
			begun := time.Now()
			if _, err := conn.Exec(ctx, "insert into public.floor (id, body) values ($1, $2)", id, body(id)); err != nil {
				return fmt.Errorf("insert a row: %w", err)
			}
			times = append(times, float64(time.Since(begun))/float64(time.Millisecond))
		}
		slices.Sort(times)
		median = statistics.Percentile(times, 0.5)
		return nil
	})
	return median, err
}
