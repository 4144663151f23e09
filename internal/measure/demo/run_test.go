package demo

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// small is a run for tests, in a database that nobody else uses.
func small(t *testing.T) (*pgx.Conn, Config) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), parleytest.DSN(t, parleytest.EmptyDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Senders: 3, Readers: 2, Conversations: 6, Duration: 2 * time.Second, Database: conn.Config().Database + "_demo"}
	t.Cleanup(func() {
		_, err := conn.Exec(context.Background(), "drop database if exists "+pgx.Identifier{config.Database}.Sanitize()+" with (force)")
		if err != nil {
			t.Error(err)
		}
		closeConn(context.Background(), conn)
	})
	return conn, config
}

func databaseExists(t *testing.T, conn *pgx.Conn, name string) (exists bool) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "select exists (select from pg_database where datname = $1)", name).Scan(&exists); err != nil {
		t.Fatal(err)
	}
	return exists
}

func TestRunLosesNothingThoughAReaderIsKilled(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"each conversation has a sender":  func(*Config) {},
		"senders share one conversation":  func(c *Config) { c.Conversations = 1 },
		"one sender has all of them":      func(c *Config) { c.Senders, c.Readers = 1, 1 },
		"more conversations than it uses": func(c *Config) { c.Conversations = 200 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, config := small(t)
			change(&config)
			result, err := Run(t.Context(), conn, config)
			if err != nil {
				t.Fatal(err)
			}
			if !result.Passed || !result.Clean() || !result.LeftBehind.None() {
				t.Errorf("%s %+v %+v", result.Verdict(), result.Findings, result.LeftBehind)
			}
			if result.ReadersKilled != 1 || result.kill.process == 0 {
				t.Errorf("%d readers were killed (%+v), want one", result.ReadersKilled, result.kill)
			}
			if result.ReadersStarted < 2 {
				t.Errorf("%d readers were started, want one in place of the one that was killed", result.ReadersStarted)
			}
			if result.LeftBehind.ClosedTargets != int64(config.Conversations) {
				t.Errorf("%d targets are remembered, of %d conversations", result.LeftBehind.ClosedTargets, config.Conversations)
			}
			checkFigures(t, result, config)
			if databaseExists(t, conn, config.Database) {
				t.Error("the database is still there")
			}
		})
	}
}

// checkFigures holds the figures of a run against each other.
func checkFigures(t *testing.T, result Result, config Config) {
	t.Helper()
	streams := int64(max(config.Conversations, config.Senders))
	sent, calls := streams, int64(0) // the warm-up
	for i, p := range result.Payloads {
		if p.PayloadBytes != PayloadBytes[i] {
			t.Errorf("phase %d has bodies of %d bytes, want %d", i, p.PayloadBytes, PayloadBytes[i])
		}
		if p.MessagesSent == 0 || p.MessagesReceived != p.MessagesSent || p.ReceiveCalls == 0 || p.MessagesPerSecond <= 0 || p.SendP50MS <= 0 {
			t.Errorf("phase %d: %+v", i, p)
		}
		sent += p.MessagesSent
		calls += p.ReceiveCalls
	}
	if len(result.Payloads) != len(PayloadBytes) || sent != result.MessagesSent {
		t.Errorf("%d phases sent %d messages, the ledger has %d", len(result.Payloads), sent, result.MessagesSent)
	}
	var counted int64
	for _, b := range result.batches {
		counted += b.calls
	}
	if counted < calls {
		t.Errorf("%d receive calls are in the classes, want at least %d", counted, calls)
	}
	last := result.samples[len(result.samples)-1]
	if last.Received != result.MessagesReceived || last.Sent != result.MessagesSent {
		t.Errorf("the last sample is %+v", last)
	}
}

func TestResultAsJSONHasTheStableFields(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Result{Findings: Findings{Examples: []string{}}, Payloads: []Payload{{}}})
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"passed", "messages_sent", "messages_received", "lost", "duplicated", "out_of_order", "corrupted", "never_sent", "examples",
		"readers_killed", "readers_started", "seconds", "messages_per_second", "payloads", "left_behind", "settings", "machine", "server_settings", "started_at", "html",
	} {
		if _, ok := object[name]; !ok {
			t.Errorf("%q is missing", name)
		}
		delete(object, name)
	}
	for name := range object {
		t.Errorf("%q is not documented", name)
	}
}

