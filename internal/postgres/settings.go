//go:build unix

package postgres

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// settingsFile is read by the cluster's postgresql.conf; it is written anew at each start. A setting that a user sets with ALTER SYSTEM
// wins over it.
const settingsFile = "parley.conf"

const (
	kilobyte = int64(1) << 10
	megabyte = int64(1) << 20
	gigabyte = int64(1) << 30
)

// defaultSettings are durable, fit the machine, and leave room between checkpoints.
func defaultSettings(memory int64) map[string]string {
	size := func(bytes, low, high int64) string {
		return fmt.Sprintf("%dkB", min(max(bytes, low), high)/kilobyte)
	}
	return map[string]string{
		"cluster_name":                "parley",
		"fsync":                       "on",
		"full_page_writes":            "on",
		"synchronous_commit":          "on",
		"wal_compression":             "on",
		"max_wal_size":                "4GB",
		"checkpoint_timeout":          "15min",
		"max_connections":             "200",
		"shared_buffers":              size(memory/4, 64*megabyte, 8*gigabyte),
		"effective_cache_size":        size(memory*5/8, 256*megabyte, memory),
		"maintenance_work_mem":        size(memory/32, 64*megabyte, gigabyte),
		"work_mem":                    size(memory/512, 4*megabyte, 64*megabyte),
		"listen_addresses":            "",
		"unix_socket_permissions":     "0700",
		"log_line_prefix":             "%m [%p] %q%u@%d ",
		"log_autovacuum_min_duration": "10min",
	}
}

// writeSettings writes the settings file of a cluster.
func writeSettings(f *folder, settings map[string]string) error {
	var text strings.Builder
	text.WriteString("# Written by parley at each start. Use ALTER SYSTEM for settings of your own.\n")
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	return writeFor(f.account, filepath.Join(f.cluster, settingsFile), text.String())
}

// writeFor replaces a file that belongs to the account.
func writeFor(as account, path, text string) error {
	if err := replaceWithin(as, path, text); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}
