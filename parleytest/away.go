package parleytest

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Away gives a pool whose server cannot be reached, and how many attempts to connect were made with it so far. Copies of its settings
// count too.
func Away(t testing.TB) (pool *pgxpool.Pool, attempts func() int) {
	t.Helper()
	config, err := pgxpool.ParseConfig("postgres://nobody@127.0.0.1:1/none?sslmode=disable&pool_max_conns=64")
	if err != nil {
		t.Fatalf("parleytest: %v", err)
	}
	var dialled atomic.Int64
	config.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) {
		dialled.Add(1)
		return nil, errors.New("parleytest: the server is away")
	}
	if pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatalf("parleytest: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool, func() int { return int(dialled.Load()) }
}