func TestKeptDatabaseIsReplacedByTheNextRun(t *testing.T) {
	t.Parallel()
	conn, config := small(t)
	config.Keep = true
	config.Duration = 40 * time.Millisecond
	for range 2 {
		result, err := Run(t.Context(), conn, config)
		if err != nil {
			t.Fatal(err)
		}
		if !result.Passed {
			t.Error(result.Verdict())
		}
		if !databaseExists(t, conn, config.Database) {
			t.Fatal("the database is gone")
		}
		// The next run may come from another session.
		if _, err := conn.Exec(t.Context(), "select pg_advisory_unlock_all()"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRunTouchesNoDatabaseOfOthers(t *testing.T) {
	t.Parallel()
	conn, config := small(t)
	if _, err := conn.Exec(t.Context(), "create database "+config.Database); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), conn, config); err == nil || !strings.Contains(err.Error(), "not of an earlier demo") {
		t.Errorf("the error is %v", err)
	}
	if !databaseExists(t, conn, config.Database) {
		t.Error("it was dropped")
	}
}

func TestSecondRunInOneDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	conn, config := small(t)
	other, err := pgx.ConnectConfig(t.Context(), conn.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(context.Background(), other)
	if _, err := createDatabase(t.Context(), other, config.Database); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), conn, config); err == nil || !strings.Contains(err.Error(), "another demo") {
		t.Errorf("the error is %v", err)
	}
	if !databaseExists(t, conn, config.Database) {
		t.Error("it was dropped")
	}
}

// interrupter ends a run as soon as messages flow.
type interrupter struct{ stop context.CancelFunc }

func (i interrupter) Progress(p Progress) {
	if p.Received > 0 {
		i.stop()
	}
}
func (interrupter) Notice(string) {}

func TestInterruptedRunLeavesNoDatabase(t *testing.T) {
	t.Parallel()
	conn, config := small(t)
	ctx, stop := context.WithCancel(t.Context())
	config.Duration = time.Hour
	config.Observer = interrupter{stop}
	if _, err := Run(ctx, conn, config); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if databaseExists(t, conn, config.Database) {
		t.Error("the database is still there")
	}
}

func TestReaderThatDiesUnaskedFailsTheRun(t *testing.T) {
	t.Parallel()
	conn, config := small(t)
	config.Duration = time.Hour
	config.Observer = killer{t, conn, config.Database}
	_, err := Run(t.Context(), conn, config)
	if err == nil || !strings.Contains(err.Error(), terminated) {
		t.Errorf("the error is %v", err)
	}
}

// killer kills all readers of a run, as nobody asked for.
type killer struct {
	t    *testing.T
	conn *pgx.Conn
	name string
}

func (k killer) Progress(p Progress) {
	if p.Received == 0 {
		return
	}
	// The run's own connection: it is idle until the end.
	_, err := k.conn.Exec(context.Background(), `
		select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and query like 'call %receive_lab_test()'`, k.name)
	if err != nil {
		k.t.Error(err)
	}
}
func (killer) Notice(string) {}

func TestConfigRefuses(t *testing.T) {
	t.Parallel()
	good := Config{Senders: 1, Readers: 1, Conversations: 1, Duration: time.Second, Database: "parley_demo"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no sender":                func(c *Config) { c.Senders = 0 },
		"no reader":                func(c *Config) { c.Readers = 0 },
		"too many sessions":        func(c *Config) { c.Senders = 1000 },
		"no conversation":          func(c *Config) { c.Conversations = 0 },
		"too many conversations":   func(c *Config) { c.Conversations = 1e6 },
		"no time":                  func(c *Config) { c.Duration = 0 },
		"a name that needs quotes": func(c *Config) { c.Database = `a"b` },
		"no name":                  func(c *Config) { c.Database = "" },
	} {
		config := good
		change(&config)
		if config.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
