package connection

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// A Connection is the PostgreSQL side of a session. It connects when the first statement needs it.
type Connection struct {
	dial     Dial
	database string
	named    string // in lower case, as the last USE named it
	conn     *pgx.Conn
	waiting  []queued // statements that travel with the next
	deferred int      // how many of them are a script's own
	before   []queued // those of a script that ran in the last flush before the one that failed
	level    string
	begun    int   // transactions so far
	patience int64 // how many milliseconds statements shall wait for a lock; -1 without end
	set      int64 // what the database was told of it

	transaction
	ending    *ending // the commit that waits
	late      lateness
	isSharing bool     // the statement that runs has the savepoint of those that waited for it
	shared    []queued // they ran, and go back with it

	roles
}

// A Dial connects to a database of the server by its name; the empty name is the one that the session begins in.
type Dial func(ctx context.Context, database string) (*pgx.Conn, error)

// New gives a connection that dials when it is needed.
func New(dial Dial) *Connection {
	return &Connection{dial: dial, level: readCommitted, patience: -1, set: -1}
}

// StartIn says in which database the session begins; empty for the one that the dial begins in.
func (c *Connection) StartIn(database string) {
	if database != "" {
		c.database = folded(database)
	}
}

// folded gives the name of the database of PostgreSQL.
func folded(database string) string {
	if name := strings.ToLower(database); name != "master" && name != ForwardingDatabase {
		return name
	}
	return ServerDatabase
}

// ServerDatabase is the database of PostgreSQL that stands for master.
const ServerDatabase = "postgres"

// ForwardingDatabase is the database of SQL Server whose routes lead what arrives at the server. Parley's daemon needs none for that.
const ForwardingDatabase = "msdb"

// Use goes on in another database, and gives its name as T-SQL wrote it when it was created. A transaction cannot span two: error 226.
// Error 911 where there is none of this name.
func (c *Connection) Use(ctx context.Context, database string) (string, error) {
	if c.isOpen {
		return "", fault.New(226, "USE")
	}
	name := folded(database)
	conn, err := c.open(ctx, name)
	if err != nil {
		if refused, is := errors.AsType[*pgconn.PgError](err); is && refused.Code == "3D000" {
			return "", fault.New(911, database)
		}
		return "", err
	}
	if c.conn != nil {
		_ = c.conn.Close(ctx) // nothing is open in it
	}
	c.conn, c.database, c.named, c.set = conn, name, strings.ToLower(database), -1
	c.isRoleSure = !c.isUsed // the new session begins as its login
	written := ""
	const setting = "select coalesce(pg_catalog.current_setting('parley.tsql_name', true), '')"
	_, err = c.Run(ctx, Statement{SQL: setting, Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
		written = string(row[0])
		return nil
	}})
	if written == "" {
		written = database
	}
	return written, err
}

// Visit goes on in another database until the returned function is called; the connection to the own one stays open meanwhile, with its
// temporary tables. Error 226 in a transaction, which cannot span two databases, and 911 where there is no database of this name.
func (c *Connection) Visit(ctx context.Context, database string) (name string, back func(context.Context), err error) {
	if c.isOpen {
		return "", nil, fault.New(226, "Cross-database")
	}
	own, of, named, set := c.conn, c.database, c.named, c.set
	c.conn = nil
	name, err = c.Use(ctx, database)
	if err != nil {
		c.conn, c.database, c.named, c.set, c.isRoleSure = own, of, named, set, !c.isUsed
		return "", nil, err
	}
	return name, func(ctx context.Context) {
		if c.conn != nil {
			_ = c.conn.Close(ctx) // nothing is open in it
		}
		c.conn, c.database, c.named, c.set, c.isRoleSure = own, of, named, set, !c.isUsed
	}, nil
}

// ErrLost says that the database no longer answers, and that the transaction is gone with the connection.
var ErrLost = errors.New("the connection to the database is lost")

// A Statement is one statement of PostgreSQL. Values travel as parameters: none becomes a part of SQL.
type Statement struct {
	SQL        string
	Parameters [][]byte // in PostgreSQL's text format; nil is NULL
	Types      []uint32 // of the parameters; 0 where the database finds out
	Row        func(fields []pgconn.FieldDescription, row [][]byte) error
	Fields     func(fields []pgconn.FieldDescription) error // is called before the first row, also where none comes
}

