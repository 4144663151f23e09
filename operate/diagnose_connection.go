package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// clockTolerance is how far the clocks of database and client may be apart before that is a finding.
const clockTolerance = 2 * time.Second

// DiagnoseConnection finds what is wrong between a program and the database: a schema of another version, a pooler that
// keeps notifications away, clocks that differ. It attaches to the broker, which finds out whether it is a copy;
// [DiagnoseConfiguration] then reports that. When the schema does not fit, nothing more is checked.
//
// Errors: [parley.ErrNotInstalled].
func DiagnoseConnection(ctx context.Context, conn *pgx.Conn) (findings []Finding, schemaFits bool, err error) {
	return diagnoseConnection(ctx, conn, time.Now)
}

func diagnoseConnection(ctx context.Context, conn *pgx.Conn, now func() time.Time) (findings []Finding, schemaFits bool, err error) {
	broker, err := parley.Attach(ctx, conn)
	switch {
	case errors.Is(err, parley.ErrUpgradeNeeded):
		return []Finding{connectionFinding("upgrade-needed", LevelError, "schema", "parley", err.Error(), "parley upgrade")}, false, nil
	case errors.Is(err, parley.ErrReleaseTooOld):
		return []Finding{connectionFinding("release-too-old", LevelError, "program", "parley "+parley.Release, err.Error(),
			"-- install Parley "+broker.Release+" or newer on this machine")}, false, nil
	case err != nil:
		return nil, false, err
	}
	_, direct, err := pgdb.Backend(ctx, conn)
	if err != nil {
		return nil, true, err
	}
	if !direct {
		findings = append(findings, connectionFinding("pooled-connection", LevelInfo, "connection", conn.Config().Host,
			"A pooler stands between the program and the database: LISTEN gets nothing through it, "+
				"so whoever waits for messages polls.",
			"-- give consumers a direct connection beside it (ListenConfig), and the daemon too (parley serve --listen-dsn)"))
	}
	ahead, exactness, err := clockSkew(ctx, conn, now)
	if err != nil {
		return nil, true, err
	}
	if skew := ahead.Abs() - exactness; skew > clockTolerance {
		than := "behind"
		if ahead > 0 {
			than = "ahead of"
		}
		findings = append(findings, connectionFinding("clock-skew", LevelWarning, "server", conn.Config().Host,
			fmt.Sprintf("The clock of the database is %s %s that of this machine; timers and lifetimes go by the database's.",
				ahead.Abs().Round(time.Second), than),
			"-- set the clocks of both machines by NTP"))
	}
	return findings, true, nil
}

func connectionFinding(code, level, kind, name, cause, cure string) Finding {
	return Finding{Code: code, Level: level, Part: PartConfiguration, ObjectKind: kind, ObjectName: name, Cause: cause, Cure: &cure}
}

// clockSkew returns by how much the clock of the database is ahead of ours, and how exact that is: half the round trip.
func clockSkew(ctx context.Context, db parley.DB, now func() time.Time) (ahead, exactness time.Duration, err error) {
	asked := now()
	var there time.Time
	if err := db.QueryRow(ctx, "select clock_timestamp()", pgx.QueryExecModeExec).Scan(&there); err != nil {
		return 0, 0, fmt.Errorf("ask for the time: %w", err)
	}
	took := now().Sub(asked)
	return there.Sub(asked.Add(took / 2)), took / 2, nil
}
