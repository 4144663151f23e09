package bottleneck_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/parleytest"
)

// Commits that notify hold one lock of the whole server to their end. It is on no table: the sampler knows it all the same.
func TestCommitsThatNotifyAreFoundAtTheirLock(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	connect := func() *pgx.Conn {
		conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig.Copy())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		return conn
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var notifying sync.WaitGroup
	defer notifying.Wait()
	defer stop()
	for range 8 {
		conn := connect()
		notifying.Go(func() {
			for ctx.Err() == nil {
				_, _ = conn.Exec(ctx, "notify parley_sampled")
			}
		})
	}
	observer := connect()
	isFound := func(w bottleneck.Wait) bool { return w.Event == "Lock:object" && w.Object == "the queue of NOTIFY" }
	// A second in which the machine is busy with others may have none of them at the lock.
	parleytest.Until(t, "a commit waits for the queue of NOTIFY", func() bool {
		sampler := bottleneck.NewSampler(observer, pool.Config().ConnConfig.Database, time.Second, true)
		sampler.Begin(t.Context())
		select {
		case <-time.After(time.Second):
		case <-t.Context().Done():
		}
		sampler.End(t.Context())
		a := sampler.Conclude(t.Context())
		t.Logf("of %d samples the waits are %+v, with the notes %q", a.Samples, a.Waits, a.Notes)
		return slices.ContainsFunc(a.Waits, isFound)
	})
}
