package instructions

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/postgres"
)

// ErrNoValgrind is given where the program that counts is not installed.
var ErrNoValgrind = errors.New("valgrind is not installed: it counts the instructions (apt-get install valgrind)")

// counted is a server each of whose processes writes what it has taken into a file when it ends.
type counted struct {
	*postgres.Server
	counts string // folder of these files, each named after the number of its process
}

// settings keep what is not of the calls out of their session, and leave a slow server its time.
var settings = map[string]string{
	"autovacuum": "off", "shared_buffers": "64MB", "max_wal_size": "4GB", "authentication_timeout": "10min", "fsync": "off",
}

// startCounted starts the server of a cluster under callgrind.
func startCounted(ctx context.Context, folder string, made installed, version string) (*counted, error) {
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		return nil, ErrNoValgrind
	}
	programs, counts := filepath.Join(folder, "programs"), filepath.Join(folder, "counts")
	for _, path := range []string{programs, counts} {
		if err := os.Mkdir(path, 0o755); err != nil { //nolint:gosec // the server's account passes through
			return nil, fmt.Errorf("make a folder: %w", err)
		}
	}
	if err := linkPrograms(made.bin, programs, valgrind, counts); err != nil {
		return nil, err
	}
	// The account of the server writes there.
	if err := os.Chmod(counts, 0o777); err != nil {
		return nil, fmt.Errorf("open the folder of the counts: %w", err)
	}
	server, err := postgres.Start(ctx, postgres.Config{Data: made.data, Version: version, Binaries: programs, Settings: settings})
	if err != nil {
		return nil, fmt.Errorf("start the server under callgrind: %w", err)
	}
	return &counted{Server: server, counts: counts}, nil
}

// linkPrograms makes a folder of the programs of PostgreSQL in which the server runs under callgrind.
func linkPrograms(bin, programs, valgrind, counts string) error {
	names, err := os.ReadDir(bin)
	if err != nil {
		return fmt.Errorf("read the programs of PostgreSQL: %w", err)
	}
	for _, name := range names {
		if name.Name() == "postgres" {
			continue
		}
		if err := os.Symlink(filepath.Join(bin, name.Name()), filepath.Join(programs, name.Name())); err != nil {
			return fmt.Errorf("link the programs of PostgreSQL: %w", err)
		}
	}
	server := filepath.Join(bin, "postgres")
	// Other questions, such as that for its version, the program answers at its own speed.
	script := fmt.Sprintf(`#!/bin/sh
case "$1" in
-D) exec '%s' --tool=callgrind --callgrind-out-file='%s/%%p' '%s' "$@" ;;
*) exec '%s' "$@" ;;
esac
`, valgrind, counts, server, server)
	if err := os.WriteFile(filepath.Join(programs, "postgres"), []byte(script), 0o755); err != nil {
		return fmt.Errorf("write the program that starts the server: %w", err)
	}
	return nil
}

// stop ends the server, also when ctx has ended.
func (c *counted) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return c.Stop(ctx)
}

const stopTimeout = 2 * time.Minute

// count gives what one call takes: the difference between two sessions, one of which makes so many calls more. The server keeps things that
// the first calls find, so a session before them does not count.
func (c *counted) count(ctx context.Context, v Variant, calls int) (float64, error) {
	if _, err := c.session(ctx, v, 1); err != nil {
		return 0, err
	}
	few, err := c.session(ctx, v, warmUp)
	if err != nil {
		return 0, err
	}
	many, err := c.session(ctx, v, warmUp+calls)
	if err != nil {
		return 0, err
	}
	return float64(many-few) / float64(calls), nil
}

// session makes so many calls and gives what all of the session took.
func (c *counted) session(ctx context.Context, v Variant, calls int) (int64, error) {
	conn, err := pgx.Connect(ctx, c.DSN(database))
	if err != nil {
		return 0, fmt.Errorf("connect to the server: %w", err)
	}
	pid := conn.PgConn().PID()
	for range calls {
		if err := v.call(ctx, conn); err != nil {
			return 0, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
		}
	}
	if err := conn.Close(ctx); err != nil {
		return 0, fmt.Errorf("end the session: %w", err)
	}
	path := filepath.Join(c.counts, strconv.FormatUint(uint64(pid), 10))
	for {
		total, ok, err := readTotal(path)
		if ok || err != nil {
			return total, err
		}
		if err := backoff.Wait(ctx, 100*time.Millisecond); err != nil {
			return 0, fmt.Errorf("wait for the count of process %d: %w", pid, err)
		}
	}
}

// readTotal reads how many instructions a process has taken; false while its file does not say so yet.
func readTotal(path string) (total int64, ok bool, err error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read a count: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if rest, isTotal := strings.CutPrefix(lines.Text(), "totals:"); isTotal {
			total, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			if err != nil {
				return 0, false, fmt.Errorf("read a count: %w", err)
			}
			return total, true, nil
		}
	}
	if err := lines.Err(); err != nil {
		return 0, false, fmt.Errorf("read a count: %w", err)
	}
	return 0, false, nil
}
