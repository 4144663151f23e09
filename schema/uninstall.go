package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/trusted"
	"github.com/parley-broker/parley/sql"
)

// ErrInUse means that removing the schema would destroy conversations, messages, or objects of the user that are built on it.
var ErrInUse = errors.New("schema parley is in use")

// Uninstall removes the schema parley and the store, with everything in them, in one transaction. It does nothing when there is none.
//
// Unless forced, it refuses with [ErrInUse] when any conversation exists, when a simple queue holds a message, when the store holds
// content or work, or when an object outside the schemas, such as a view of the user's, depends on it and would be dropped too.
//
// Daemons that run meanwhile hold locks in an order of their own, and the server breaks a deadlock with one of them by ending this
// transaction or that of the daemon. This one is tried again a few times.
//
// Errors: [ErrInUse], [ErrForeign], [parley.ErrUntrustedSchema].
func Uninstall(ctx context.Context, conn *pgx.Conn, force bool) error {
	err := uninstall(ctx, conn, force)
	for failures := 1; isDeadlock(err) && failures < uninstallAttempts; failures++ {
		if waitErr := backoff.Wait(ctx, backoff.Statement.Pause(failures)); waitErr != nil {
			break
		}
		err = uninstall(ctx, conn, force)
	}
	switch {
	case isDeadlock(err):
		return fmt.Errorf("uninstall: daemons work in the schema: stop parley serve, mail serve and flow serve, and try again: %w", err)
	case err != nil:
		return fmt.Errorf("uninstall: %w", err)
	}
	return nil
}

// uninstallAttempts is how often it is tried to remove the schema while daemons are in the way.
const uninstallAttempts = 6

func isDeadlock(err error) bool {
	broken, is := errors.AsType[*pgconn.PgError](err)
	return is && broken.Code == "40P01"
}

// uninstall removes the schemas in one transaction.
func uninstall(ctx context.Context, conn *pgx.Conn, force bool) error {
	return changeSchema(ctx, conn, func(tx pgx.Tx) error {
		found, err := readInstallation(ctx, tx, trusted.ToChange)
		if errors.Is(err, parley.ErrNotInstalled) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := found.actAsOwner(ctx, tx); err != nil {
			return err
		}
		if !force {
			if err := refuseWhenInUse(ctx, tx); err != nil {
				return err
			}
		}
		drop := "drop schema if exists " + strings.Join(sql.Schemas(), ", ") + " cascade; "
		_, err = tx.Exec(ctx, drop+forgetClientChecks, pgx.QueryExecModeSimpleProtocol)
		return err
	})
}

// forgetClientChecks takes back what sql/parley/receive/client_checks.sql has set for the database, unless somebody has set another
// value since.
const forgetClientChecks = `do $$
begin
  if exists (
    select
    from pg_catalog.pg_db_role_setting as s
    join pg_catalog.pg_database as d on d.oid = s.setdatabase
    where d.datname = current_database() and s.setrole = 0 and 'client_connection_check_interval=100ms' = any (s.setconfig)
      and pg_catalog.pg_has_role(d.datdba, 'usage')
  ) then
    execute format('alter database %I reset client_connection_check_interval', current_database());
  end if;
end
$$`

func refuseWhenInUse(ctx context.Context, tx pgx.Tx) error {
	var conversations bool
	err := tx.QueryRow(ctx, "select exists (select from parley._p_endpoint)", pgx.QueryExecModeExec).Scan(&conversations)
	if err != nil {
		return fmt.Errorf("find conversations: %w", err)
	}
	if conversations {
		return fmt.Errorf("%w: it holds conversations; end them, or use force to lose them and their messages", ErrInUse)
	}
	if err := refuseWhenQueuesHoldMessages(ctx, tx); err != nil {
		return err
	}
	if err := refuseWhenStored(ctx, tx); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, dependents, pgx.QueryExecModeExec, sql.Schemas())
	if err != nil {
		return fmt.Errorf("find dependent objects: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find dependent objects: %w", err)
	}
	if len(names) > 0 {
		return fmt.Errorf("%w: %s would be dropped too; drop what depends on it, or use force", ErrInUse, strings.Join(names, ", "))
	}
	return nil
}

