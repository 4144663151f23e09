package bottleneck

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// views list the server's own counts. Some came with a version: pg_stat_io with 16, pg_stat_checkpointer with 17.
var views = []struct{ prefix, name, query string }{
	{"database", "pg_stat_database", `
		select sum(d.blks_read) as blks_read, sum(d.blks_hit) as blks_hit, sum(d.temp_bytes) as temp_bytes,
			sum(d.xact_commit) as xact_commit, sum(d.xact_rollback) as xact_rollback, sum(d.deadlocks) as deadlocks
		from pg_catalog.pg_stat_database as d where pg_catalog.starts_with(d.datname, $1) and d.datname <> pg_catalog.current_database()`},
	{"wal", "pg_stat_wal", "select w.* from pg_catalog.pg_stat_wal as w where $1::text is not null"},
	{"checkpoints", "pg_stat_bgwriter", "select b.* from pg_catalog.pg_stat_bgwriter as b where $1::text is not null"},
	{"checkpoints", "pg_stat_checkpointer", "select c.* from pg_catalog.pg_stat_checkpointer as c where $1::text is not null"},
	{"io", "pg_stat_io", `
		select i.* from pg_catalog.pg_stat_io as i
		where $1::text is not null and (i.reads > 0 or i.writes > 0 or i.extends > 0 or i.fsyncs > 0 or i.evictions > 0)`},
}

// count reads the counters.
func (s *Sampler) count(ctx context.Context) (map[string]float64, error) {
	counters := map[string]float64{}
	for _, view := range views {
		var isThere bool
		err := s.conn.QueryRow(ctx, "select pg_catalog.to_regclass('pg_catalog.' || $1) is not null", view.name).Scan(&isThere)
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", view.name, err)
		}
		if !isThere {
			continue
		}
		rows, err := s.conn.Query(ctx, "select pg_catalog.to_jsonb(x)::text from ("+view.query+") as x", s.prefix)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", view.name, err)
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", view.name, err)
		}
		for _, text := range texts {
			if err := addCounters(counters, view.prefix, text); err != nil {
				return nil, fmt.Errorf("read %s: %w", view.name, err)
			}
		}
	}
	return counters, nil
}

// addCounters adds the numbers of a row. Those of I/O are for a kind of process, object and context.
func addCounters(counters map[string]float64, prefix, text string) error {
	var row map[string]any
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return err
	}
	name := prefix + "."
	if prefix == "io" {
		name += fmt.Sprintf("%v.%v.%v.", row["backend_type"], row["object"], row["context"])
	}
	for column, value := range row {
		if number, is := value.(float64); is && column != "op_bytes" {
			counters[name+column] += number
		}
	}
	return nil
}
