package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Machine is the one the benchmark ran on; PostgreSQL may run on another.
type Machine struct {
	CPU             string `json:"cpu"`
	Cores           int    `json:"cores"`
	MemoryBytes     int64  `json:"memory_bytes"` // 0: unknown
	OS              string `json:"os"`
	PostgresVersion string `json:"postgres_version"`
}

// readMachine describes this machine, with the version of the server.
func readMachine(ctx context.Context, conn *pgx.Conn) (Machine, error) {
	m := Machine{
		CPU:   field("/proc/cpuinfo", "model name", ":"),
		Cores: runtime.NumCPU(),
		OS:    strings.Trim(field("/etc/os-release", "PRETTY_NAME", "="), `"`),
	}
	if m.CPU == "" {
		m.CPU = runtime.GOARCH
	}
	if m.OS == "" {
		m.OS = runtime.GOOS
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.OS += ", kernel " + strings.TrimSpace(string(kernel))
	}
	if kilobytes, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal", ":"), " kB"), 10, 64); err == nil {
		m.MemoryBytes = kilobytes << 10
	}
	if err := conn.QueryRow(ctx, "show server_version").Scan(&m.PostgresVersion); err != nil {
		return Machine{}, fmt.Errorf("ask for the version of the server: %w", err)
	}
	return m, nil
}

// field gives the value of the first line of a file that has this name, or "" where there is none.
func field(path, name, separator string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), separator)
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

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
		"warmup_seconds":   c.WarmUp.Seconds(),
		"messages":         c.Messages,
	}
	rows, err := conn.Query(ctx, "select name, current_setting(name) from pg_settings where name = any ($1)", settingsThatMatter)
	if err != nil {
		return nil, fmt.Errorf("ask for the settings of the server: %w", err)
	}
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		settings[name] = value
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask for the settings of the server: %w", err)
	}
	return settings, nil
}
