package bench

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/machine"
)

// settingsThatMatter are the server's settings that a figure cannot be judged without.
var settingsThatMatter = []string{
	"autovacuum", "checkpoint_timeout", "commit_delay", "data_checksums", "effective_cache_size", "fsync", "full_page_writes", "jit",
	"max_connections", "max_wal_size", "shared_buffers", "synchronous_commit", "wal_buffers", "wal_compression", "wal_level",
	"wal_sync_method", "work_mem",
}

// readSettings gives the settings of the server and our own, in one object.
func readSettings(ctx context.Context, conn *pgx.Conn, c Config) (map[string]any, error) {
	settings := map[string]any{
		"repeat":           c.Repeat,
		"duration_seconds": c.Duration.Seconds(),
		"warm_up_seconds":  c.WarmUp.Seconds(),
		"messages":         c.Messages,
	}
	ofServer, err := machine.Settings(ctx, conn, settingsThatMatter...)
	for name, value := range ofServer {
		settings[name] = value
	}
	return settings, err
}
