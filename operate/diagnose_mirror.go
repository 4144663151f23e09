package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/trusted"
)

// databasePlace is which database of which server something is.
type databasePlace struct {
	SystemIdentifier *int64 // nil where it is kept from us
	Database         string
	Broker           parley.UUID
	SchemaVersion    int32
	IsInRecovery     bool
	Started          time.Time // the server
	Objects          []string  // services, queues and contracts: kind and name
}

func readPlace(ctx context.Context, db parley.DB) (p databasePlace, err error) {
	err = db.QueryRow(ctx, `
		select parley._p_system_identifier(), current_database(), b.service_broker_guid, i.schema_version,
			pg_is_in_recovery(), pg_postmaster_start_time(),
			array(
				select o.kind || ' ' || o.name
				from (
					select 'contract' as kind, c.name::text from parley.service_contracts as c
					union all
					select 'queue', q.name::text from parley.service_queues as q
					union all
					select 'service', s.name::text from parley.services as s
				) as o
				order by 1
			)
		from parley._p_broker as b
		cross join parley._p_installation as i`,
	).Scan(&p.SystemIdentifier, &p.Database, &p.Broker, &p.SchemaVersion, &p.IsInRecovery, &p.Started, &p.Objects)
	if err != nil {
		return p, pgdb.StatementError(err, "read which database it is")
	}
	return p, nil
}

// DiagnoseMirror finds what is wrong with the partner that is to take over from a database, its standby, and with the routes that
// lead to the services of a dialog: each should give the partner as its MIRROR_ADDRESS. The routes are those of other, the far
// database of the dialog; when it is nil they are not checked, and a finding of [PartProblem] says so. Empty names are as in
// [DiagnoseConfiguration].
//
// Errors: [parley.ErrUntrustedSchema] and [parley.ErrNotInstalled] of any of them.
func DiagnoseMirror(
	ctx context.Context, db, mirror, other parley.DB, fromService, toService string, filter DiagnosisFilter,
) ([]Finding, error) {
	for _, each := range []parley.DB{mirror, other} {
		if each == nil {
			continue
		}
		if err := trusted.Require(ctx, each, trusted.ToUse); err != nil {
			return nil, err
		}
	}
	own, err := readPlace(ctx, db)
	if err != nil {
		return nil, err
	}
	partner, err := readPlace(ctx, mirror)
	if err != nil {
		return nil, err
	}
	found := own.compare(partner)
	if other == nil {
		found = append(found, mirrorFinding("mirror-address-not-checked", PartProblem, own.Database,
			"Whether routes to it give the address of its partner only the other side of a dialog knows, and no far database is named.", ""))
	} else {
		routes, err := readUnmirroredRoutes(ctx, db, other, own.Broker, fromService, toService)
		if err != nil {
			return nil, err
		}
		found = append(found, routes...)
	}
	return slices.DeleteFunc(found, func(f Finding) bool { return !filter.keeps(f) }), nil
}

// keeps reports whether a finding is wanted. A check that could not be made is wanted, whatever the level.
func (f DiagnosisFilter) keeps(found Finding) bool {
	levels := []string{LevelError, LevelWarning, LevelInfo}
	most := slices.Index(levels, f.Level)
	if f.Level == "" {
		most = 1
	}
	return !slices.Contains(f.Ignore, found.Code) && (found.Part == PartProblem || slices.Index(levels, found.Level) <= most)
}

func mirrorFinding(code, part, database, cause, cure string) Finding {
	f := Finding{Code: code, Level: LevelError, Part: part, ObjectKind: "database", ObjectName: database, Cause: cause}
	if cure != "" {
		f.Cure = &cure
	}
	return f
}

// compare finds out whether the partner is a copy of the same database that follows it.
func (p databasePlace) compare(partner databasePlace) []Finding {
	if p.SystemIdentifier == nil || partner.SystemIdentifier == nil {
		return []Finding{mirrorFinding("mirror-not-checked", PartProblem, p.Database,
			"The identifier of a server is kept from the owner of the schema: whether the partner is a copy is not known.",
			"grant execute on function pg_control_system() to <owner of the schema>;")}
	}
	if why := p.isAnother(partner); why != "" {
		return []Finding{mirrorFinding("mirror-other-database", PartConfiguration, partner.Database, why,
			"-- name the standby of this server and the same database of it with --mirror-dsn")}
	}
	var found []Finding
	promoted := func(database, cause, cure string) {
		found = append(found, mirrorFinding("mirror-promoted", PartConfiguration, database, cause, cure))
	}
	remedy := "select * from pg_stat_wal_receiver;  -- at the partner: does it follow?"
	switch {
	case p.IsInRecovery && partner.IsInRecovery:
		promoted(p.Database, "This database and its partner are both in recovery: neither takes messages.",
			"select pg_promote();  -- at one of them, when no primary is left")
	case p.IsInRecovery:
		promoted(partner.Database, "The partner is the primary, and this database is its standby.",
			"-- exchange the two: --dsn names the primary, --mirror-dsn its standby")
	case !partner.IsInRecovery:
		remedy = "-- copy the partner anew from the one that is to stay"
		promoted(partner.Database, "The partner was promoted: both are primaries, and what one of them takes the other never has.", remedy)
	}
	if p.SchemaVersion != partner.SchemaVersion {
		found = append(found, mirrorFinding("mirror-differs", PartConfiguration, partner.Database, fmt.Sprintf(
			"The partner has schema version %d, this database %d.", partner.SchemaVersion, p.SchemaVersion), remedy))
	}
	var differences []string
	for _, each := range []struct {
		what        string
		has, hasNot []string
	}{{"it lacks", p.Objects, partner.Objects}, {"it alone has", partner.Objects, p.Objects}} {
		missing := slices.DeleteFunc(slices.Clone(each.has), func(name string) bool { return slices.Contains(each.hasNot, name) })
		if len(missing) > 0 {
			differences = append(differences, each.what+" "+strings.Join(missing, ", "))
		}
	}
	if len(differences) > 0 {
		found = append(found, mirrorFinding("mirror-differs", PartConfiguration, partner.Database,
			"The partner has not the same objects: "+strings.Join(differences, "; ")+".", remedy))
	}
	return found
}

