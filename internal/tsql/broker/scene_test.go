package broker_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/tsql/broker"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/module"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/parleytest"
)

// dialing connects to the database of a pool, or to another one of its server.
func dialing(t *testing.T, pool *pgxpool.Pool) connection.Dial {
	t.Helper()
	dsn := parleytest.DSN(t, pool)
	return func(ctx context.Context, database string) (*pgx.Conn, error) {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		if database != "" {
			config.Database = database
		}
		return pgx.ConnectConfig(ctx, config)
	}
}

// A runner is a session of T-SQL on a database, whose output it gathers.
type runner struct {
	t       *testing.T
	session *interpreter.Session
	out     strings.Builder
	sink    session.Sink
}

func newRunner(t *testing.T, pool *pgxpool.Pool) *runner {
	t.Helper()
	return runnerOn(t, dialing(t, pool))
}

// newRunnerAs gives a session of a role, as if it had logged in.
func newRunnerAs(t *testing.T, pool *pgxpool.Pool, role string) *runner {
	t.Helper()
	dial := dialing(t, pool)
	return runnerOn(t, func(ctx context.Context, database string) (*pgx.Conn, error) {
		conn, err := dial(ctx, database)
		if err == nil {
			_, err = conn.Exec(ctx, "set session authorization "+pgx.Identifier{role}.Sanitize())
		}
		return conn, err
	})
}

func runnerOn(t *testing.T, dial connection.Dial) *runner {
	t.Helper()
	c := connection.New(dial)
	r := &runner{t: t, session: interpreter.New(interpreter.Identity{User: "dbo", Process: 51}, broker.New(c, nil), c)}
	r.session.Keep(module.New(c))
	r.sink = session.NewTextSink(&r.out)
	t.Cleanup(func() { _ = r.session.Close(context.WithoutCancel(t.Context())) })
	return r
}

var (
	handles = regexp.MustCompile(`[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}`)
	blanks  = regexp.MustCompile(` {2,}`)
)

// run runs batches that GO separates and gives what they print, without lines of dashes and with one blank for several.
func (r *runner) run(script string) string {
	r.t.Helper()
	r.out.Reset()
	for batch := range strings.SplitSeq(script, "\nGO\n") {
		if err := r.session.Run(r.t.Context(), batch, r.sink); err != nil {
			fmt.Fprintf(&r.out, "closed: %v\n", err)
		}
	}
	var lines []string
	for line := range strings.SplitSeq(r.out.String(), "\n") {
		line = strings.TrimSpace(blanks.ReplaceAllString(line, " "))
		if line != "" && strings.Trim(line, "- ") != "" {
			lines = append(lines, handles.ReplaceAllString(line, "<guid>"))
		}
	}
	return strings.Join(lines, "\n")
}

// expect compares what a script prints.
func (r *runner) expect(rule, script, want string) {
	r.t.Helper()
	if got := r.run(script); got != strings.TrimSpace(want) {
		r.t.Errorf("%s\n%s\n--- got\n%s\n--- want\n%s", rule, script, got, want)
	}
}
