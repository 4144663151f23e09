package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// Config has what a runner needs of its host.
type Config struct {
	Host string
	// Role gives the role of the host, with whose rights statements run; nil, or empty: that of the session.
	Role    func() string
	Pool    *pgxpool.Pool
	Compile Compiler
	// Matcher finds the send ports of what is published; nil: the database matches.
	Matcher func() *match.Matcher
	// Types gives the types of properties by their names; a property that it does not have is text.
	Types func() map[string]string
	// Type gives a constructed message its type and promoted properties by its body.
	Type func(ctx context.Context, m process.Message) (process.Message, error)
	// Transform runs a map of the definitions; nil: there are none. begin gives the transaction of the step, for maps that need it.
	Transform func(
		ctx context.Context, w process.World, begin func(ctx context.Context) (pgx.Tx, error), name string, inputs []process.Message,
	) (process.Message, error)
	Now    func() time.Time
	Logger *slog.Logger
}

// Runner runs instances of a host. Any number of goroutines may use it.
type Runner struct {
	config   Config
	programs programs
}

// New makes a runner.
func New(config Config) *Runner {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.Types == nil {
		config.Types = func() map[string]string { return nil }
	}
	return &Runner{config: config, programs: programs{compile: config.Compile}}
}

// Prepare compiles the newest version of an orchestration, as a port is made before it sends.
func (r *Runner) Prepare(o Orchestration) error {
	key := programKey{o.Name, o.Version}
	if r.programs.find(key) != nil {
		return nil
	}
	made, err := r.config.Compile(o.Name, o.Settings)
	if err != nil {
		return fmt.Errorf("compile orchestration %q: %w", o.Name, err)
	}
	r.programs.keep(key, newCompiled(made))
	return nil
}

// Outcome says what became of deliveries.
type Outcome struct {
	Done  []*flowstore.Claimed // recorded
	Back  []*flowstore.Claimed // not tried, to be given back
	Steps int                  // persistence points of instances
	Ends  Ends
	Err   error // why Back is: the database is away, or somebody else has them
}

// Ends counts instances by what recorded steps have brought them.
type Ends struct {
	Started, Completed, Terminated, Suspended int
	Failed                                    int // steps, which are tried again or suspend their instance
}

func (e *Ends) add(more Ends) {
	e.Started, e.Completed, e.Terminated = e.Started+more.Started, e.Completed+more.Completed, e.Terminated+more.Terminated
	e.Suspended, e.Failed = e.Suspended+more.Suspended, e.Failed+more.Failed
}

// ErrLost says that deliveries are in the hands of others.
var ErrLost = errors.New("the lease is over: another node has the messages")

// Run runs instances by deliveries of one lease and orchestration, in their order, and records what that brings.
func (r *Runner) Run(ctx context.Context, o Orchestration, items []*flowstore.Claimed) Outcome {
	if items[0].Stage == flowstore.StageKilled {
		killed := &process.Fault{
			Code: "process.killed", Message: "hosts that ran the step have gone three times",
			Remedy: "See what the step does; resume or terminate the instance.",
		}
		return r.alone(ctx, o, items, killed)
	}
	done, runs, ends, err := r.try(ctx, o, items, nil, 0)
	if err == nil {
		return Outcome{Done: done, Steps: runs, Ends: ends, Back: without(items, done)}
	}
	if !isOfOne(err) {
		return Outcome{Back: items, Err: err}
	}
	// One of them has failed all: each group is run by itself.
	outcome := Outcome{}
	for _, group := range grouped(items) {
		if outcome.Err != nil {
			outcome.Back = append(outcome.Back, group...)
			continue
		}
		part := r.alone(ctx, o, group, nil)
		outcome.Done, outcome.Back = append(outcome.Done, part.Done...), append(outcome.Back, part.Back...)
		outcome.Steps, outcome.Err = outcome.Steps+part.Steps, part.Err
		outcome.Ends.add(part.Ends)
	}
	return outcome
}

