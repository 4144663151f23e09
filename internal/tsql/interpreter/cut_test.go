package interpreter

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/parleytest"
)

// A batch that is cut while its COMMIT waits has not committed: the transaction is open, with all that was done in it.
func TestACommitThatWaitsWhereTheBatchIsCutHasNotRun(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	if _, err := pool.Exec(t.Context(), "create table item (id int primary key)"); err != nil {
		t.Fatal(err)
	}
	p := &passing{connection: connection.New(func(ctx context.Context, _ string) (*pgx.Conn, error) {
		return pgx.Connect(ctx, parleytest.DSN(t, pool))
	})}
	s := New(Identity{}, p, p.connection)
	t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
	run := func(ctx context.Context, batch string) {
		p.batch = batch
		if err := s.Run(ctx, batch, &errorsOnly{}); err != nil {
			t.Fatal(batch, err)
		}
	}
	// A processor that others have may let the time of the COMMIT pass before the next instruction, which sends it.
	for attempt := 1; ; attempt++ {
		ctx, cut := context.WithCancelCause(t.Context())
		isCut := false
		s.clock = func() time.Time {
			if !s.commitBy.IsZero() {
				isCut = true
				cut(session.ErrAttention)
			}
			return time.Now()
		}
		run(ctx, fmt.Sprintf("DECLARE @i int BEGIN TRAN SAVE TRAN s INSERT INTO item VALUES (%d) COMMIT ", attempt)+strings.Repeat("SET @i = 1 ", 9))
		s.clock = time.Now
		cut(nil)
		if isCut {
			break
		}
		if attempt == 100 {
			t.Fatal("no COMMIT waited")
		}
	}
	var before, after int
	if err := pool.QueryRow(t.Context(), "select count(*) from item").Scan(&before); err != nil {
		t.Fatal(err)
	}
	if s.depth != 1 || len(s.savepoints) != 1 {
		t.Errorf("@@TRANCOUNT is %d with %d savepoints, want 1 with 1", s.depth, len(s.savepoints))
	}
	run(t.Context(), "COMMIT")
	if err := pool.QueryRow(t.Context(), "select count(*) from item").Scan(&after); err != nil {
		t.Fatal(err)
	}
	if after != before+1 {
		t.Errorf("COMMIT of the next batch committed %d rows, want 1", after-before)
	}
}