// refuseWhenQueuesHoldMessages refuses while messages of simple queues wait, are not due yet or are set aside.
func refuseWhenQueuesHoldMessages(ctx context.Context, tx pgx.Tx) error {
	for _, table := range []string{"parley._p_message", "parley._p_delayed_message", "parley._p_set_aside_message"} {
		var holds bool
		err := tx.QueryRow(ctx, "select to_regclass($1) is not null", pgx.QueryExecModeExec, table).Scan(&holds)
		if err == nil && holds { // a schema of an older release may lack it
			err = tx.QueryRow(ctx, "select exists (select from "+table+")", pgx.QueryExecModeExec).Scan(&holds)
		}
		if err != nil {
			return fmt.Errorf("find messages of simple queues: %w", err)
		}
		if holds {
			return fmt.Errorf("%w: its queues hold messages; take or discard them, or use force to lose them", ErrInUse)
		}
	}
	return nil
}

// refuseWhenStored refuses while a system keeps content or work in the store.
func refuseWhenStored(ctx context.Context, tx pgx.Tx) error {
	var isStored bool
	err := tx.QueryRow(ctx, "select to_regclass('parley_store._p_content') is not null", pgx.QueryExecModeExec).Scan(&isStored)
	if err == nil && isStored {
		err = tx.QueryRow(ctx, `
			select exists (select from parley_store._p_content) or exists (select from parley_store.work_items)`,
			pgx.QueryExecModeExec).Scan(&isStored)
	}
	if err != nil {
		return fmt.Errorf("find content and work of the store: %w", err)
	}
	if err := refuseWhenMessagesWait(ctx, tx); err != nil {
		return err
	}
	if isStored {
		return fmt.Errorf("%w: the store holds content or work; have it delivered or removed, or use force to lose it", ErrInUse)
	}
	return nil
}

// dependents names up to ten objects outside the schema that could not be without it. Dependencies of views, defaults
// and constraints are those of their relation.
const dependents = `
with ours as (
	select n.oid from pg_namespace as n where n.nspname = any ($1)
),

referenced as (
	select 'pg_class'::regclass as classid, c.oid from pg_class as c where c.relnamespace in (select oid from ours)
	union all
	select 'pg_proc'::regclass, p.oid from pg_proc as p where p.pronamespace in (select oid from ours)
	union all
	select 'pg_type'::regclass, t.oid from pg_type as t where t.typnamespace in (select oid from ours)
),

dependent as (
	select d.classid, d.objid, d.objsubid,
		coalesce(c.relnamespace, p.pronamespace, t.typnamespace, o.connamespace) as namespace
	from pg_depend as d
	join referenced as r on r.classid = d.refclassid and r.oid = d.refobjid
	left join pg_rewrite as w on d.classid = 'pg_rewrite'::regclass and w.oid = d.objid
	left join pg_attrdef as f on d.classid = 'pg_attrdef'::regclass and f.oid = d.objid
	left join pg_trigger as g on d.classid = 'pg_trigger'::regclass and g.oid = d.objid
	left join pg_policy as y on d.classid = 'pg_policy'::regclass and y.oid = d.objid
	left join pg_class as c on c.oid = coalesce(
		w.ev_class, f.adrelid, g.tgrelid, y.polrelid, case d.classid when 'pg_class'::regclass then d.objid end
	)
	left join pg_proc as p on d.classid = 'pg_proc'::regclass and p.oid = d.objid
	left join pg_type as t on d.classid = 'pg_type'::regclass and t.oid = d.objid
	left join pg_constraint as o on d.classid = 'pg_constraint'::regclass and o.oid = d.objid
	where d.deptype in ('n', 'a')
)

select distinct pg_describe_object(d.classid, d.objid, d.objsubid)
from dependent as d
where d.namespace is not null and d.namespace not in (select oid from ours)
order by 1
limit 10`

// refuseWhenMessagesWait refuses while messages of mail or of the integration engine are under way.
func refuseWhenMessagesWait(ctx context.Context, tx pgx.Tx) error {
	for _, of := range []struct{ table, system string }{
		{"parley_mail._p_message", "mail"}, {"parley_flow._p_message", "the integration engine"},
	} {
		var waits bool
		err := tx.QueryRow(ctx, "select to_regclass($1) is not null", pgx.QueryExecModeExec, of.table).Scan(&waits)
		if err == nil && waits {
			err = tx.QueryRow(ctx, "select exists (select from "+of.table+")", pgx.QueryExecModeExec).Scan(&waits)
		}
		if err != nil {
			return fmt.Errorf("find messages of %s: %w", of.system, err)
		}
		if waits {
			return fmt.Errorf("%w: messages of %s are under way; have them delivered or removed, or use force to lose them", ErrInUse, of.system)
		}
	}
	return nil
}
