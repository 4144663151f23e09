// Package durable gives connections to a database whose commits can be relied on by others.
//
// A commit that waits for a synchronous standby can be cut short: the server then warns that the transaction is committed here and
// maybe nowhere else, and still reports success. After a crash such transactions are visible too. A daemon that then reports to another
// database that it has something, says what a failover may take back. So:
//   - A statement during which the server gave that warning counts as failed ([ErrUnreplicated]).
//   - After such a warning, and on every connection that is new, what can be seen is not relied on before a record of our own is
//     committed, which waits for everything before it.
//
// Without a synchronous standby this costs one small commit for each new connection.
package durable

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// ErrUnreplicated means that a transaction has committed on the server itself, but the wait for its standbys was cut short.
var ErrUnreplicated = errors.New("the transaction has committed, but its wait for the synchronous standby was cut short")

// idleTime is after how long a connection that is not used is closed.
const idleTime = time.Minute

// The server's function that waits for standbys, and so the one that warns; unlike the text it is the same in every language.
const waitsForStandby = "SyncRepWaitForLSN"

// warned is the key under which a connection remembers a warning.
const warned = "parley.unreplicated"

// Pool is a pool of such connections. It is safe for concurrent use.
type Pool struct {
	pool *pgxpool.Pool
	// generation counts new connections and cut waits; settled is the generation up to which all that can be seen is safe.
	generation atomic.Int64
	settled    atomic.Int64
}

// Open makes a pool with the settings of another one and a number of connections of its own. Nothing is connected before it is
// needed. Name is what pg_stat_activity shows.
func Open(ctx context.Context, settings *pgxpool.Config, name string, connectionsMax int32) (*Pool, error) {
	p := &Pool{}
	config := settings.Copy()
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, connectionsMax
	config.MaxConnIdleTime = idleTime
	if config.ConnConfig.RuntimeParams == nil {
		config.ConnConfig.RuntimeParams = map[string]string{}
	}
	config.ConnConfig.RuntimeParams["application_name"] = name
	config.ConnConfig.OnNotice = func(conn *pgconn.PgConn, notice *pgconn.Notice) {
		if notice.Routine == waitsForStandby {
			conn.CustomData()[warned] = true
		}
	}
	afterConnect := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		p.generation.Add(1)
		if afterConnect != nil {
			return afterConnect(ctx, conn)
		}
		return nil
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("prepare to connect: %w", err)
	}
	p.pool = pool
	p.generation.Add(1)
	return p, nil
}

// Close closes all connections, and waits for those in use.
func (p *Pool) Close() { p.pool.Close() }

// Generation changes with each new connection: the server behind it may be another one than before.
func (p *Pool) Generation() int64 { return p.generation.Load() }

// Do runs work on a connection. When it succeeds, all that work has committed and all that it could see is safe: should a wait have
// been cut short, it returns [ErrUnreplicated].
func (p *Pool) Do(ctx context.Context, work func(conn *pgx.Conn) error) error {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	data := conn.Conn().PgConn().CustomData()
	delete(data, warned)
	err = work(conn.Conn())
	if err == nil && data[warned] == nil {
		err = p.settle(ctx, conn.Conn())
	}
	if data[warned] != nil {
		p.generation.Add(1)
		return errors.Join(ErrUnreplicated, err)
	}
	if pgdb.SQLState(err) == readOnly {
		// The server that we are connected to has become a standby: the next connections find the one that takes writes.
		p.generation.Add(1)
		p.pool.Reset()
	}
	return err
}

const readOnly = "25006" // read_only_sql_transaction

// settle waits until what could be seen so far is as safe as a commit makes it, unless that is known. It has to be asked on the
// connection on which it was seen: another one may lead to another server.
func (p *Pool) settle(ctx context.Context, conn *pgx.Conn) error {
	seen := p.generation.Load()
	if p.settled.Load() >= seen {
		return nil
	}
	// A transaction that writes nothing does not wait. Only logical decoding could see the writes of this one.
	_, err := conn.Exec(ctx, "select pg_catalog.pg_logical_emit_message(true, 'parley', 'settle')", pgx.QueryExecModeExec)
	if err != nil {
		return fmt.Errorf("wait until what is committed is safe: %w", err)
	}
	if conn.PgConn().CustomData()[warned] == nil {
		for known := p.settled.Load(); known < seen && !p.settled.CompareAndSwap(known, seen); {
			known = p.settled.Load()
		}
	}
	return nil
}

// DB runs single statements that nobody else relies on.
func (p *Pool) DB() parley.DB { return p.pool }
