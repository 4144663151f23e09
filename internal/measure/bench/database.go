package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// databasePrefix begins the names of all databases of ours.
const databasePrefix = "parley_bench_"

// cleanUpTimeout is for dropping the databases when the benchmark is over or interrupted.
const cleanUpTimeout = 2 * time.Minute

// cluster is the server, as a place for databases of our own.
type cluster struct {
	config *pgx.ConnConfig
	admin  *pgx.Conn
	prefix string
	made   int
	// furnished has the broker, once it was asked for.
	furnished database
}

// database is one database of ours.
type database struct {
	name   string
	config *pgx.ConnConfig
}

func openCluster(ctx context.Context, dsn string) (*cluster, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the DSN: %w", err)
	}
	admin, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	return &cluster{config: config, admin: admin, prefix: databasePrefix + strings.ToLower(rand.Text()[:8]) + "_"}, nil
}

// create makes a new database, as a copy of another if one is given.
func (c *cluster) create(ctx context.Context, template database) (database, error) {
	c.made++
	made := database{name: fmt.Sprintf("%s%d", c.prefix, c.made), config: c.config.Copy()}
	made.config.Database = made.name
	from := "template0"
	if template.name != "" {
		from = template.name
	}
	statement := fmt.Sprintf("%s%s template %s", createDatabase, pgx.Identifier{made.name}.Sanitize(), pgx.Identifier{from}.Sanitize())
	for {
		_, err := c.admin.Exec(ctx, statement)
		if pgdb.SQLState(err) == objectInUse && template.name != "" && ctx.Err() == nil {
			// A pooler keeps sessions of the database.
			if err := endSessions(ctx, c.admin, "a.datname = $1", template.name); err != nil {
				return database{}, err
			}
			continue
		}
		if err != nil {
			return database{}, fmt.Errorf("create a database for the benchmark: %w", err)
		}
		return made, nil
	}
}

const createDatabase = "create database "

func (c *cluster) drop(ctx context.Context, d database) error {
	return dropDatabase(ctx, c.admin, d.name)
}

// dropDatabase drops a database, and ends what sessions of ours an interruption left at work in it. It does not use FORCE, by which an
// ordinary role may not end a vacuum of the server's own: that leaves by itself, and an attempt waits for it for five seconds.
func dropDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	for {
		if err := endSessions(ctx, conn, "a.datname = $1", name); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "drop database if exists "+pgx.Identifier{name}.Sanitize())
		if pgdb.SQLState(err) == objectInUse && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return fmt.Errorf("drop the benchmark's database %s: %w", name, err)
		}
		return nil
	}
}

const objectInUse = "55006"

// cleanUp drops every database made here, also after an interruption, which ends the context and breaks the connection.
func (c *cluster) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	_ = c.admin.Close(ctx)
	conn, err := pgx.ConnectConfig(ctx, c.config)
	if err != nil {
		return fmt.Errorf("connect to drop databases %s*: %w", c.prefix, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	// A session whose connection was broken goes on with its statement: a database that it creates would appear after all others were
	// dropped. Behind a pooler its number is not known here.
	begun := createDatabase + `"` + c.prefix
	if err := endSessions(ctx, conn, "a.state = 'active' and starts_with(a.query, $1)", begun); err != nil {
		return err
	}
	rows, err := conn.Query(ctx, "select datname from pg_database where starts_with(datname, $1)", c.prefix)
	if err != nil {
		return fmt.Errorf("find databases %s*: %w", c.prefix, err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find databases %s*: %w", c.prefix, err)
	}
	var failed []error
	for _, name := range names {
		failed = append(failed, dropDatabase(ctx, conn, name))
	}
	return errors.Join(failed...)
}

// endSessions ends those sessions of the role that fit a condition, and waits until they are gone.
func endSessions(ctx context.Context, conn *pgx.Conn, condition string, argument any) error {
	for {
		var left int
		// Sessions of other roles must not reach the function, which would refuse.
		err := conn.QueryRow(ctx, `
			with ours as materialized (
				select a.pid from pg_stat_activity as a where a.usename = current_user and a.pid <> pg_backend_pid() and `+condition+`
			)
			select count(pg_terminate_backend(o.pid)) from ours as o`, argument).Scan(&left)
		if err != nil {
			return fmt.Errorf("end the benchmark's own sessions: %w", err)
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the benchmark's own sessions do not end: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (d database) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, d.config)
	if err != nil {
		return nil, fmt.Errorf("connect to the benchmark's database: %w", err)
	}
	return conn, nil
}

// sessions opens several connections; closeAll closes them.
func (d database) sessions(ctx context.Context, n int) ([]*pgx.Conn, error) {
	conns := make([]*pgx.Conn, 0, n)
	for range n {
		conn, err := d.connect(ctx)
		if err != nil {
			closeAll(ctx, conns)
			return nil, err
		}
		conns = append(conns, conn)
	}
	return conns, nil
}

func closeAll(ctx context.Context, conns []*pgx.Conn) {
	ctx = context.WithoutCancel(ctx)
	for _, conn := range conns {
		_ = conn.Close(ctx)
	}
}

// withConnection runs work on a connection of its own.
func (d database) withConnection(ctx context.Context, work func(conn *pgx.Conn) error) error {
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer closeAll(ctx, []*pgx.Conn{conn})
	return work(conn)
}
