package compose

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/schema"
)

// rolePlaceholder stands in --procedure-dsn for the role that a procedure runs as.
const rolePlaceholder = "{role}"

// procedureLogin says how the procedures of a database connect, given their role; nil when they log in as the daemon does.
func (d *Daemon) procedureLogin(number int) (func(role string) (*pgx.ConnConfig, error), error) {
	if len(d.ProcedureDSNs) == 0 || d.ProcedureDSNs[number] == "" {
		return nil, nil
	}
	dsn := d.ProcedureDSNs[number]
	login := func(role string) (*pgx.ConnConfig, error) {
		config, err := pgx.ParseConfig(withRole(dsn, role))
		if err != nil {
			return nil, fmt.Errorf("read the DSN of procedures: %w", err)
		}
		if strings.Contains(dsn, rolePlaceholder) && config.User != role {
			return nil, fmt.Errorf("read the DSN of procedures: it logs in as %q instead of %q: write %s as its user",
				config.User, role, rolePlaceholder)
		}
		d.connections.Apply(config)
		return config, nil
	}
	// Checked now, with a name in which everything has to be quoted, so that an error is found before the first procedure.
	if _, err := login(`a "role's" \ name`); err != nil {
		return nil, err
	}
	return login, nil
}

// withRole puts a role into a DSN, as its form wants it quoted.
func withRole(dsn, role string) string {
	var quoted strings.Builder
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		for _, b := range []byte(role) {
			fmt.Fprintf(&quoted, "%%%02X", b)
		}
	} else {
		quoted.WriteString("'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(role) + "'")
	}
	return strings.ReplaceAll(dsn, rolePlaceholder, quoted.String())
}

// warnOfSuperuser says so when the daemon logs in with rights that nothing of what it runs should have.
func warnOfSuperuser(ctx context.Context, conn *pgx.Conn, logger *slog.Logger) {
	var isSuperuser bool
	err := conn.QueryRow(ctx, `
		select r.rolsuper from pg_catalog.pg_roles as r where r.rolname operator(pg_catalog.=) session_user`).Scan(&isSuperuser)
	if err == nil && isSuperuser {
		logger.Warn("the daemon logs in as a superuser: a procedure that calls RESET ROLE has all its rights; "+
			"let it log in as the owner of the schema, and procedures by --procedure-dsn", "login", conn.Config().User)
	}
}

// requireLeader refuses a login that may not lead the broker: whatever it tried would fail for ever.
func requireLeader(ctx context.Context, conn *pgx.Conn) error {
	var mayLead bool
	var owner string
	err := conn.QueryRow(ctx, `
		select pg_catalog.has_function_privilege(p.oid, 'execute'), pg_catalog.pg_get_userbyid(n.nspowner)::pg_catalog.text
		from pg_catalog.pg_namespace as n
		join pg_catalog.pg_proc as p on p.pronamespace operator(pg_catalog.=) n.oid
		where n.nspname operator(pg_catalog.=) 'parley' and p.proname operator(pg_catalog.=) '_p_lead'`).Scan(&mayLead, &owner)
	if err != nil {
		return fmt.Errorf("ask whether the login may lead: %w", err)
	}
	if !mayLead {
		return fmt.Errorf("%w: let the daemon log in as role %q or as a member of it", schema.ErrNotOwner, owner)
	}
	return nil
}
