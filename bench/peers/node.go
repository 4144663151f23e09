package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// nodeQueue is a job queue whose workers run in Node, in a process of their own. It says which jobs it has worked on, and a job is done
// when it says so.
type nodeQueue struct {
	name, short, promise string
	// insert is the statement that inserts a job; its parameters are the number and the padding.
	insert string
	// connections are those of the pool of its workers.
	connections int
	// folder gives its program with all it needs, fetched once.
	folder func() (string, error)
}

func newNodeQueue(q nodeQueue) bench.Peer {
	q.folder = sync.OnceValues(func() (string, error) { return fetchNode(q.name) })
	return bench.Peer{
		Name: q.name, Short: q.short, Promise: q.promise, Connections: q.connections,
		Version: ofPackage(q.name),
		Missing: func(context.Context, *pgx.Conn) (string, error) {
			if _, err := exec.LookPath("npm"); err != nil {
				return "install Node with npm: there is no npm", nil //nolint:nilerr // its absence is the answer
			}
			return "", nil
		},
		Prepare: func(ctx context.Context, conn *pgx.Conn) error {
			cmd, err := q.command(ctx, conn.Config(), "install")
			if err != nil {
				return err
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("install %s: %w: %s", q.name, err, out)
			}
			return nil
		},
		Inserter: func() (bench.InsertJob, error) { return insertBy(q.insert), nil },
		Work:     q.work,
	}
}

func (q nodeQueue) work(ctx context.Context, pool *pgxpool.Pool, workers int, work bench.WorkJob) (func(context.Context) error, error) {
	cmd, err := q.command(ctx, pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	each := func(line string) {
		if number, err := strconv.ParseInt(line, 10, 64); err == nil {
			_ = work(ctx, number) // the job is over for its queue whatever comes of it here
		}
	}
	e, err := startReporting(ctx, cmd, each, "PEER_WORKERS="+strconv.Itoa(workers), "PEER_CONNECTIONS="+strconv.Itoa(q.connections))
	if err != nil {
		return nil, err
	}
	return e.stop, nil
}

// command is its program on a database.
func (q nodeQueue) command(ctx context.Context, config *pgx.ConnConfig, arguments ...string) (*exec.Cmd, error) {
	folder, err := q.folder()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(folder, "node_modules", ".bin", "node"),
		append([]string{"worker.mjs"}, arguments...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PGHOST="+config.Host, "PGPORT="+strconv.Itoa(int(config.Port)), "PGUSER="+config.User,
		"PGPASSWORD="+config.Password, "PGDATABASE="+config.Database)
	return cmd, nil
}

// fetchNode fetches the packages that the lock of a queue names, unless they are there from an earlier run.
func fetchNode(name string) (string, error) {
	folder, err := unpack(jobSources, "jobs/"+name)
	if err != nil {
		return "", err
	}
	lock, err := jobSources.ReadFile("jobs/" + name + "/package-lock.json")
	if err != nil {
		return "", fmt.Errorf("read the lock of %s: %w", name, err)
	}
	fetched := filepath.Join(folder, "node_modules", ".fetched")
	if before, err := os.ReadFile(fetched); err == nil && bytes.Equal(before, lock) {
		return folder, nil
	}
	fetch := exec.Command("npm", "ci", "--silent", "--no-audit", "--no-fund")
	fetch.Dir = folder
	if out, err := fetch.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fetch %s: %w: %s", name, err, out)
	}
	if err := os.WriteFile(fetched, lock, 0o600); err != nil {
		return "", fmt.Errorf("remember what was fetched: %w", err)
	}
	return folder, nil
}
