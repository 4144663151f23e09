package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// mailServerSettings keep the WAL of a private server in files that are there already, as those of a server are that has run for a
// while.
func mailServerSettings(cacheMB int) map[string]string {
	return map[string]string{
		"max_connections": "200", "shared_buffers": fmt.Sprintf("%dMB", or(cacheMB, 1024)), "min_wal_size": "2GB", "max_wal_size": "4GB",
	}
}

// warmBytes is how much is written before anything is measured.
const warmBytes = 1_500_000_000

// warmServer writes and forgets, so that neither the first use of memory nor the making of WAL files is measured. Once for all runs.
func (b *bench) warmServer(ctx context.Context) error {
	if b.servers == nil || b.isWarm {
		return nil
	}
	b.isWarm = true
	b.progress("warming the server up")
	d, err := b.cluster.create(ctx, database{})
	if err != nil {
		return err
	}
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "create table warm (body bytea); alter table warm alter column body set storage external")
		if err != nil {
			return err
		}
		body := randomBodies(1, 10_000_000)[0]
		for written := 0; written < warmBytes; written += len(body) {
			if _, err := conn.Exec(ctx, "insert into warm values ($1)", body); err != nil {
				return err
			}
		}
		_, err = conn.Exec(ctx, "checkpoint")
		return err
	})
	if err != nil {
		return fmt.Errorf("warm the server up: %w", err)
	}
	return b.cluster.drop(ctx, d)
}
