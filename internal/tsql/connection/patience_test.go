package connection

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/parleytest"
)

// The time for locks is told in the flush of the next statement. Where the database undoes it with that statement, with a savepoint or
// with the transaction, it is told again.
func TestTheTimeForLocksOutlivesWhatIsUndone(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	fails := Statement{SQL: "select 1 / 0"}
	for name, undo := range map[string]func(t *testing.T, c *Connection){
		"the statement that begins the transaction": func(t *testing.T, c *Connection) {
			t.Helper()
			must(t, c.Begin(t.Context()), c.Protect(t.Context()))
			c.SetLockTimeout(50)
			refused(t, c, fails)
			must(t, c.Recover(t.Context()))
		},
		"a later statement of the transaction": func(t *testing.T, c *Connection) {
			t.Helper()
			must(t, c.Begin(t.Context()), c.Protect(t.Context()))
			runs(t, c, Statement{SQL: "select"})
			must(t, c.Protect(t.Context()))
			c.SetLockTimeout(50)
			refused(t, c, fails)
			must(t, c.Recover(t.Context()))
		},
		"a savepoint": func(t *testing.T, c *Connection) {
			t.Helper()
			must(t, c.Begin(t.Context()), c.Savepoint(t.Context(), "s"), c.Protect(t.Context()))
			c.SetLockTimeout(50)
			runs(t, c, Statement{SQL: "select"})
			must(t, c.RollbackTo(t.Context(), "s"), c.Protect(t.Context()))
		},
		"the transaction": func(t *testing.T, c *Connection) {
			t.Helper()
			must(t, c.Begin(t.Context()), c.Protect(t.Context()))
			c.SetLockTimeout(50)
			runs(t, c, Statement{SQL: "select"})
			must(t, c.Rollback(t.Context()))
		},
		"a statement outside of a transaction": func(t *testing.T, c *Connection) {
			t.Helper()
			c.SetLockTimeout(50)
			refused(t, c, fails)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := New(func(ctx context.Context, _ string) (*pgx.Conn, error) {
				return pgx.Connect(ctx, parleytest.DSN(t, pool))
			})
			t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
			undo(t, c)
			told := ""
			runs(t, c, Statement{SQL: "show lock_timeout", Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
				told = string(row[0])
				return nil
			}})
			if told != "50ms" {
				t.Errorf("the database waits %s for a lock, want 50ms", told)
			}
		})
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func runs(t *testing.T, c *Connection, s Statement) {
	t.Helper()
	_, err := c.Run(t.Context(), s)
	must(t, err)
}

func refused(t *testing.T, c *Connection, s Statement) {
	t.Helper()
	if _, err := c.Run(t.Context(), s); err == nil {
		t.Fatalf("%s succeeds", s.SQL)
	}
}
