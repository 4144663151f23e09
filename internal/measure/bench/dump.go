package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// dumpPoll is how often the start of the dump is checked.
const dumpPoll = 50 * time.Millisecond

// startDump starts pg_dump and reads nothing of what it writes, so that it runs until it is stopped. Where there is none for
// this version of the server, a transaction holds what it would hold: the snapshot, and ACCESS SHARE locks on all tables.
func (b *bench) startDump(ctx context.Context, d database) (stop func(), err error) {
	program := findDump(ctx, serverMajor(b.cluster.admin))
	b.settled["pg_dump"] = program != ""
	if program == "" {
		return imitateDump(ctx, d)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	command := exec.CommandContext(ctx, program, "--no-password")
	command.Env = append(os.Environ(),
		"PGHOST="+d.config.Host,
		"PGPORT="+strconv.Itoa(int(d.config.Port)),
		"PGUSER="+d.config.User,
		"PGPASSWORD="+d.config.Password,
		"PGDATABASE="+d.name,
		"PGAPPNAME=pg_dump",
	)
	if _, err := command.StdoutPipe(); err != nil { // which nobody reads
		cancel(nil)
		return nil, fmt.Errorf("prepare pg_dump: %w", err)
	}
	if err := command.Start(); err != nil {
		cancel(nil)
		return nil, fmt.Errorf("start pg_dump: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cancel(errors.Join(errors.New("pg_dump ended too early"), command.Wait()))
	}()
	stop = sync.OnceFunc(func() {
		cancel(nil)
		<-ended
	})
	if err := awaitDump(ctx, d); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// awaitDump waits until a dump holds its locks; ctx ends with the dump.
func awaitDump(ctx context.Context, d database) error {
	return d.withConnection(ctx, func(conn *pgx.Conn) error {
		for {
			var holds bool
			err := conn.QueryRow(ctx, `
				select exists (
					select from pg_locks as l join pg_stat_activity as a using (pid)
					where a.datname = current_database() and a.application_name = 'pg_dump' and l.relation = 'bench.bare'::regclass
				)`).Scan(&holds)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if holds || err != nil {
				return err
			}
			select {
			case <-ctx.Done():
			case <-time.After(dumpPoll):
			}
		}
	})
}

// imitateDump holds the snapshot and the locks of a dump.
func imitateDump(ctx context.Context, d database) (stop func(), err error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, `
		begin isolation level repeatable read;
		do $$
		begin
			execute (
				select 'lock table ' || string_agg(format('%I.%I', n.nspname, c.relname), ', ') || ' in access share mode'
				from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
				where n.nspname in ('parley', 'bench') and c.relkind in ('r', 'p')
			);
		end
		$$`)
	if err != nil {
		closeAll(ctx, []*pgx.Conn{conn})
		return nil, fmt.Errorf("hold the locks of a dump: %w", err)
	}
	return held(ctx, conn), nil
}

func serverMajor(conn *pgx.Conn) int {
	return leadingNumber(conn.PgConn().ParameterStatus("server_version"))
}

var number = regexp.MustCompile(`\d+`)

// leadingNumber is the first number in a text, or 0.
func leadingNumber(text string) int {
	n, _ := strconv.Atoi(number.FindString(text))
	return n
}

// findDump finds a pg_dump that can dump a server of a major version, or gives "".
func findDump(ctx context.Context, major int) string {
	candidates, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_dump")
	slices.Reverse(candidates)
	if program, err := exec.LookPath("pg_dump"); err == nil {
		candidates = append([]string{program}, candidates...)
	}
	for _, program := range candidates {
		version, err := exec.CommandContext(ctx, program, "--version").Output()
		if err == nil && leadingNumber(string(version)) >= major {
			return program
		}
	}
	return ""
}
