package translator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/translator"
	"github.com/parley-broker/parley/internal/tsql/value"
	"github.com/parley-broker/parley/parleytest"
)

// A scenario is a script with what it gives: a line for each row with | between values, for each count, and for each message.
type scenario struct{ rule, script, want string }

// A plainSink writes what a batch gives.
type plainSink struct{ strings.Builder }

func (s *plainSink) Columns([]session.Column) error { return nil }

func (s *plainSink) Row(row []value.Value) error {
	cells := make([]string, len(row))
	for i, v := range row {
		cells[i] = strings.TrimRight(value.Display(v), " ")
	}
	s.WriteString(strings.Join(cells, "|") + "\n")
	return nil
}

func (s *plainSink) Done(d session.Done) error {
	if d.HasCount && !d.HasRows {
		fmt.Fprintf(s, "(%d)\n", d.Count)
	}
	return nil
}

func (s *plainSink) Message(m *fault.Error) error {
	switch m.Number {
	case 0:
		s.WriteString(m.Message + "\n")
	case 3621, 5701:
	default:
		fmt.Fprintf(s, "Msg %d, %d: %s\n", m.Number, m.Line, m.Message)
	}
	return nil
}

func (*plainSink) Flush() error { return nil }

// dialTo connects to a database of a test.
func dialTo(dsn string) connection.Dial {
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

// An openSession stays open between its batches.
type openSession struct {
	session *interpreter.Session
	sink    *plainSink
}

func opened(t *testing.T, dsn string) *openSession {
	t.Helper()
	db := connection.New(dialTo(dsn))
	tables := translator.New(db)
	s := interpreter.New(interpreter.Identity{User: "dbo", Process: 51}, tables, db)
	tables.SetHost(s)
	t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
	return &openSession{s, &plainSink{}}
}

// run runs batches and gives what they gave.
func (s *openSession) run(t *testing.T, script string) string {
	t.Helper()
	s.sink.Reset()
	for batch := range strings.SplitSeq(script, "\nGO\n") {
		if err := s.session.Run(t.Context(), batch, s.sink); err != nil {
			t.Errorf("%s: %v", batch, err)
		}
	}
	return strings.TrimSpace(s.sink.String())
}

// run runs a script in a session of its own.
func run(t *testing.T, dsn, script string) string {
	t.Helper()
	s := opened(t, dsn)
	defer func() { _ = s.session.Close(context.WithoutCancel(t.Context())) }()
	return s.run(t, script)
}

// play runs scenarios one after another in one database; each drops what it made.
func play(t *testing.T, scenarios []scenario) {
	t.Helper()
	pool := parleytest.EmptyDatabase(t)
	dsn := parleytest.DSN(t, pool)
	name := pool.Config().ConnConfig.Database
	for _, c := range scenarios {
		got := strings.ReplaceAll(run(t, dsn, c.script), name, "DB")
		if got != c.want {
			t.Errorf("%s\n%s\n--- got\n%s\n--- want\n%s", c.rule, c.script, got, c.want)
		}
	}
}
