package bottleneck

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Statement counts the work of one kind of statement in the benchmark's databases while it was measured.
type Statement struct {
	ID       int64   `json:"id"`
	Text     string  `json:"text"`  // its beginning
	Calls    float64 `json:"calls"` // how often it ran
	Rows     float64 `json:"rows"`  // that it gave or changed
	MS       float64 `json:"ms"`    // all calls together; PostgreSQL counts no percentiles
	WALBytes float64 `json:"wal_bytes"`
	Read     float64 `json:"blocks_read"` // blocks that were not in the buffers
	Dirtied  float64 `json:"blocks_dirtied"`
}

// mostStatements are kept of each order: by time, by calls, by bytes of the log, by blocks that were read and dirtied.
const mostStatements = 5

// statementsStatement reads the statements that programs and functions ran; the identifier of one is the same in copies of a database.
const statementsStatement = `
	select
		s.queryid, pg_catalog.max(pg_catalog.left(pg_catalog.regexp_replace(pg_catalog.btrim(s.query), '\s+', ' ', 'g'), 100)),
		pg_catalog.sum(s.calls), pg_catalog.sum(s.rows), pg_catalog.sum(s.total_exec_time), pg_catalog.sum(s.wal_bytes),
		pg_catalog.sum(s.shared_blks_read), pg_catalog.sum(s.shared_blks_dirtied)
	from %s.pg_stat_statements as s
	join pg_catalog.pg_database as d on d.oid = s.dbid
	where pg_catalog.starts_with(d.datname, $1) and d.datname <> pg_catalog.current_database() and s.queryid is not null
	group by s.queryid`

// readStatements reads all statements; nil where the server does not count them.
func (s *Sampler) readStatements(ctx context.Context) map[int64]Statement {
	schema, is := s.schemas[extensionStatements]
	if !is {
		s.note("Statements were not seen: the server does not count them. shared_preload_libraries = '%s' has it count them",
			extensionStatements)
		return nil
	}
	rows, err := s.conn.Query(ctx, fmt.Sprintf(statementsStatement, schema), s.prefix)
	if err != nil {
		s.note("Statements were not seen: %v", err)
		return nil
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Statement])
	if err != nil {
		s.note("Statements were not seen: %v", err)
		return nil
	}
	found := make(map[int64]Statement, len(list))
	for _, one := range list {
		found[one.ID] = one
	}
	return found
}

func (s *Sampler) addStatements(after map[int64]Statement) {
	for id, now := range after {
		was := s.statementsBefore[id]
		if now.Calls <= was.Calls {
			continue // it did not run, or the counts began anew
		}
		sum := s.statements[id]
		if sum == nil {
			sum = &Statement{ID: id, Text: now.Text}
			s.statements[id] = sum
		}
		sum.Calls += now.Calls - was.Calls
		sum.Rows += now.Rows - was.Rows
		sum.MS += now.MS - was.MS
		sum.WALBytes += now.WALBytes - was.WALBytes
		sum.Read += now.Read - was.Read
		sum.Dirtied += now.Dirtied - was.Dirtied
	}
}

// heaviest are the first of each order, those that took the most time first.
func heaviest(statements map[int64]*Statement) []Statement {
	all := make([]Statement, 0, len(statements))
	for _, s := range statements {
		all = append(all, *s)
	}
	kept := map[int64]bool{}
	by := func(value func(Statement) float64) {
		slices.SortFunc(all, func(x, y Statement) int { return cmp.Or(cmp.Compare(value(y), value(x)), cmp.Compare(x.ID, y.ID)) })
		for _, s := range all[:min(mostStatements, len(all))] {
			kept[s.ID] = kept[s.ID] || value(s) > 0
		}
	}
	by(func(s Statement) float64 { return s.Calls })
	by(func(s Statement) float64 { return s.WALBytes })
	by(func(s Statement) float64 { return s.Read })
	by(func(s Statement) float64 { return s.Dirtied })
	by(func(s Statement) float64 { return s.MS })
	return slices.DeleteFunc(all, func(s Statement) bool { return !kept[s.ID] })
}
