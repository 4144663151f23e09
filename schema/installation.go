package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/trusted"
)

var (
	// ErrOtherBuild means that a build of code that was never released has installed the schema, and that it is not that of this package
	// although it has the same version. No migration leads from one to the other.
	ErrOtherBuild = errors.New("schema parley was installed by another build of this version, which is not released, " +
		"and cannot be upgraded: use the build that installed it, or lose its data with parley uninstall --force and run parley install")

	// ErrHeld means that another session has held the lock of changes to the schema for too long. Any role can.
	ErrHeld = errors.New("another session holds the lock of changes to schema parley")

	// ErrStandby means that the server is a standby, which takes no change of the schema, not even one that is rolled back.
	ErrStandby = errors.New("the server is a standby")

	// ErrMayNotCreate means that the role may not create schemas in the database.
	ErrMayNotCreate = errors.New("the role may not create schemas in this database")

	// ErrNotOwner means that what was asked for is for the owner of the schema and the members of that role.
	ErrNotOwner = trusted.ErrNotOwner

	// ErrForeign means that the database has a schema parley that Parley did not make.
	ErrForeign = errors.New("schema parley exists but was not installed by Parley: rename or drop it first")
)

// installationLock is the advisory lock that changes to the schema take, to the end of their transaction.
// The number is the name parley in ASCII.
const installationLock = 0x7061726c6579

// installation describes the schema in a database.
type installation struct {
	version     int
	release     string
	fingerprint string // empty where the build that installed it recorded none
	installedAt time.Time
	upgradedAt  *time.Time
	owner       string
	isMember    bool // the current role may act as the owner
}

// readInstallation returns ErrNotInstalled or ErrForeign when there is nothing to read, and parley.ErrUntrustedSchema when it must not be
// read. From then on the transaction acts as the schema's owner, when the connection is one that may: a superuser creates nothing
// as himself in a schema of another superuser.
func readInstallation(ctx context.Context, tx pgx.Tx, use trusted.Use) (installation, error) {
	var in installation
	var isOurs, hasFingerprint bool
	// To the end of the transaction: none of the functions and operators below is to be found in a schema of somebody else. Answers without
	// preparing are text, and only that of ISO is read.
	const pin = "select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('DateStyle', 'ISO', true)"
	if _, err := tx.Exec(ctx, pin, pgx.QueryExecModeExec); err != nil {
		return in, fmt.Errorf("pin the search path: %w", err)
	}
	if err := trusted.RequireToRead(ctx, tx, use); err != nil {
		return in, err
	}
	err := tx.QueryRow(ctx, `
		select r.rolname,
			-- A membership WITH SET FALSE, as 16 has it, does not let anybody act as the role.
			pg_has_role(n.nspowner, case when current_setting('server_version_num')::integer < 160000 then 'MEMBER' else 'SET' end),
			c.oid is not null,
			exists (select from pg_attribute as a where a.attrelid = c.oid and a.attname = 'fingerprint' and not a.attisdropped)
		from pg_namespace as n
		join pg_roles as r on r.oid = n.nspowner
		left join pg_class as c on c.relnamespace = n.oid and c.relname = '_p_installation'
		where n.nspname = 'parley'`, pgx.QueryExecModeExec).Scan(&in.owner, &in.isMember, &isOurs, &hasFingerprint)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return in, parley.ErrNotInstalled
	case err != nil:
		return in, fmt.Errorf("find schema parley: %w", err)
	case !isOurs:
		return in, ErrForeign
	}
	if in.isMember {
		if err := in.actAsOwner(ctx, tx); err != nil {
			return in, err
		}
	}
	err = tx.QueryRow(ctx, `
		select i.schema_version, i.release, i.installed_at, i.upgraded_at
		from parley._p_installation as i`, pgx.QueryExecModeExec).Scan(&in.version, &in.release, &in.installedAt, &in.upgradedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return in, ErrForeign
	}
	if err != nil {
		return in, fmt.Errorf("read the version of schema parley: %w", err)
	}
	if hasFingerprint {
		err = tx.QueryRow(ctx, "select i.fingerprint from parley._p_installation as i", pgx.QueryExecModeExec).Scan(&in.fingerprint)
		if err != nil {
			return in, fmt.Errorf("read the fingerprint of schema parley: %w", err)
		}
	}
	return in, nil
}

// actAsOwner makes what the transaction creates belong to the owner of the schema, whoever of its members asks.
func (in installation) actAsOwner(ctx context.Context, tx pgx.Tx) error {
	if !in.isMember {
		return fmt.Errorf("%w: connect as role %q or as a member of it", ErrNotOwner, in.owner)
	}
	if _, err := tx.Exec(ctx, "select set_config('role', $1, true)", pgx.QueryExecModeExec, in.owner); err != nil {
		return fmt.Errorf("act as role %q, which owns schema parley: %w", in.owner, err)
	}
	return nil
}

