package bench

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// peerSystem is the same work through a job queue of others.
func peerSystem(p Peer) latencySystem {
	return latencySystem{
		name:    p.Name,
		short:   p.Short,
		prepare: func(ctx context.Context, conn *pgx.Conn, _ LatencyConfig) error { return p.Prepare(ctx, conn) },
		work: func(ctx context.Context, d database, c LatencyConfig) (func() error, error) {
			return p.start(ctx, d, c.Readers+p.Connections, c.Readers, beginJob)
		},
		sender: func(_ context.Context, _ *pgx.Conn, c LatencyConfig, _ int) (send, error) {
			insert, err := p.Inserter()
			if err != nil {
				return nil, err
			}
			padding := strings.Repeat("x", c.Size-leastBody)
			return func(ctx context.Context, tx pgx.Tx, number int64) error { return insert(ctx, tx, number, padding) }, nil
		},
	}
}

// beginJob is the work on a job whose latency is measured: its first statement, on a connection of the workers.
func beginJob(pool *pgxpool.Pool) WorkJob {
	return func(ctx context.Context, number int64) error {
		_, err := pool.Exec(ctx, begunStatement, number)
		return err
	}
}
