package main

import (
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

// graphileConnections are those of the pool of Graphile Worker, whose documentation recommends as many as it works on jobs at once.
const graphileConnections = 20

// graphilePeer is Graphile Worker, whose workers run in Node. It says which jobs it has worked on, and a job is done when it says so.
func graphilePeer() bench.Peer {
	return bench.Peer{
		Name:        "graphile-worker",
		Short:       "the same through Graphile Worker 0.18.0: add_job, to a task in Node woken by LISTEN/NOTIFY",
		Promise:     "no conversations and no order of them; its task does nothing in the database",
		Connections: graphileConnections,
		Missing: func(context.Context, *pgx.Conn) (string, error) {
			if _, err := exec.LookPath("npm"); err != nil {
				return "install Node with npm: there is no npm", nil //nolint:nilerr // its absence is the answer
			}
			return "", nil
		},
		Prepare: func(ctx context.Context, conn *pgx.Conn) error {
			cmd, err := graphile(ctx, conn.Config(), "install")
			if err != nil {
				return err
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("install Graphile Worker: %w: %s", err, out)
			}
			return nil
		},
		Inserter: func() (bench.InsertJob, error) {
			return insertBy("select graphile_worker.add_job('job', json_build_object('number', $1::bigint, 'padding', $2::text))"), nil
		},
		Work: func(ctx context.Context, pool *pgxpool.Pool, workers int, work bench.WorkJob) (func(context.Context) error, error) {
			cmd, err := graphile(ctx, pool.Config().ConnConfig)
			if err != nil {
				return nil, err
			}
			each := func(line string) {
				if number, err := strconv.ParseInt(line, 10, 64); err == nil {
					_ = work(ctx, number) // the job is over for its queue whatever comes of it here
				}
			}
			e, err := startReporting(ctx, cmd, each, "PEER_WORKERS="+strconv.Itoa(workers),
				"PEER_CONNECTIONS="+strconv.Itoa(graphileConnections))
			if err != nil {
				return nil, err
			}
			return e.stop, nil
		},
	}
}

// graphile is a command of Graphile Worker on a database.
func graphile(ctx context.Context, config *pgx.ConnConfig, arguments ...string) (*exec.Cmd, error) {
	folder, err := graphileFolder()
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

// graphileFolder has Graphile Worker with all it needs, fetched once.
var graphileFolder = sync.OnceValues(func() (string, error) {
	folder, err := unpack(jobSources, "jobs/graphile-worker")
	if err != nil {
		return "", err
	}
	fetch := exec.Command("npm", "ci", "--silent", "--no-audit", "--no-fund")
	fetch.Dir = folder
	if out, err := fetch.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fetch Graphile Worker: %w: %s", err, out)
	}
	return folder, nil
})
