//go:build unix

package reliability_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/transport/durable"
	"github.com/parley-broker/parley/parleytest"
)

// A server that waits for a standby that never comes.
func TestNothingIsReliedOnWhoseWaitForAStandbyWasCutShort(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes a server of its own")
	}
	server := newOwnServer(t)
	ctx := t.Context()
	admin, err := pgx.Connect(ctx, server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	exec := func(statement string) {
		t.Helper()
		if _, err := admin.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec("set synchronous_commit = local")
	exec("create table promise (made int)")
	standby := func(names string) {
		exec("alter system set synchronous_standby_names = '" + names + "'")
		exec("select pg_reload_conf()")
		for setting := "?"; setting != names; {
			pause(10 * time.Millisecond)
			if err := admin.QueryRow(ctx, "select setting from pg_settings where name = 'synchronous_standby_names'").Scan(&setting); err != nil {
				t.Fatal(err)
			}
		}
	}
	// waiting waits until the session of a piece of work waits for the standby.
	waiting := func(work chan error) {
		t.Helper()
		for isWaiting := false; !isWaiting; {
			pause(10 * time.Millisecond)
			select {
			case err := <-work:
				t.Fatalf("it ended without a wait for the standby: %v", err)
			default:
			}
			err := admin.QueryRow(ctx, "select count(*) > 0 from pg_stat_activity where wait_event = 'SyncRep' and application_name = 'parley promise'").
				Scan(&isWaiting)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	settings, err := pgxpool.ParseConfig(server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := durable.Open(ctx, settings, "parley promise", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	do := func(statement string) chan error {
		done := make(chan error, 1)
		go func() {
			done <- pool.Do(ctx, func(conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, statement)
				return err
			})
		}()
		return done
	}
	if err := parleytest.Receive(t, do("insert into promise values (0)"), "the insert"); err != nil {
		t.Fatal(err)
	}

	standby("nobody")
	made := do("insert into promise values (1)")
	waiting(made)
	exec("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
	if err := parleytest.Receive(t, made, "the insert whose wait was cut short"); !errors.Is(err, durable.ErrUnreplicated) {
		t.Fatalf("the wait was cut short, and that counts as %v", err)
	}
	// It can be seen, and a transaction that only reads does not wait; still no client may get its answer.
	seen := do("select made from promise where made = 1")
	waiting(seen)
	select {
	case err := <-seen:
		t.Fatalf("what may be lost was relied on: %v", err)
	default:
	}
	standby("")
	if err := parleytest.Receive(t, seen, "the row"); err != nil {
		t.Error(err)
	}
	if err := parleytest.Receive(t, do("select made from promise"), "the rows"); err != nil {
		t.Error(err)
	}
}