// alone runs what belongs together: as far as it goes, and records that it fails where it fails at once.
func (r *Runner) alone(ctx context.Context, o Orchestration, group []*flowstore.Claimed, failure error) Outcome {
	mostRuns := 0
	for attempt := 0; ; attempt++ {
		done, runs, ends, err := r.try(ctx, o, group, failure, mostRuns)
		switch {
		case err == nil:
			return Outcome{Done: done, Steps: runs, Ends: ends, Back: without(group, done)}
		case isConflict(err) && attempt < 5:
			// Somebody else has gone first.
			if pause(ctx, time.Duration(10<<attempt)*time.Millisecond) != nil {
				return Outcome{Back: group, Err: err}
			}
			continue
		case !isOfOne(err) || failure != nil:
			return Outcome{Back: group, Err: err}
		}
		if runs > 0 && mostRuns == 0 {
			mostRuns = runs // those that succeeded are kept
			continue
		}
		r.config.Logger.Warn("a step of an orchestration has failed", "orchestration", o.Name, "error", err)
		failure = err
	}
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, long time.Duration) error {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// try runs deliveries in one transaction. With a failure it runs nothing, and records that the step has failed by that. With mostRuns it
// ends behind so many runs. It gives what is recorded, what that has brought instances, and how many runs succeeded, also where one after
// them has failed.
func (r *Runner) try(
	ctx context.Context, o Orchestration, items []*flowstore.Claimed, failure error, mostRuns int,
) (done []*flowstore.Claimed, runs int, ends Ends, err error) {
	c := &call{runner: r, of: o, items: items, failure: failure, mostRuns: mostRuns, now: r.config.Now(), messages: map[int64]*delivered{}}
	defer func() {
		if c.base != nil {
			rollback, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_ = c.base.Rollback(rollback)
		}
	}()
	if err := c.do(ctx); err != nil {
		return nil, c.runs, Ends{}, err
	}
	if err := c.commit(ctx); err != nil {
		return nil, 0, Ends{}, err
	}
	return c.done, c.runs, c.ends(), nil
}

// grouped parts deliveries by what they are for: an instance or a convoy, or nothing but the delivery itself.
func grouped(items []*flowstore.Claimed) [][]*flowstore.Claimed {
	groups, at := [][]*flowstore.Claimed{}, map[string]int{}
	for _, item := range items {
		if item.OrderKey == nil || *item.OrderKey == "" {
			groups = append(groups, []*flowstore.Claimed{item})
			continue
		}
		n, isThere := at[*item.OrderKey]
		if !isThere {
			n = len(groups)
			at[*item.OrderKey], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], item)
	}
	return groups
}

func without(items, done []*flowstore.Claimed) []*flowstore.Claimed {
	if len(done) == len(items) {
		return nil
	}
	are := map[int64]bool{}
	for _, item := range done {
		are[item.Item] = true
	}
	left := []*flowstore.Claimed{}
	for _, item := range items {
		if !are[item.Item] {
			left = append(left, item)
		}
	}
	return left
}

// isOfOne reports whether an error is of what was run, and not of the database or of the lease.
func isOfOne(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrLost) {
		return false
	}
	state := pgdb.SQLState(err)
	if state == "PF007" || state == "PF001" || len(state) == 5 && (state[:2] == "08" || state[:2] == "53" || state[:2] == "57" ||
		state[:2] == "58") {
		return false
	}
	_, isRefused := errors.AsType[*pgconn.ConnectError](err)
	_, isBroken := errors.AsType[*net.OpError](err) // maps speak by pipes, which have other errors
	return !isRefused && !isBroken && !errors.Is(err, pgconn.ErrConnClosed) && !errors.Is(err, io.ErrUnexpectedEOF) &&
		!errors.Is(err, errConnection)
}

// errConnection says that the connection of a transaction was lost.
var errConnection = errors.New("the connection was lost")

// isConflict reports whether the same may succeed when it is done again.
func isConflict(err error) bool {
	state := pgdb.SQLState(err)
	return state == "40001" || state == "40P01"
}
