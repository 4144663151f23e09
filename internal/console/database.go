package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// The budgets of a page and of a change, in the database and as a whole.
const (
	readBudget    = 3 * time.Second
	changeBudget  = 15 * time.Second
	connectBudget = 10 * time.Second
	graceOfServer = 500 * time.Millisecond
	// orderBudget is for putting a list in order; the rest of the page's time is for some rows of it in no order.
	orderBudget = readBudget / 4
)

// applicationName names the console's connections in pg_stat_activity.
const applicationName = "parley console"

// proofs of a password that a login accepts: a server that asks for none would let in whoever reaches the console.
const proofs = "scram-sha-256,md5,password"

// errTookTooLong ends a page, or a change, whose statements together take too long.
var errTookTooLong = refused{http.StatusGatewayTimeout, "This took too long, and was given up. Narrow the list by its filters."}

// errLoggedOut ends a session whose role is gone, may not log in any more, or has another password.
var errLoggedOut = errors.New("the server does not let this role in any more")

// ownSettings reports whether the role of the session may still log in, and makes the settings of a transaction, whatever the role
// or the database have as their defaults: its time, how values are written, no schema in which somebody else's function could stand
// for one of PostgreSQL, and no compiling of statements, which takes seconds where the planner expects many rows. They are no
// parameters of the connection, of which a pooler takes few.
const ownSettings = `
	select exists (
			select
			from pg_catalog.pg_roles as r
			where r.rolname operator(pg_catalog.=) session_user and r.rolcanlogin
				and (r.rolvaliduntil is null or r.rolvaliduntil operator(pg_catalog.>) pg_catalog.now())
		),
		pg_catalog.count(pg_catalog.set_config(s.name, s.value, true))
	from (
		values ('statement_timeout', $1::pg_catalog.text), ('lock_timeout', $1::pg_catalog.text),
			('idle_in_transaction_session_timeout', '30s'), ('search_path', 'pg_catalog'), ('TimeZone', 'UTC'), ('DateStyle', 'ISO'),
			('IntervalStyle', 'postgres'), ('bytea_output', 'hex'), ('jit', 'off')
	) as s (name, value)`

// connect opens the connections of a role and checks that the database has a broker that this program understands.
//
// Errors: those of the connection, of which a wrong password is one, and those of [parley.Attach].
func connect(ctx context.Context, target Target, lifetime time.Duration, prepare func(*pgx.ConnConfig)) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, fmt.Errorf("make the configuration of a session: %w", err)
	}
	config.ConnConfig = target.Config.Copy()
	prepare(config.ConnConfig)
	pgdb.SetName(config.ConnConfig, applicationName)
	// Behind a pooler no statement that was prepared is there for the next transaction.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.MaxConns, config.MinConns, config.MaxConnIdleTime = connectionsMost, 0, idleConnectionMost
	config.MaxConnLifetime = lifetime
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := pgdb.PrepareSession(ctx, conn); err != nil && !errors.Is(err, pgdb.ErrIsolation) {
			return err
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectBudget)
	defer cancel()
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	if _, err := parley.Attach(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// asRole prepares a connection of somebody who logs in.
func asRole(role, password string) func(*pgx.ConnConfig) {
	return func(config *pgx.ConnConfig) {
		config.User, config.Password = role, password
		config.RequireAuth = proofs
		// A file of passwords of the console's own user is nobody else's.
		config.ConnectTimeout = connectBudget
	}
}

// read runs work in a transaction that can change nothing and ends within the budget.
func (s *session) read(ctx context.Context, work func(context.Context, pgx.Tx) error) error {
	return s.within(ctx, readBudget, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}, work)
}

// withinBudget runs a part of a page whose statements have less time than the page, and takes it back where they need more.
func withinBudget(ctx context.Context, tx pgx.Tx, budget time.Duration, work func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error {
		if err := setBudget(ctx, part, budget); err != nil {
			return err
		}
		if err := work(part); err != nil {
			return err
		}
		return setBudget(ctx, part, readBudget)
	})
}

// setBudget sets the time of each further statement of a transaction.
func setBudget(ctx context.Context, tx pgx.Tx, budget time.Duration) error {
	_, err := tx.Exec(ctx, "select pg_catalog.set_config('statement_timeout', $1, true)", fmt.Sprintf("%dms", budget.Milliseconds()))
	return err
}

// change runs work in a transaction and records it.
func (s *session) change(ctx context.Context, work func(context.Context, pgx.Tx) error) error {
	defer s.forgetCounts()
	return s.within(ctx, changeBudget, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, work)
}

func (s *session) within(
	ctx context.Context, budget time.Duration, options pgx.TxOptions, work func(context.Context, pgx.Tx) error,
) error {
	connecting, cancelConnecting := context.WithTimeout(ctx, connectBudget)
	defer cancelConnecting()
	conn, err := s.pool.Acquire(connecting)
	if isRefusedLogin(err) {
		return fmt.Errorf("%w: %w", errLoggedOut, err)
	}
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer conn.Release()
	// The server ends a statement that takes too long, and this several of them.
	ctx, cancel := context.WithTimeoutCause(ctx, budget+graceOfServer, errTookTooLong)
	defer cancel()
	err = pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
		var mayLogIn bool
		var settings int
		err := tx.QueryRow(ctx, ownSettings, fmt.Sprintf("%dms", budget.Milliseconds())).Scan(&mayLogIn, &settings)
		if pgdb.SQLState(err) == "42704" || err == nil && !mayLogIn {
			return errLoggedOut
		}
		if err != nil {
			return fmt.Errorf("set the time of a page: %w", err)
		}
		return work(ctx, tx)
	})
	if err != nil && errors.Is(context.Cause(ctx), errTookTooLong) {
		return errTookTooLong
	}
	return err
}

// isRefusedLogin reports whether a server that has let a role in before does so no more.
func isRefusedLogin(err error) bool {
	code := pgdb.SQLState(err)
	return code == "28P01" || code == "28000"
}
