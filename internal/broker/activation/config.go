package activation

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	defaultGraceTime   = 10 * time.Second
	defaultSessionsMax = 50
)

// Config reports what an engine works on. Only Pool is needed.
type Config struct {
	// Pool leads to the database; it may lead through a pooler in transaction mode. The engine uses a few connections of
	// it, for its own statements.
	Pool *pgxpool.Pool
	// ProcedureConfig says how the sessions that run procedures connect, given the role of the procedure; its user is that role or a login
	// that may act as it. When nil they log in as Pool does, and a procedure that calls RESET ROLE has the rights of the daemon.
	ProcedureConfig func(role string) (*pgx.ConnConfig, error)
	// Interpret runs a procedure whose call ended with [InterpretedState], as the role that the session has taken on: PostgreSQL keeps its
	// text alone. It is named as CALL names it. When nil such a procedure fails.
	Interpret func(ctx context.Context, conn *pgx.Conn, procedure string, logger *slog.Logger) error
	// SessionsMax bounds the sessions that run procedures, for all queues together; 0 means 50. They are connected with the
	// settings of Pool, beside it.
	SessionsMax int
	// Starters make the readers that are not procedures, by kind. A queue whose kind is missing here fails to start.
	Starters map[string]Starter
	// Ramp is how long to wait before each further reader of a queue while others receive; 0 starts all at once.
	Ramp time.Duration
	// GraceTime is how long readers may go on after the engine was asked to stop; 0 means 10 seconds.
	GraceTime time.Duration
	// Observer is informed of what happens; it may be nil.
	Observer Observer
	// Logger receives the same; nil means [slog.Default].
	Logger *slog.Logger
}

// New checks the configuration. Nothing runs before the leader of the database does.
func New(config Config) (*Engine, error) {
	switch {
	case config.Pool == nil:
		return nil, errors.New("activation: Pool is missing")
	case config.Ramp < 0 || config.GraceTime < 0 || config.SessionsMax < 0:
		return nil, errors.New("activation: SessionsMax and times must not be negative")
	}
	config.SessionsMax = cmp.Or(config.SessionsMax, defaultSessionsMax)
	config.GraceTime = cmp.Or(config.GraceTime, defaultGraceTime)
	if config.Observer == nil {
		config.Observer = unobserved{}
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Engine{config: config, sessions: newSessions(config)}, nil
}
