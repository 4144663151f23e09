package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/parley-broker/parley/internal/measure/machine"
)

// settingsThatMatter are the server's settings that a figure cannot be judged without.
var settingsThatMatter = []string{
	"autovacuum", "checkpoint_timeout", "commit_delay", "data_checksums", "effective_cache_size", "fsync", "full_page_writes", "jit",
	"max_connections", "max_wal_size", "shared_buffers", "synchronous_commit", "wal_buffers", "wal_compression", "wal_level",
	"wal_sync_method", "work_mem",
}

// onServer lets work measure on the server of a DSN. It gives it what the server is and how it is set, drops all databases that were made
// before it returns, also when ctx ends, and reports progress until then.
func onServer(
	ctx context.Context, dsn string, progress func(format string, args ...any), asked map[string]any,
	work func(c *cluster, m machine.Machine, settings map[string]any) error,
) (err error) {
	c, err := openCluster(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() {
		progress("cleaning up")
		err = errors.Join(err, c.cleanUp(ctx))
	}()
	m, err := machine.Read(ctx, c.admin)
	if err != nil {
		return err
	}
	ofServer, err := machine.Settings(ctx, c.admin, settingsThatMatter...)
	if err != nil {
		return err
	}
	settings := maps.Clone(asked)
	for name, value := range ofServer {
		settings[name] = value
	}
	return work(c, m, settings)
}

// inTurns runs each of some things once, and all of them as often as is asked for.
func inTurns[T any](
	things []T, repeat int, progress func(format string, args ...any), title func(T) string, run func(number int, thing T) error,
) error {
	for round := range repeat {
		for number, thing := range things {
			progress("run %d of %d: %s", round+1, repeat, title(thing))
			if err := run(number, thing); err != nil {
				return fmt.Errorf("%s: %w", title(thing), err)
			}
		}
	}
	return nil
}
