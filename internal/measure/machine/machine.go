// Package machine describes what a measurement ran on.
package machine

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

// Machine is the one this program runs on; PostgreSQL may run on another. As JSON it is a stable format.
type Machine struct {
	CPU             string `json:"cpu"`
	Cores           int    `json:"cores"`
	MemoryBytes     int64  `json:"memory_bytes"` // 0: unknown
	OS              string `json:"os"`
	PostgresVersion string `json:"postgres_version"` // empty where no server takes part
}

// Read describes this machine, with the version of the server.
func Read(ctx context.Context, conn *pgx.Conn) (Machine, error) {
	m := Here()
	if err := conn.QueryRow(ctx, "show server_version").Scan(&m.PostgresVersion); err != nil {
		return Machine{}, fmt.Errorf("ask for the version of the server: %w", err)
	}
	return m, nil
}

// Here describes this machine, for what needs no server.
func Here() Machine {
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
	return m
}

// Settings gives settings of the server by name. Names that it does not know are left out.
func Settings(ctx context.Context, conn *pgx.Conn, names ...string) (map[string]string, error) {
	rows, err := conn.Query(ctx, "select name, current_setting(name) from pg_settings where name = any ($1)", names)
	if err != nil {
		return nil, fmt.Errorf("ask for the settings of the server: %w", err)
	}
	settings := map[string]string{}
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
