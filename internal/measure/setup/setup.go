// Package setup checks what a benchmark is about to measure: versions, durability, the storage, the way to the server, room, neighbours.
// It makes no object anywhere.
package setup

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/machine"
	"github.com/parley-broker/parley/internal/measure/record"
	governorstore "github.com/parley-broker/parley/internal/store/governor"
)

// The names of the checks.
const (
	Versions   = "versions"
	Durability = "durability"
	Storage    = "storage"
	Way        = "pooler"
	Room       = "free disk"
	Neighbours = record.Neighbours
)

// DefaultSync is how long the storage is measured.
const DefaultSync = 5 * time.Second

// quiet is how long the machine is watched while the benchmark does nothing.
const quiet = 500 * time.Millisecond

// Checks runs all checks on a connection to the server. The storage is measured for so long, or not at all where that is 0.
func Checks(ctx context.Context, conn *pgx.Conn, sync time.Duration) ([]record.Check, error) {
	var checks []record.Check
	for _, check := range []func(context.Context, *pgx.Conn) (record.Check, error){
		versions, durability, func(ctx context.Context, conn *pgx.Conn) (record.Check, error) {
			return storage(ctx, conn,
				sync)
		}, way, room, neighbours,
	} {
		found, err := check(ctx, conn)
		if err != nil {
			return nil, fmt.Errorf("check the set-up: %w", err)
		}
		if found.Name != "" {
			checks = append(checks, found)
		}
	}
	return checks, nil
}

// Sync gives how long a durable commit waits for the storage, in microseconds, or 0 where that was not measured.
func Sync(checks []record.Check) float64 {
	i := slices.IndexFunc(checks, func(c record.Check) bool { return c.Name == Storage })
	if i < 0 {
		return 0
	}
	return checks[i].Value
}

// IsLocal reports whether the server is on this machine, as far as its address shows.
func IsLocal(conn *pgx.Conn) bool {
	host := conn.Config().Host
	ip := net.ParseIP(host)
	return strings.HasPrefix(host, "/") || host == "localhost" || ip != nil && ip.IsLoopback()
}

func versions(ctx context.Context, conn *pgx.Conn) (record.Check, error) {
	m, err := machine.Read(ctx, conn)
	if err != nil {
		return record.Check{}, err
	}
	return record.Check{
		Name: Versions, State: record.OK,
		Text: fmt.Sprintf("PostgreSQL %s, parley %s, %d cores, %s", m.PostgresVersion, parley.Release, m.Cores, m.CPU),
	}, nil
}

func durability(ctx context.Context, conn *pgx.Conn) (record.Check, error) {
	names := []string{"fsync", "synchronous_commit", "full_page_writes"}
	settings, err := machine.Settings(ctx, conn, names...)
	if err != nil {
		return record.Check{}, err
	}
	c := record.Check{Name: Durability, State: record.OK}
	var shown, off []string
	for _, name := range names {
		shown = append(shown, name+" "+settings[name])
		if settings[name] == "off" {
			off = append(off, name)
		}
	}
	c.Text = strings.Join(shown, ", ")
	if len(off) > 0 {
		c.State = record.Warning
		c.Hint = "with " + strings.Join(off, " and ") + " off a crash loses messages that were committed: the figures are not those of " +
			"a durable broker"
	}
	return c, nil
}

// syncStatement commits records of the WAL for some microseconds, and gives count, p50 and p99 of what the commits took. The server takes
// the times, so that the way to the client is not in them. A setting of the session carries the result.
const syncStatement = `
do $sync$
declare
  v_until timestamptz := clock_timestamp() + %d * interval '1 microsecond';
  v_times double precision[] := '{}';
  v_begun timestamptz;
  v_count integer := 0;
  v_result text;
begin
  while clock_timestamp() < v_until or v_count = 0 loop
    perform pg_logical_emit_message(true, 'parley_bench', 'sync');
    v_begun := clock_timestamp();
    commit;
    v_times[v_count %% 20000 + 1] := extract(epoch from clock_timestamp() - v_begun) * 1000000;
    v_count := v_count + 1;
  end loop;
  select concat_ws(' ', v_count, percentile_cont(0.5) within group (order by t), percentile_cont(0.99) within group (order by t))
  into v_result
  from unnest(v_times) as u (t);
  perform set_config('parley_bench.sync', v_result, false);
end
$sync$`

