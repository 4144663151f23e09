package database

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/check"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// A Translator compiles the statements about databases, and leaves all others to another Translator.
type Translator struct {
	interpreter.Translator

	connection *connection.Connection
	install    func(ctx context.Context, conn *pgx.Conn) error
}

// New gives a Translator on a connection; install installs a broker in a new database.
func New(c *connection.Connection, install func(context.Context, *pgx.Conn) error, rest interpreter.Translator) *Translator {
	if rest == nil {
		rest = interpreter.None()
	}
	return &Translator{Translator: rest, connection: c, install: install}
}

// scopedConfiguration has settings of the planner and relatives.
const scopedConfiguration = "ALTER DATABASE SCOPED CONFIGURATION"

// Statement compiles a statement about databases.
func (t *Translator) Statement(ctx context.Context, node ast.Statement, scope expression.Scope) (interpreter.Statement, *fault.Error) {
	switch node := node.(type) {
	case *ast.Database:
		return t.create(node)
	case *ast.AlterDatabase:
		return t.alter(node, scope)
	case *ast.Foreign:
		if node.Construct == scopedConfiguration {
			return t.statement(node.Construct, func(_ context.Context, _ *expression.Frame, sink session.Sink) *fault.Error {
				return inform(sink, node.Construct, check.Find(node.Construct).Reason)
			}), nil
		}
	case *ast.Drop:
		if node.Kind == "DATABASE" {
			return t.drop(node), nil
		}
	}
	return t.Translator.Statement(ctx, node, scope)
}

// A statement changes databases: it stands outside of transactions.
type statement struct {
	interpreter.SilentWrite

	verb       string
	connection *connection.Connection
	run        func(ctx context.Context, frame *expression.Frame, sink session.Sink) *fault.Error
}

// Run runs it; error 226 in a transaction.
func (s *statement) Run(ctx context.Context, frame *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
	if s.connection.IsOpen() {
		return 0, false, fault.New(226, s.verb)
	}
	return 0, false, s.run(ctx, frame, sink)
}

func (t *Translator) statement(verb string, run func(context.Context, *expression.Frame, session.Sink) *fault.Error) *statement {
	return &statement{verb: verb, connection: t.connection, run: run}
}

// inform says in one line that a part has no effect.
func inform(sink session.Sink, construct, reason string) *fault.Error {
	if reason == "" {
		reason = "PostgreSQL keeps databases where it keeps all"
	}
	if err := sink.Message(&fault.Error{State: 1, Message: construct + " has no effect: " + reason + "."}); err != nil {
		return connection.Fault(err, "")
	}
	return nil
}

// refusedPart gives the error for a part that --check refuses, nil for one that it lets pass.
func refusedPart(construct string) *fault.Error {
	if row := check.Find(construct); row.State == check.Refused {
		return expression.Unsupported(construct)
	}
	return nil
}

// on runs a statement in a database: in this session where it is in it, otherwise on a connection of its own.
func (t *Translator) on(ctx context.Context, database, sql string, parameters ...string) (result string, err error) {
	current, err := t.connection.Current(ctx)
	if err != nil {
		return "", err
	}
	values := make([][]byte, len(parameters))
	for i, p := range parameters {
		values[i] = []byte(p)
	}
	if current == database {
		_, err = t.connection.Run(ctx, connection.Statement{
			SQL: sql, Parameters: values, Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
				if len(row) > 0 {
					result = string(row[0])
				}
				return nil
			},
		})
		return result, err
	}
	conn, err := t.connection.Dial(ctx, database)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	answer := conn.PgConn().ExecParams(ctx, sql, values, nil, nil, nil).Read()
	if answer.Err == nil && len(answer.Rows) > 0 && len(answer.Rows[0]) > 0 {
		result = string(answer.Rows[0][0])
	}
	return result, answer.Err
}

// here runs a statement that needs no certain database.
func (t *Translator) here(ctx context.Context, sql string, parameters ...string) (result string, err error) {
	current, err := t.connection.Current(ctx)
	if err != nil {
		return "", err
	}
	return t.on(ctx, current, sql, parameters...)
}

// folded gives the name of the database of PostgreSQL.
func folded(name string) string {
	if strings.EqualFold(name, "master") {
		return connection.ServerDatabase
	}
	return strings.ToLower(name)
}