// Run sends what waits and a statement in one flush. An error of the statement is the *pgconn.PgError of the database.
func (c *Connection) Run(ctx context.Context, s Statement) (pgconn.CommandTag, error) {
	if err := c.connect(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := c.flush(ctx, s)
	known := preparedOf(c.conn)
	switch {
	case c.conn.IsClosed():
		return tag, err
	case err == nil:
		return tag, known.succeeded(ctx, c.conn, s)
	case known.isOutdated(s, err) && (c.IsProtected() || !c.isOpen):
		if c.IsProtected() {
			_ = c.Recover(ctx)
		}
		return c.flush(ctx, s)
	}
	return tag, err
}

// connect connects where no statement came before.
// Open connects now, and not with the first statement that needs it.
func (c *Connection) Open(ctx context.Context) error { return c.connect(ctx) }

func (c *Connection) connect(ctx context.Context) error {
	if c.conn == nil {
		conn, err := c.open(ctx, c.database)
		if err != nil {
			return err
		}
		c.conn = conn
	}
	return ctx.Err() // what waits is not lost by a statement that cannot go out
}

// open connects. The SQL of the runner names functions and operators of PostgreSQL without their schema, so it sees no others: one of
// another role for other types would otherwise run with the rights of this session. Its texts are written for the default of the other
// setting, which a role or a database may have changed.
func (c *Connection) open(ctx context.Context, database string) (*pgx.Conn, error) {
	conn, err := c.dial(ctx, database)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	const settings = "set search_path = pg_catalog, pg_temp; set standard_conforming_strings = on"
	if _, err := conn.PgConn().Exec(ctx, settings).ReadAll(); err != nil {
		return nil, fmt.Errorf("preparing the session: %w", err)
	}
	return conn, nil
}

// flush sends what waits and a statement.
func (c *Connection) flush(ctx context.Context, s Statement) (pgconn.CommandTag, error) {
	if c.isOpen {
		c.isSent = true
	}
	c.takeRole()
	c.tell()
	waited := c.waiting
	known, batch := preparedOf(c.conn), &pgconn.Batch{}
	for _, q := range waited {
		known.add(batch, q.Statement)
	}
	ending := c.ending
	c.waiting, c.deferred, c.isFresh, c.before, c.ending = nil, 0, false, nil, nil
	c.shares(waited)
	known.add(batch, s)
	results := c.conn.PgConn().ExecBatch(ctx, batch)
	tag, at, refused := read(results, len(waited), s)
	err := results.Close()
	switch {
	case c.conn.IsClosed():
		lost := c.lateFault(waited, at, ending, lostBy(errors.Join(refused, err, ctx.Err())))
		c.forget()
		c.late.isOver = true
		return tag, lost
	case refused == nil && err == nil:
		return tag, known.waited(ctx, c.conn, waited)
	case !c.isOpen:
		c.forgets()
		c.isRoleSure = !c.isUsed // the role was set in the transaction of the statement alone
	}
	if refused == nil {
		refused = err
	}
	return tag, c.lateFault(waited, at, ending, refused)
}

// lostBy gives the error of a lost connection. It has the text of its cause alone: a batch would go on behind the error of a statement.
func lostBy(cause error) error {
	if cause == nil {
		return ErrLost
	}
	return fmt.Errorf("%w: %s", ErrLost, cause.Error())
}

// read takes the results of a flush: those of statements that waited have no rows. It gives the place of the one that failed.
func read(results *pgconn.MultiResultReader, before int, s Statement) (tag pgconn.CommandTag, at int, err error) {
	for ; results.NextResult(); at++ {
		reader := results.ResultReader()
		if at < before {
			if _, closed := reader.Close(); closed != nil {
				return tag, at, closed
			}
			continue
		}
		fields := reader.FieldDescriptions()
		if s.Fields != nil && fields != nil && err == nil {
			err = s.Fields(fields)
		}
		for reader.NextRow() {
			if s.Row != nil && err == nil {
				err = s.Row(fields, reader.Values())
			}
		}
		closedTag, closed := reader.Close()
		if closed != nil {
			err = closed
		}
		tag = closedTag
		if err != nil {
			return tag, at, err
		}
	}
	return tag, at, err
}

// Close ends the session in the database; what is open is rolled back.
func (c *Connection) Close(ctx context.Context) error {
	c.forget()
	if c.conn == nil {
		return nil
	}
	return c.conn.Close(ctx)
}

// Current gives the name of the database in which the session is.
func (c *Connection) Current(ctx context.Context) (name string, err error) {
	_, err = c.Run(ctx, Statement{SQL: "select current_database()", Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
		name = string(row[0])
		return nil
	}})
	return name, err
}

// IsForwarding reports whether the session has gone to the database whose routes lead what arrives.
func (c *Connection) IsForwarding() bool { return c.named == ForwardingDatabase }

// IsOpen reports whether a transaction has begun.
func (c *Connection) IsOpen() bool { return c.isOpen }

// Dial connects to a database of the server beside this connection, for the caller alone, as the role that the session acts as.
func (c *Connection) Dial(ctx context.Context, database string) (*pgx.Conn, error) {
	conn, err := c.open(ctx, database)
	if err != nil || !c.isUsed {
		return conn, err
	}
	if _, err := conn.PgConn().Exec(ctx, c.roleStatement()).ReadAll(); err != nil {
		_ = conn.Close(ctx)
		return nil, fmt.Errorf("acting as the role of the session: %w", err)
	}
	return conn, nil
}

// Alone runs a statement that makes what all sessions share. In a transaction that is open it would hold the others up to its end, so then
// it runs beside it, on a connection of its own, unless it would wait there: for this transaction perhaps.
func (c *Connection) Alone(ctx context.Context, sql string) error {
	if c.isOpen && c.beside(ctx, sql) == nil {
		return nil
	}
	_, err := c.Run(ctx, Statement{SQL: sql})
	return err
}

func (c *Connection) beside(ctx context.Context, sql string) error {
	conn, err := c.Dial(ctx, c.database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.PgConn().Exec(ctx, "set lock_timeout = '1s'").ReadAll(); err != nil {
		return fmt.Errorf("limiting the wait for locks: %w", err)
	}
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		return fmt.Errorf("running a statement beside the transaction: %w", err)
	}
	return nil
}