// storage measures how long a durable commit takes more than one that does not wait for the storage.
func storage(ctx context.Context, conn *pgx.Conn, span time.Duration) (record.Check, error) {
	if span <= 0 {
		return record.Check{}, nil
	}
	var asked string
	if err := conn.QueryRow(ctx, "show synchronous_commit").Scan(&asked); err != nil {
		return record.Check{}, fmt.Errorf("read synchronous_commit: %w", err)
	}
	defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), "set synchronous_commit to '"+asked+"'") }()
	measure := func(setting string, span time.Duration) (count int, p50, p99 float64, err error) {
		if _, err = conn.Exec(ctx, "set synchronous_commit to '"+setting+"'"); err != nil {
			return 0, 0, 0, fmt.Errorf("set synchronous_commit: %w", err)
		}
		if _, err = conn.PgConn().Exec(ctx, fmt.Sprintf(syncStatement, span.Microseconds())).ReadAll(); err != nil {
			return 0, 0, 0, fmt.Errorf("measure commits: %w", err)
		}
		var result string
		if err = conn.QueryRow(ctx, "select current_setting('parley_bench.sync')").Scan(&result); err != nil {
			return 0, 0, 0, fmt.Errorf("measure commits: %w", err)
		}
		_, err = fmt.Sscan(result, &count, &p50, &p99)
		return count, p50, p99, err
	}
	_, idle, _, err := measure("off", span/20)
	if err != nil {
		return record.Check{}, err
	}
	durable := asked
	if durable == "off" {
		durable = "on"
	}
	count, p50, p99, err := measure(durable, span)
	if err != nil {
		return record.Check{}, err
	}
	sync := max(1, p50-idle)
	c := record.Check{
		Name: Storage, State: record.OK, Value: sync, Unit: "microseconds",
		Text: fmt.Sprintf("a sync takes %.0f microseconds, 99 of 100 up to %.0f (%d commits in %s, one after another)", sync,
			max(sync, p99-idle), count, span),
	}
	if sync > slowSync {
		c.State = record.Warning
		c.Hint = "storage with a write cache that survives a power failure, or a device of its own for pg_wal, makes small transactions faster"
	}
	return c, nil
}

// slowSync is the time of a disk without a cache, in microseconds.
const slowSync = 5000

// way finds a pooler: the process that the client was given to cancel is then not the one that works.
func way(ctx context.Context, conn *pgx.Conn) (record.Check, error) {
	var pid uint32
	if err := conn.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid); err != nil {
		return record.Check{}, fmt.Errorf("find the way to the server: %w", err)
	}
	if pid != conn.PgConn().PID() {
		return record.Check{
			Name: Way, State: record.Warning, Text: "a pooler is in between: its work and its limits are in all figures",
			Hint: "give the address of the server itself with --dsn",
		}, nil
	}
	return record.Check{Name: Way, State: record.OK, Text: "none: the sessions reach the server itself"}, nil
}

// leastRoom is the need of the largest scenario with its WAL, in bytes.
const leastRoom = 4 << 30

func room(ctx context.Context, conn *pgx.Conn) (record.Check, error) {
	c := record.Check{Name: Room, State: record.Unknown}
	var folder *string
	if err := conn.QueryRow(ctx, "select max(s.setting) from pg_settings as s where s.name = 'data_directory'").Scan(&folder); err != nil {
		return c, fmt.Errorf("find the data folder: %w", err)
	}
	switch {
	case !IsLocal(conn):
		c.Text = "not seen: the server is on another machine"
	case folder == nil:
		c.Text = "not seen: the role may not read data_directory (pg_read_all_settings)"
	default:
		free, err := governorstore.VolumeFree(*folder)
		if err != nil {
			c.Text = "not seen: " + err.Error()
			break
		}
		c.State, c.Value, c.Unit = record.OK, float64(free), "bytes"
		c.Text = fmt.Sprintf("%.1f GB where the data is", float64(free)/1e9)
		if free < leastRoom {
			c.State, c.Hint = record.Warning, "fewer --messages, or a server with more room"
		}
	}
	return c, nil
}

// The part of the processors that others may use, and how many of their sessions may be at work, before it shows in the figures.
const (
	loudPart     = 0.15
	loudSessions = 0
)

// neighbours watches what others do while the benchmark does nothing.
func neighbours(ctx context.Context, conn *pgx.Conn) (record.Check, error) {
	var active int
	err := conn.QueryRow(ctx, `
		select count(*) from pg_stat_activity as a
		where a.state = 'active' and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()`).Scan(&active)
	if err != nil {
		return record.Check{}, fmt.Errorf("count other sessions: %w", err)
	}
	return others(ctx, active)
}

// OfMachine runs the checks that need no server.
func OfMachine(ctx context.Context) ([]record.Check, error) {
	check, err := others(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("check the set-up: %w", err)
	}
	return []record.Check{check}, nil
}

// others watches the processors; active is how many sessions of others are at work in the server.
func others(ctx context.Context, active int) (record.Check, error) {
	busy, stolen, isSeen := bottleneck.BusyPart(func() {
		select {
		case <-ctx.Done():
		case <-time.After(quiet):
		}
	})
	c := record.Check{Name: Neighbours, State: record.OK, Value: 100 * (busy + stolen), Unit: "%"}
	switch {
	case !isSeen:
		c.Text = fmt.Sprintf("%d other sessions at work; the processors are not seen here", active)
	default:
		c.Text = fmt.Sprintf("others use %.0f%% of the processors, a hypervisor took %.0f%%; %d other sessions at work", 100*busy,
			100*stolen, active)
	}
	if busy+stolen > loudPart || active > loudSessions {
		c.State, c.Hint = record.Warning, "measure again when the machine is idle: rates are lower and spreads larger than they have to be"
	}
	return c, ctx.Err()
}
