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

// programQueue is a job queue whose workers run in a program of another language, in a process of their own. It says which jobs it has
// worked on, and a job is done when it says so.
type programQueue struct {
	name, short, promise string
	// language is that of its program, which is in the folder jobs/name.
	language language
	// insert is the statement that inserts a job; its parameters are the number and the padding.
	insert string
	// count is the statement that gives how many jobs came in, and how many of them are left.
	count string
	// connections are those of the pool of its workers.
	connections int
	// folder gives its program with all it needs, fetched once.
	folder func() (string, error)
}

// language says how the programs of a language get their packages, and how they are run.
type language struct {
	// tool fetches packages; howTo says how to get it.
	tool, howTo string
	// lock is the file with the versions of all packages, and packages the folder where they are.
	lock, packages string
	// fetch are the commands that fetch the packages, run in the folder of the program.
	fetch [][]string
	// run is the command, by its path in that folder, with its arguments.
	run []string
	// versionOf gives the version of a package that a lock names, empty where it names none.
	versionOf func(lock []byte, name string) string
}

func newProgramQueue(q programQueue) bench.Peer {
	q.folder = sync.OnceValues(q.fetched)
	return bench.Peer{
		Name: q.name, Short: q.short, Promise: q.promise, Connections: q.connections,
		Version: func(context.Context, *pgx.Conn) string {
			lock, err := q.lock()
			if err != nil {
				return ""
			}
			return q.language.versionOf(lock, q.name)
		},
		Missing: func(context.Context, *pgx.Conn) (string, error) {
			if _, err := exec.LookPath(q.language.tool); err != nil {
				return q.language.howTo, nil //nolint:nilerr // its absence is the answer
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
		Count:    countBy(q.count),
		Inserter: func() (bench.InsertJob, error) { return insertBy(q.insert), nil },
		Work:     q.work,
	}
}

func (q programQueue) work(ctx context.Context, pool *pgxpool.Pool, workers int, work bench.WorkJob) (func(context.Context) error, error) {
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
func (q programQueue) command(ctx context.Context, config *pgx.ConnConfig, arguments ...string) (*exec.Cmd, error) {
	folder, err := q.folder()
	if err != nil {
		return nil, err
	}
	run := append(append([]string{}, q.language.run[1:]...), arguments...)
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(folder, q.language.run[0]), run...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PGHOST="+config.Host, "PGPORT="+strconv.Itoa(int(config.Port)), "PGUSER="+config.User,
		"PGPASSWORD="+config.Password, "PGDATABASE="+config.Database)
	return cmd, nil
}

func (q programQueue) lock() ([]byte, error) {
	lock, err := jobSources.ReadFile("jobs/" + q.name + "/" + q.language.lock)
	if err != nil {
		return nil, fmt.Errorf("read the lock of %s: %w", q.name, err)
	}
	return lock, nil
}

// fetched fetches the packages that the lock of the queue names, unless they are there from an earlier run.
func (q programQueue) fetched() (string, error) {
	folder, err := unpack(jobSources, "jobs/"+q.name)
	if err != nil {
		return "", err
	}
	lock, err := q.lock()
	if err != nil {
		return "", err
	}
	mark := filepath.Join(folder, q.language.packages, ".fetched")
	if before, err := os.ReadFile(mark); err == nil && bytes.Equal(before, lock) {
		return folder, nil
	}
	for _, command := range q.language.fetch {
		fetch := exec.Command(command[0], command[1:]...)
		fetch.Dir = folder
		if out, err := fetch.CombinedOutput(); err != nil {
			return "", fmt.Errorf("fetch %s: %w: %s", q.name, err, out)
		}
	}
	if err := os.WriteFile(mark, lock, 0o600); err != nil {
		return "", fmt.Errorf("remember what was fetched: %w", err)
	}
	return folder, nil
}
