// Package instructions counts the instructions of the processor that the server takes for a call of the broker: a figure that no
// neighbour on the machine changes.
//
// A private server runs under callgrind, a tool of valgrind. Each call is made so many times by one session, and then so many times more by
// another one: the difference is what the calls cost, without what a session costs that begins. That is some fifty times slower than
// without, so only few calls are made.
package instructions

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/site"
	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/schema"
)

// Config says what is counted.
type Config struct {
	Version  string // major version of PostgreSQL, "" for the newest installed
	Calls    int    // of each variant
	Variants []string
	Progress func(text string)
}

// Report has what each variant takes.
type Report struct {
	PostgresVersion string   `json:"postgres_version"`
	Calls           int      `json:"calls"`
	Results         []Result `json:"results"`
}

// Result is the cost of one call of a variant, transaction and protocol included.
type Result struct {
	Variant      string  `json:"variant"`
	Instructions float64 `json:"instructions"`
	// ToInsert is the ratio to a bare INSERT.
	ToInsert float64 `json:"to_insert"`
}

// Measure counts what each variant takes. It makes a server of its own and leaves nothing behind.
func Measure(ctx context.Context, config Config) (report Report, err error) {
	chosen, err := choose(config.Variants)
	if err != nil {
		return Report{}, err
	}
	folder, err := site.NewFolder()
	if err != nil {
		return Report{}, fmt.Errorf("make a folder for the server: %w", err)
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	config.Progress("preparing the database")
	made, err := prepare(ctx, filepath.Join(folder.Path, "server"), config)
	if err != nil {
		return Report{}, err
	}
	server, err := startCounted(ctx, folder.Path, made, config.Version)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, server.stop(ctx)) }()
	report = Report{PostgresVersion: made.version, Calls: config.Calls}
	for _, v := range chosen {
		config.Progress("counting " + v.Name)
		instructions, err := server.count(ctx, v, config.Calls)
		if err != nil {
			return Report{}, fmt.Errorf("count the instructions of %s: %w", v.Name, err)
		}
		report.Results = append(report.Results, Result{Variant: v.Name, Instructions: instructions})
	}
	for i := range report.Results {
		report.Results[i].ToInsert = report.Results[i].Instructions / report.Results[0].Instructions
	}
	return report, nil
}

// installed is a cluster with a prepared database, whose server does not run.
type installed struct {
	data, version string
	bin           string
}

// database is the database of all calls.
const database = "instructions"

// prepare makes a cluster in which there is all that the calls need, and stops its server.
func prepare(ctx context.Context, data string, config Config) (made installed, err error) {
	server, err := postgres.Start(ctx, postgres.Config{Data: data, Version: config.Version})
	if err != nil {
		return installed{}, fmt.Errorf("start a server: %w", err)
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	if err := server.EnsureDatabase(ctx, database); err != nil {
		return installed{}, fmt.Errorf("make the database: %w", err)
	}
	conn, err := pgx.Connect(ctx, server.DSN(database))
	if err != nil {
		return installed{}, fmt.Errorf("connect to the server: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := schema.Install(ctx, conn); err != nil {
		return installed{}, err
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf(furniture, 1+2*warmUp+config.Calls)); err != nil {
		return installed{}, fmt.Errorf("prepare the database: %w", err)
	}
	// Apart, because VACUUM runs in no transaction.
	if _, err := conn.Exec(ctx, "vacuum (analyze)"); err != nil {
		return installed{}, fmt.Errorf("prepare the database: %w", err)
	}
	made = installed{data: data}
	err = conn.QueryRow(ctx, `select current_setting('server_version'), c.setting from pg_config as c where c.name = 'BINDIR'`).
		Scan(&made.version, &made.bin)
	if err != nil {
		return installed{}, fmt.Errorf("ask where the programs of the server are: %w", err)
	}
	return made, nil
}
