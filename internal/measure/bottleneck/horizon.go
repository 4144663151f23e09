package bottleneck

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Holder keeps dead rows from being removed: PostgreSQL removes none that its snapshot may still see.
type Holder struct {
	Kind         string  `json:"kind"`         // "session", "prepared transaction", "replication slot", "standby"
	Name         string  `json:"name"`         // of the program with its process, of the transaction, the slot, the standby
	Transactions float64 `json:"transactions"` // that began since
	Seconds      float64 `json:"seconds"`      // 0 where the server does not know
}

// mostHolders are listed, the oldest first.
const mostHolders = 5

// horizonStatement finds what holds the horizon of the benchmark's databases: sessions and prepared transactions in them, slots and
// standbys of the whole server.
const horizonStatement = `
	select h.kind, h.name, h.transactions::double precision, h.seconds
	from (
		select 'session', coalesce(nullif(a.application_name, '') || ', ', '') || 'process ' || a.pid || ', ' || a.state,
			pg_catalog.age(a.backend_xmin),
			coalesce(extract(epoch from pg_catalog.clock_timestamp() - a.xact_start), 0)::double precision
		from pg_catalog.pg_stat_activity as a
		where a.backend_xmin is not null and a.backend_type = 'client backend' and pg_catalog.starts_with(a.datname, $1)
			and a.pid <> pg_catalog.pg_backend_pid()
		union all
		select 'prepared transaction', p.gid, pg_catalog.age(p.transaction),
			extract(epoch from pg_catalog.clock_timestamp() - p.prepared)::double precision
		from pg_catalog.pg_prepared_xacts as p
		where pg_catalog.starts_with(p.database, $1)
		union all
		select 'replication slot', r.slot_name, greatest(pg_catalog.age(r.xmin), pg_catalog.age(r.catalog_xmin)), 0::double precision
		from pg_catalog.pg_replication_slots as r
		where r.xmin is not null or r.catalog_xmin is not null
		union all
		select 'standby', s.application_name, pg_catalog.age(s.backend_xmin), 0::double precision
		from pg_catalog.pg_stat_replication as s
		where s.backend_xmin is not null
	) as h (kind, name, transactions, seconds)
	order by h.transactions desc, h.seconds desc, h.kind, h.name
	limit $2`

// readHorizon finds what holds the horizon now. The oldest of all windows are kept.
func (s *Sampler) readHorizon(ctx context.Context) {
	rows, err := s.conn.Query(ctx, horizonStatement, s.prefix, mostHolders)
	if err != nil {
		s.note("Old snapshots were not seen: %v", err)
		return
	}
	holders, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Holder])
	if err != nil {
		s.note("Old snapshots were not seen: %v", err)
		return
	}
	if len(holders) > 0 && (len(s.holders) == 0 || holders[0].Transactions > s.holders[0].Transactions) {
		s.holders = holders
	}
}
