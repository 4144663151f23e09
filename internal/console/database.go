package console

import (
	"context"
	"errors"
	"fmt"
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
)

// applicationName names the console's connections in pg_stat_activity.
const applicationName = "parley console"

// proofs of a password that a login accepts: a server that asks for none would let in whoever reaches the console.
const proofs = "scram-sha-256,md5,password"

// ownSettings are the settings of each transaction, whatever the role or the database have as their defaults: its time, how values
// are written, and no schema in which somebody else's function could stand for one of PostgreSQL. They are no parameters of the
// connection, of which a pooler takes few.
const ownSettings = `
	select pg_catalog.set_config(s.name, s.value, true)
	from (
		values ('statement_timeout', $1::pg_catalog.text), ('lock_timeout', $1::pg_catalog.text),
			('idle_in_transaction_session_timeout', '30s'), ('search_path', 'pg_catalog'), ('TimeZone', 'UTC'), ('DateStyle', 'ISO'),
			('IntervalStyle', 'postgres'), ('bytea_output', 'hex')
	) as s (name, value)`

// connect opens the connections of a role and checks that the database has a broker that this program understands.
//
// Errors: those of the connection, of which a wrong password is one, and those of [parley.Attach].
func connect(ctx context.Context, target Target, prepare func(*pgx.ConnConfig)) (*pgxpool.Pool, error) {
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

// change runs work in a transaction and records it.
func (s *session) change(ctx context.Context, work func(context.Context, pgx.Tx) error) error {
	return s.within(ctx, changeBudget, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, work)
}

func (s *session) within(
	ctx context.Context, budget time.Duration, options pgx.TxOptions, work func(context.Context, pgx.Tx) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, budget+connectBudget)
	defer cancel()
	return pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, ownSettings, fmt.Sprintf("%dms", budget.Milliseconds()))
		if err != nil {
			return fmt.Errorf("set the time of a page: %w", err)
		}
		return work(ctx, tx)
	})
}
