package bottleneck

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Table counts the changes of a table while it was measured, and has its state at the end. PostgreSQL counts a session's last second late.
type Table struct {
	Name       string  `json:"name"`
	Inserted   float64 `json:"inserted"` // rows
	Updated    float64 `json:"updated"`
	HotUpdated float64 `json:"hot_updated"` // updates that changed no index
	Deleted    float64 `json:"deleted"`
	TableScans float64 `json:"table_scans"`
	IndexScans float64 `json:"index_scans"`
	Vacuums    float64 `json:"vacuums"` // by autovacuum
	Live       float64 `json:"live"`    // rows, at the end
	Dead       float64 `json:"dead"`
	Bytes      float64 `json:"bytes"` // with its indexes
	// Bloat is the part of the table's own pages that holds no live row, as far as its statistics show; missing where it has none.
	Bloat *float64 `json:"bloat,omitempty"`
}

// tableKey is a table of a database.
type tableKey struct{ database, name string }

// mostTables are listed, those with the most changes first.
const mostTables = 12

// tablesStatement gives the counters of the tables that have any, and an estimate of what no live row fills: a row has 28 bytes beside its
// columns. A copy of a database has no statistics of the rows that it began with: there the number of the last ANALYZE counts.
const tablesStatement = `
	select
		pg_catalog.quote_ident(t.schemaname) || '.' || pg_catalog.quote_ident(t.relname),
		t.n_tup_ins, t.n_tup_upd, t.n_tup_hot_upd, t.n_tup_del, t.seq_scan, coalesce(t.idx_scan, 0), t.autovacuum_count,
		rows.live, t.n_dead_tup, coalesce(pg_catalog.pg_total_relation_size(t.relid), 0),
		case when size.bytes > 0 and width.bytes is not null then greatest(0, 1 - rows.live * (28 + width.bytes) / size.bytes) end
	from pg_catalog.pg_stat_user_tables as t
	join pg_catalog.pg_class as k on k.oid = t.relid
	cross join lateral (
		select (
			case
				when t.vacuum_count + t.autovacuum_count + t.analyze_count + t.autoanalyze_count > 0 then t.n_live_tup
				else greatest(0, greatest(0, k.reltuples) + t.n_tup_ins - t.n_tup_del)
			end
		)::double precision
	) as rows (live)
	cross join lateral (select pg_catalog.pg_relation_size(t.relid)::double precision) as size (bytes)
	cross join lateral (
		select pg_catalog.sum(c.avg_width * (1 - c.null_frac))::double precision
		from pg_catalog.pg_stats as c
		where c.schemaname = t.schemaname and c.tablename = t.relname and not c.inherited
	) as width (bytes)
	where t.n_tup_ins + t.n_tup_upd + t.n_tup_del + t.seq_scan + coalesce(t.idx_scan, 0) > 0`

// readTables reads the tables of the databases that are in use.
func (s *Sampler) readTables(ctx context.Context) map[tableKey]Table {
	found := map[tableKey]Table{}
	names, err := s.inUse(ctx)
	if err != nil {
		s.note("%v", err)
	}
	for _, database := range names {
		err := s.inDatabase(ctx, database, func(conn *pgx.Conn) error {
			rows, err := conn.Query(ctx, tablesStatement)
			if err != nil {
				return fmt.Errorf("read the tables: %w", err)
			}
			tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Table])
			if err != nil {
				return fmt.Errorf("read the tables: %w", err)
			}
			for _, t := range tables {
				found[tableKey{database, t.Name}] = t
			}
			return nil
		})
		if err != nil {
			s.note("Tables were not seen: %v", err)
		}
	}
	return found
}

// addTables adds the differences; a table of a database that was not there before began with nothing.
func (s *Sampler) addTables(after map[tableKey]Table) {
	for key, now := range after {
		was := s.tablesBefore[key]
		sum := s.tables[key.name]
		if sum == nil {
			sum = &Table{Name: key.name}
			s.tables[key.name] = sum
		}
		sum.Inserted += max(0, now.Inserted-was.Inserted)
		sum.Updated += max(0, now.Updated-was.Updated)
		sum.HotUpdated += max(0, now.HotUpdated-was.HotUpdated)
		sum.Deleted += max(0, now.Deleted-was.Deleted)
		sum.TableScans += max(0, now.TableScans-was.TableScans)
		sum.IndexScans += max(0, now.IndexScans-was.IndexScans)
		sum.Vacuums += max(0, now.Vacuums-was.Vacuums)
		sum.Live, sum.Dead, sum.Bytes, sum.Bloat = now.Live, now.Dead, now.Bytes, now.Bloat
	}
}

// changes are the rows of a table that were changed.
func (t Table) changes() float64 { return t.Inserted + t.Updated + t.Deleted }

// busiest are the tables that changed most.
func busiest(tables map[string]*Table) []Table {
	list := make([]Table, 0, len(tables))
	for _, t := range tables {
		if t.changes()+t.TableScans+t.IndexScans > 0 {
			list = append(list, *t)
		}
	}
	slices.SortFunc(list, func(x, y Table) int {
		return cmp.Or(cmp.Compare(y.changes(), x.changes()), cmp.Compare(y.IndexScans, x.IndexScans), cmp.Compare(x.Name, y.Name))
	})
	return list[:min(mostTables, len(list))]
}
