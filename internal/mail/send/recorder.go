package send

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/backoff"
)

const (
	// recordedAtOnce bounds the outcomes of one transaction.
	recordedAtOnce = 200
	// lastRecording bounds how long a daemon that stops tries to record what it has done.
	lastRecording = 10 * time.Second
)

// recorder records outcomes: one at once when there is one, and as many as came in the meantime after that.
type recorder struct {
	store  Store
	logger *slog.Logger
	filled chan struct{}

	mu       sync.Mutex
	outcomes []Outcome
	reports  map[Hop]HopReport
}

func newRecorder(store Store, logger *slog.Logger) *recorder {
	return &recorder{store: store, logger: logger, filled: make(chan struct{}, 1), reports: make(map[Hop]HopReport)}
}

func (r *recorder) add(outcome Outcome) {
	r.mu.Lock()
	r.outcomes = append(r.outcomes, outcome)
	r.mu.Unlock()
	r.signal()
}

// report keeps what a connection came to; of several reports about a hop the last counts.
func (r *recorder) report(report HopReport) {
	r.mu.Lock()
	r.reports[report.Hop] = report
	r.mu.Unlock()
	r.signal()
}

func (r *recorder) signal() {
	select {
	case r.filled <- struct{}{}:
	default:
	}
}

// take takes what is to be recorded in one transaction.
func (r *recorder) take() (outcomes []Outcome, reports []HopReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.outcomes), recordedAtOnce)
	outcomes, r.outcomes = r.outcomes[:n:n], r.outcomes[n:]
	for _, report := range r.reports {
		reports = append(reports, report)
	}
	clear(r.reports)
	return outcomes, reports
}

// run records until ctx ends, and then what is left. A record that is under way when ctx ends goes on: cut off, messages that hosts have
// would be sent once more.
func (r *recorder) run(ctx context.Context) {
	recording, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastRecording, cancel) })()
	for {
		select {
		case <-ctx.Done():
			r.drain(recording)
			return
		case <-r.filled:
			began := time.Now()
			r.drain(recording)
			_ = backoff.Wait(ctx, backoff.Rest(time.Since(began), 0, 2*pace))
		}
	}
}

// recordingPause is the longest pause before what could not be recorded is tried again: meanwhile leases run out, and what was sent is
// sent again.
const recordingPause = 500 * time.Millisecond

// drain records all that is there. Outcomes that cannot be recorded because the database is away are tried again until ctx ends; then the
// leases run out, and the messages are sent once more. When the database refuses a batch its outcomes are recorded one by one, so that the
// one that it refuses does not hold up the others.
func (r *recorder) drain(ctx context.Context) {
	failures := backoff.NewFailures(r.logger, "what became of messages cannot be recorded")
	for {
		outcomes, reports := r.take()
		if len(outcomes) == 0 && len(reports) == 0 {
			return
		}
		for first := true; len(outcomes) > 0 || len(reports) > 0; first = false {
			batch := outcomes
			if !first {
				batch = outcomes[:min(1, len(outcomes))]
			}
			err := r.record(ctx, batch, reports)
			var refused *pgconn.PgError
			switch {
			case err == nil:
				failures.Succeeded()
			case errors.As(err, &refused) && len(batch) > 1:
				continue
			case errors.As(err, &refused) && !pgconn.SafeToRetry(err) && !passes(refused.Code):
				r.logger.Error("the outcome of a message was refused; it will be sent again when its lease is over", "error", err)
			default:
				select {
				case <-ctx.Done():
					r.logger.Error("what became of messages was not recorded; they will be sent again when their lease is over",
						"messages", len(outcomes), "error", err)
					return
				case <-time.After(min(failures.Failed(err), recordingPause)):
				}
				continue
			}
			outcomes, reports = outcomes[len(batch):], nil
		}
	}
}

func (r *recorder) record(ctx context.Context, outcomes []Outcome, reports []HopReport) error {
	refused, err := r.store.Record(ctx, outcomes, reports)
	if refused > 0 {
		r.logger.Warn("the lease of messages was over before their outcome was recorded; they may be sent twice", "messages", refused)
	}
	for _, report := range reports {
		if report.Failure != nil && err == nil {
			r.logger.Info("a next hop was not reached; its messages wait", "kind", report.Hop.Kind, "connector", report.Hop.Connector,
				"name", report.Hop.Name, "status", report.Failure.Enhanced, "reason", report.Failure.Text)
		}
	}
	return err
}

// passes is whether an error of the server may be gone the next time: a conflict of transactions, a lack of resources, a server that
// stops.
func passes(sqlstate string) bool {
	return strings.HasPrefix(sqlstate, "40") || strings.HasPrefix(sqlstate, "53") || strings.HasPrefix(sqlstate, "55") ||
		strings.HasPrefix(sqlstate, "57") || strings.HasPrefix(sqlstate, "58")
}