// isAnother reports why the partner is no copy of a database, "" when it is one. Both identifiers of servers are known.
func (p databasePlace) isAnother(partner databasePlace) string {
	switch {
	case *p.SystemIdentifier != *partner.SystemIdentifier:
		return fmt.Sprintf("The partner belongs to another server (its identifier is %d, not %d): it is no copy that can take over.",
			*partner.SystemIdentifier, *p.SystemIdentifier)
	case p.Database != partner.Database || p.Broker != partner.Broker:
		return fmt.Sprintf("The partner is another database: %q with the broker instance %s, not %q with %s.",
			partner.Database, partner.Broker, p.Database, p.Broker)
	case p.Started.Equal(partner.Started):
		return "The partner is this very database, on the same server."
	}
	return ""
}

// readUnmirroredRoutes finds the routes of the other side that lead to services of a database over the network and do not name its partner.
// Routes that name the service come before those for any service. A mirror counts only for the routes of the same service and instance.
func readUnmirroredRoutes(ctx context.Context, db, other parley.DB, broker parley.UUID, fromService, toService string) ([]Finding, error) {
	var services []string
	err := db.QueryRow(ctx, "select array(select s.name::text from parley.services as s where s.name in ($1, $2) order by 1)",
		fromService, toService).Scan(&services)
	if err != nil {
		return nil, pgdb.StatementError(err, "read the services")
	}
	rows, err := other.Query(ctx, `
		with candidate as (
			select s.name as service, r.name, r.remote_service_name, r.broker_instance, r.address, r.mirror_address, r.next_hop,
				min(case when r.remote_service_name is null then 2 else 1 end) over (partition by s.name) as best
			from unnest($1::text[]) as s (name)
			join parley._p_route as r on coalesce(r.remote_service_name, s.name) = s.name
			where not r.is_inbound
				and (r.expires_at is null or r.expires_at > clock_timestamp())
				and coalesce(r.broker_instance, $2::text) = $2::text
				and not parley._p_is_here(s.name, null)
		)
		select c.name,
			format('It leads to the service "%s" of a mirrored database and gives no MIRROR_ADDRESS: ', c.service)
				|| 'after a failover what goes there waits.',
			case
				when c.remote_service_name is null then format(
					'select parley.create_route(%L, %L, %L, %L, mirror_address => ''tcp://<host of the partner>:4022'');',
					left(c.service, 128), coalesce(parley._p_address_of(c.next_hop, c.service), c.address), c.service, $2::text
				)
				else format('select parley.alter_route(%L, ', c.name)
					|| case when c.broker_instance is null then format('broker_instance => %L, ', $2::text) else '' end
					|| 'mirror_address => ''tcp://<host of the partner>:4022'');'
			end || '  -- not when the address moves along with the database'
		from candidate as c
		where c.next_hop <> 'LOCAL'
			and c.mirror_address is null
			and (c.remote_service_name is not null or c.best = 2)
			and not exists (
				select
				from candidate as o
				where o.service = c.service
					and o.remote_service_name is not distinct from c.remote_service_name
					and o.broker_instance is not distinct from c.broker_instance
					and o.mirror_address is not null
			)
		order by 1, 2`, services, broker.String())
	if err != nil {
		return nil, pgdb.StatementError(err, "read the routes to a mirrored database")
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Finding, err error) {
		f = Finding{Code: "mirror-address-missing", Level: LevelWarning, Part: PartConfiguration, ObjectKind: "route"}
		err = row.Scan(&f.ObjectName, &f.Cause, &f.Cure)
		return f, err
	})
	if err != nil {
		return nil, pgdb.StatementError(err, "read the routes to a mirrored database")
	}
	return found, nil
}
