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

// statementMark is the savepoint of the statement that runs; T-SQL's own have other names.
const statementMark = "tsql_statement"

// A Connection is the PostgreSQL side of a session. It connects when the first statement needs it.
type Connection struct {
	dial     Dial
	database string
	conn     *pgx.Conn
	waiting  []string // statements that travel with the next
	isOpen   bool     // a transaction has begun, perhaps not yet in the database
	isSent   bool     // it has begun in the database
	isMarked bool     // the savepoint of a statement is there
	level    string
}

// A Dial connects to a database of the server by its name; the empty name is the one that the session begins in.
type Dial func(ctx context.Context, database string) (*pgx.Conn, error)

// New gives a connection that dials when it is needed.
func New(dial Dial) *Connection { return &Connection{dial: dial, level: "read committed"} }

// serverDatabase is the database of PostgreSQL that stands for master.
const serverDatabase = "postgres"

// Use goes on in another database. A transaction cannot span two: error 226. Error 911 where there is none of this name.
func (c *Connection) Use(ctx context.Context, database string) error {
	if c.isOpen {
		return fault.New(226, "USE")
	}
	name := strings.ToLower(database)
	if name == "master" {
		name = serverDatabase
	}
	conn, err := c.dial(ctx, name)
	if err != nil {
		if refused, is := errors.AsType[*pgconn.PgError](err); is && refused.Code == "3D000" {
			return fault.New(911, database)
		}
		return fmt.Errorf("connecting: %w", err)
	}
	if c.conn != nil {
		_ = c.conn.Close(ctx) // nothing is open in it
	}
	c.conn, c.database = conn, name
	return nil
}

// ErrLost says that the database no longer answers, and that the transaction is gone with the connection.
var ErrLost = errors.New("the connection to the database is lost")

// Begin begins a transaction.
func (c *Connection) Begin(context.Context) error {
	c.waiting = append(c.waiting, "begin isolation level "+c.level)
	c.isOpen = true
	return nil
}

// SetIsolation sets the level of transactions that begin later.
func (c *Connection) SetIsolation(_ context.Context, level string) error {
	c.level = level
	return nil
}

// Commit commits, and reports a transaction that the database rolled back in place of it.
func (c *Connection) Commit(ctx context.Context) error {
	if !c.isSent {
		c.forget()
		return nil
	}
	waiting := c.waiting
	c.forget()
	c.waiting = waiting
	tag, err := c.Run(ctx, Statement{SQL: "commit"})
	switch {
	case err != nil:
		return err
	case tag.String() != "COMMIT":
		return fault.New(3930)
	}
	return nil
}

// Rollback rolls back. Statements that wait are dropped.
func (c *Connection) Rollback(ctx context.Context) error {
	isSent := c.isSent
	c.forget()
	if !isSent {
		return nil
	}
	_, err := c.Run(ctx, Statement{SQL: "rollback"})
	return err
}

// forget ends the transaction on this side.
func (c *Connection) forget() { c.waiting, c.isOpen, c.isSent, c.isMarked = nil, false, false, false }

// Savepoint sets a savepoint of T-SQL. The one of the last statement is released before it: later it would take this one with it.
func (c *Connection) Savepoint(_ context.Context, name string) error {
	c.release()
	c.waiting = append(c.waiting, "savepoint "+pgx.Identifier{name}.Sanitize())
	return nil
}

// RollbackTo goes back to a savepoint of T-SQL; that of a statement, which came later, is gone.
func (c *Connection) RollbackTo(_ context.Context, name string) error {
	c.waiting = append(c.waiting, "rollback to savepoint "+pgx.Identifier{name}.Sanitize())
	c.isMarked = false
	return nil
}

func (c *Connection) release() {
	if c.isMarked {
		c.waiting = append(c.waiting, "release savepoint "+statementMark)
		c.isMarked = false
	}
}

// Protect sets the savepoint of a statement.
func (c *Connection) Protect(context.Context) error {
	c.release()
	c.waiting = append(c.waiting, "savepoint "+statementMark)
	c.isMarked = true
	return nil
}

// Recover undoes the statement that failed.
func (c *Connection) Recover(context.Context) error {
	c.waiting = append(c.waiting, "rollback to savepoint "+statementMark)
	return nil
}

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
	if c.conn == nil {
		conn, err := c.dial(ctx, c.database)
		if err != nil {
			return pgconn.CommandTag{}, fmt.Errorf("connecting: %w", err)
		}
		c.conn = conn
	}
	if c.isOpen {
		c.isSent = true
	}
	before := len(c.waiting)
	batch := &pgconn.Batch{}
	for _, sql := range c.waiting {
		batch.ExecParams(sql, nil, nil, nil, nil)
	}
	c.waiting = nil
	batch.ExecParams(s.SQL, s.Parameters, s.Types, nil, nil)
	results := c.conn.PgConn().ExecBatch(ctx, batch)
	tag, refused := read(results, before, s)
	err := results.Close()
	switch {
	case c.conn.IsClosed():
		c.forget()
		return tag, fmt.Errorf("%w: %w", ErrLost, errors.Join(err, ctx.Err()))
	case refused != nil:
		return tag, refused
	}
	return tag, err
}

// read takes the results of a flush: those of statements that waited have no rows.
func read(results *pgconn.MultiResultReader, before int, s Statement) (tag pgconn.CommandTag, err error) {
	for at := 0; results.NextResult(); at++ {
		reader := results.ResultReader()
		if at < before {
			if _, closed := reader.Close(); closed != nil {
				err = closed
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
	}
	return tag, err
}

// Close ends the session in the database; what is open is rolled back.
func (c *Connection) Close(ctx context.Context) error {
	c.forget()
	if c.conn == nil {
		return nil
	}
	return c.conn.Close(ctx)
}