// compare returns nil when the schema is that of the definition.
func (in installation) compare(d definition) error {
	switch {
	case in.version < d.version:
		return fmt.Errorf("%w (version %d, needed %d)", parley.ErrUpgradeNeeded, in.version, d.version)
	case in.version > d.version:
		return fmt.Errorf("%w (version %d, known %d)", parley.ErrReleaseTooOld, in.version, d.version)
	case in.fingerprint != d.fingerprint():
		return fmt.Errorf("%w (version %d, release %s)", ErrOtherBuild, in.version, in.release)
	}
	return nil
}

// settings make the text of the schema mean the same whatever the session, the role or the database has set.
// Functions may refer to what a later file creates, so their bodies are not checked.
const settings = `set local client_min_messages = warning;
set local search_path = pg_catalog, pg_temp;
set local check_function_bodies = off;
set local standard_conforming_strings = on;
set local transform_null_equals = off;
set local array_nulls = on;
set local quote_all_identifiers = off;
set local xmloption = content;
set local datestyle = iso;
set local intervalstyle = postgres;
set local extra_float_digits = 1;
set local bytea_output = hex;
set local default_tablespace = '';
set local default_table_access_method = heap;
do $$
begin
  if current_setting('server_version_num')::integer < 140000 then
    raise exception 'Parley needs PostgreSQL 14 or newer; this server is %', current_setting('server_version');
  end if;
end
$$;
`

// changeSchema runs change in a transaction of its own, while no other connection changes the schema.
func changeSchema(ctx context.Context, conn *pgx.Conn, change func(tx pgx.Tx) error) error {
	if conn.PgConn().TxStatus() != 'I' {
		return errors.New("the connection is inside a transaction: the schema is changed in a transaction of its own")
	}
	var isStandby bool
	if err := conn.QueryRow(ctx, "select pg_catalog.pg_is_in_recovery()", pgx.QueryExecModeExec).Scan(&isStandby); err != nil {
		return fmt.Errorf("ask whether the server is a standby: %w", err)
	}
	if isStandby {
		return fmt.Errorf("%w: the schema is changed, and verified by an installation that is rolled back, on its primary, which it follows",
			ErrStandby)
	}
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	return pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
		if err := runSQL(ctx, tx, sqlFile{name: "settings", text: settings}); err != nil {
			return err
		}
		if err := lockInstallation(ctx, tx); err != nil {
			return err
		}
		return change(tx)
	})
}

// installationPatience is how long a change waits for another one, in milliseconds, when the session has no lock_timeout: any role can take
// the lock, and keep it.
const installationPatience = 30_000

// lockInstallation lets one change happen at a time. A session that holds the lock for too long is named.
func lockInstallation(ctx context.Context, tx pgx.Tx) error {
	patience := int64(installationPatience)
	err := tx.QueryRow(ctx, "select coalesce(nullif(setting::bigint, 0), $1) from pg_settings where name = 'lock_timeout'",
		pgx.QueryExecModeExec, patience).Scan(&patience)
	if err != nil {
		return fmt.Errorf("wait for other changes of schema parley: %w", err)
	}
	for until := time.Now().Add(time.Duration(patience) * time.Millisecond); ; {
		var isLocked bool
		row := tx.QueryRow(ctx, "select pg_try_advisory_xact_lock($1)", pgx.QueryExecModeExec, int64(installationLock))
		switch err := row.Scan(&isLocked); {
		case err != nil:
			return fmt.Errorf("wait for other changes of schema parley: %w", err)
		case isLocked:
			return nil
		case time.Now().After(until):
			return heldInstallation(ctx, tx, time.Duration(patience)*time.Millisecond)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for other changes of schema parley: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// heldInstallation reports who holds the lock of changes to the schema.
func heldInstallation(ctx context.Context, tx pgx.Tx, patience time.Duration) error {
	holder := "a session that has just ended"
	err := tx.QueryRow(ctx, `
		select format('process %s, role %s, %s', l.pid, coalesce(quote_ident(a.usename), 'unknown'),
			coalesce('since ' || a.xact_start, a.state, 'unknown'))
		from pg_locks as l
		left join pg_stat_activity as a using (pid)
		where l.locktype = 'advisory' and l.granted and l.objsubid = 1
			and l.database = (select d.oid from pg_database as d where d.datname = current_database())
			and (l.classid::bigint << 32 | l.objid::bigint) = $1`, pgx.QueryExecModeExec, int64(installationLock)).Scan(&holder)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("find who changes schema parley: %w", err)
	}
	return fmt.Errorf("%w, for more than %v: %s; if it does not install or upgrade, end it with pg_terminate_backend",
		ErrHeld, patience, holder)
}

// runSQL runs any number of statements in one round trip, and says in which line one failed.
func runSQL(ctx context.Context, tx pgx.Tx, file sqlFile) error {
	_, err := tx.Conn().PgConn().Exec(ctx, file.text).ReadAll()
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Position > 0 {
		// The position counts characters, not bytes.
		before := string([]rune(file.text)[:pgErr.Position-1])
		return fmt.Errorf("%s:%d: %w", file.name, 1+strings.Count(before, "\n"), err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file.name, err)
	}
	return nil
}
