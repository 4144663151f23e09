package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/notifier"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

const (
	// campaignInterval is how often a daemon that does not lead asks whether it can.
	campaignInterval = time.Second
	// statementTimeout bounds each statement of the campaign.
	statementTimeout = 10 * time.Second
)

// LeaderConfig reports which database to serve and what to do there. Only Pool is needed.
type LeaderConfig struct {
	// Pool leads to the database; it may lead through a pooler in transaction mode.
	Pool *pgxpool.Pool
	// ListenConfig is how to reach the database for notifications, without a pooler in between. When nil the settings of Pool are used, and
	// parts scan at intervals when these lead through a pooler.
	ListenConfig *pgx.ConnConfig
	// Name distinguishes this daemon from others in views and logs; "" means host and process id.
	Name string
	// Databases is how many databases the daemon serves, this one among them: LOCAL routes lead to all of them. 0 means that it is not
	// known.
	Databases int
	// Parts work while this daemon leads.
	Parts []LedPart
	// LeadershipChanged is called when this daemon leads from now on, under the given term, or leads no more; it must return at once. Nil is
	// for nobody.
	LeadershipChanged func(leads bool, term int64)
	// Logger receives what happens; nil means [slog.Default].
	Logger *slog.Logger
}

// Leader is the part of a daemon that serves one database.
type Leader struct {
	config   LeaderConfig
	notifier *notifier.Notifier
	prepared int
}

var _ Part = (*Leader)(nil)

// NewLeader checks the configuration. Nothing runs before [Leader.Run].
func NewLeader(config LeaderConfig) (*Leader, error) {
	if config.Pool == nil {
		return nil, errors.New("daemon: Pool is missing")
	}
	if config.Name == "" {
		host, _ := os.Hostname()
		config.Name = fmt.Sprintf("%s:%d", cmp.Or(host, "localhost"), os.Getpid())
	}
	if config.LeadershipChanged == nil {
		config.LeadershipChanged = func(bool, int64) {}
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Leader{config: config, notifier: notifier.New(notifier.Config{
		Pool: config.Pool, Direct: config.ListenConfig, Name: "parley listener", Logger: config.Logger,
	})}, nil
}

// Prepare prepares the led parts.
func (l *Leader) Prepare(ctx context.Context) error {
	for _, part := range l.config.Parts {
		l.prepared++
		if err := part.Prepare(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the led parts that were prepared.
func (l *Leader) Close() {
	for ; l.prepared > 0; l.prepared-- {
		l.config.Parts[l.prepared-1].Close()
	}
}

// Run leads whenever no other daemon does, until ctx ends; then it hands the leadership over and waits for its parts. Failures of the
// database are logged and tried again, never returned.
func (l *Leader) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// The parts and the notifier are there for all terms.
	outlasting, stopParts := context.WithCancel(context.WithoutCancel(ctx))
	defer stopParts()
	var running sync.WaitGroup
	var failure error
	running.Go(func() { l.notifier.Run(outlasting) })
	running.Go(func() {
		if failure = Together(outlasting, runs(l.config.Parts)...); failure != nil {
			stop()
		}
	})
	for ctx.Err() == nil {
		if term := l.win(ctx); term != nil {
			l.lead(ctx, term)
		}
	}
	stopParts()
	running.Wait()
	return failure
}

// win returns the term when this daemon leads, or nil when ctx has ended.
func (l *Leader) win(ctx context.Context) *Term {
	resigned := l.notifier.Subscribe(0)
	defer resigned.Close()
	another := resigned.On("leader", notifier.NewWakeUp())
	failures := backoff.NewFailures(l.config.Logger, "the database cannot be asked who leads")
	waits := false
	for ctx.Err() == nil {
		asked := time.Since(processBegan)
		within, cancel := context.WithTimeout(ctx, statementTimeout)
		number, leads, err := activationstore.Lead(within, l.config.Pool, l.config.Name, 0, lease, l.config.Databases)
		cancel()
		pause := backoff.Jitter(campaignInterval, 0.2)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			pause = failures.Failed(err)
		case leads:
			failures.Succeeded()
			t := &Term{Number: number, Notifier: l.notifier, config: l.config}
			t.renewed.Store(int64(asked))
			return t
		default:
			failures.Succeeded()
			if !waits {
				l.config.Logger.Info("another daemon leads; waiting to take over")
			}
			waits = true
		}
		select {
		case <-ctx.Done():
		case <-another:
		case <-time.After(pause):
		}
	}
	return nil
}

// lead has the led parts work until the term is over or ctx ends.
func (l *Leader) lead(ctx context.Context, term *Term) {
	logger := l.config.Logger
	logger.Info("this daemon leads", "term", term.Number)
	l.config.LeadershipChanged(true, term.Number)
	defer l.config.LeadershipChanged(false, term.Number)

	leading, stop := context.WithCancel(ctx)
	defer stop()
	var working sync.WaitGroup
	working.Go(func() { term.keep(leading); stop() })
	for _, part := range l.config.Parts {
		working.Go(func() { part.Lead(leading, term); stop() })
	}
	working.Wait()

	if ctx.Err() == nil {
		logger.Warn("this daemon leads no more; its readers are asked to leave", "term", term.Number)
	}
	// Another daemon need not wait until our readers have left: no message is given to two. When the term is over this does nothing.
	resign, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease)
	defer cancel()
	if err := activationstore.Resign(resign, l.config.Pool, term.Number); err != nil {
		logger.Warn("the leadership could not be handed over; others have to wait for the end of the lease", "error", err)
	}
}
