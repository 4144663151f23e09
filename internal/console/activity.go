package console

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/operate"
)

// freshFor is how long a reading serves all pages of a session, so that a page and its chart cost the database one; rates are taken over
// at least that long.
const freshFor = time.Second

// activeQueue is a queue with its rates, which take two readings.
type activeQueue struct {
	operate.QueueActivity
	InPerSecond, OutPerSecond *float64
}

// activity reads what goes on, with the rates since the reading before.
func (s *session) activity(ctx context.Context, tx pgx.Tx) (operate.Activity, []activeQueue, error) {
	s.mu.Lock()
	now, isFresh := s.latest, time.Since(s.readAt) < freshFor
	s.mu.Unlock()
	if !isFresh {
		var err error
		if now, err = operate.ReadActivity(ctx, tx, 1); err != nil {
			return now, nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.At.Sub(s.latest.At) >= freshFor {
		s.earlier, s.latest, s.readAt = s.latest, now, time.Now()
	}
	earlier := map[int32]operate.QueueActivity{}
	for _, queue := range s.earlier.Queues {
		earlier[queue.QueueID] = queue
	}
	seconds := now.At.Sub(s.earlier.At).Seconds()
	queues := make([]activeQueue, 0, len(now.Queues))
	for _, queue := range now.Queues {
		shown := activeQueue{QueueActivity: queue}
		if then, ok := earlier[queue.QueueID]; ok && seconds > 0 {
			in, out := queue.Rates(then, seconds)
			shown.InPerSecond, shown.OutPerSecond = &in, &out
		}
		queues = append(queues, shown)
	}
	return now, queues, nil
}
