package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// errElsewhere says that an activated procedure asked for another database, or for a connection beside its own.
var errElsewhere = errors.New("an activated procedure stays in its database and on its connection")

// Activated runs a procedure of T-SQL on a session that the daemon has made for it, as the role that it has taken on. The procedure is
// named as CALL names it. Its messages go to the log. The error is the one that ended the procedure before its end.
func Activated(ctx context.Context, conn *pgx.Conn, procedure string, logger *slog.Logger) error {
	// The daemon had the server end a session to which no call comes; a procedure of T-SQL may pause between its statements.
	var role, login, database string
	err := conn.QueryRow(ctx,
		"select current_user, session_user, current_database() from pg_catalog.set_config('idle_session_timeout', '0', false)",
		pgx.QueryExecModeExec).Scan(&role, &login, &database)
	if err != nil {
		return fmt.Errorf("preparing a session for %s: %w", procedure, err)
	}
	// Behind a pooler another client may get the session.
	defer func() {
		if !conn.IsClosed() && conn.PgConn().TxStatus() == 'I' {
			const given = "reset search_path; " +
				"select pg_catalog.set_config('parley.tsql', '', false), pg_catalog.set_config('parley.tsql_fires', '', false)"
			_, _ = conn.PgConn().Exec(context.WithoutCancel(ctx), given).ReadAll()
		}
	}()
	s := New(interpreter.Identity{
		Login: login, User: role, Database: database, Program: "parley", Process: int(conn.PgConn().PID() & 0x7FFF),
	}, connection.New(onlyOn(conn)))
	if err := s.Run(ctx, "EXECUTE "+named(procedure), &logSink{logger: logger}); err != nil {
		return fmt.Errorf("interpreting %s: %w", procedure, err)
	}
	if ended := s.Ended(); ended != nil {
		return ended
	}
	if s.IsInTransaction() {
		return errOpen
	}
	return nil
}

// errOpen is error 8415's brother for T-SQL: the transaction is rolled back with the session.
var errOpen = errors.New("the activation procedure left a transaction open")

// named gives a name that is quoted as PostgreSQL does in brackets.
func named(procedure string) string {
	name := strings.TrimSuffix(procedure, "()")
	var parts []string
	for name != "" {
		var part string
		if rest, isQuoted := strings.CutPrefix(name, `"`); isQuoted {
			end := closing(rest)
			part, name = strings.ReplaceAll(rest[:end], `""`, `"`), strings.TrimPrefix(rest[min(end+1, len(rest)):], ".")
		} else {
			part, name, _ = strings.Cut(name, ".")
		}
		parts = append(parts, ast.Bracketed(part))
	}
	return strings.Join(parts, ".")
}

// closing gives the place of the quote that ends a name; a quote that is doubled does not.
func closing(text string) int {
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		if i+1 < len(text) && text[i+1] == '"' {
			i++
			continue
		}
		return i
	}
	return len(text)
}

// onlyOn has a session stay on a connection that is another's: it gets no other one, and none beside it.
func onlyOn(conn *pgx.Conn) connection.Dial {
	isTaken := false
	return func(_ context.Context, database string) (*pgx.Conn, error) {
		if database != "" || isTaken {
			return nil, errElsewhere
		}
		isTaken = true
		return conn, nil
	}
}

// A logSink writes what a procedure prints to the log, as SQL Server does to its own; result sets go nowhere.
type logSink struct {
	session.Silent
	logger *slog.Logger
}

// Message logs a text of PRINT, and an error as a warning.
func (l *logSink) Message(m *fault.Error) error {
	level := slog.LevelInfo
	if !m.IsInformational() {
		level = slog.LevelWarn
	}
	l.logger.Log(context.Background(), level, "the activated procedure says",
		"message", m.Message, "msg", m.Number, "severity", m.Severity, "procedure", m.Procedure, "line", m.Line)
	return nil
}
