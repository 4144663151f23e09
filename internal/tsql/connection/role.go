package connection

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// roles are whose rights the session has. A rollback takes SET ROLE back, so the role travels again with the next statement.
type roles struct {
	role       string // in PostgreSQL's spelling; empty for the one that the session began as
	first      string // the one that the session began as, none for its login
	isUsed     bool   // another role was asked for
	isRoleSure bool   // the database has the role that is asked for
}

// mayActAs finds a role and says whether EXECUTE AS may name it: whoever wrote that must be allowed to act as the role. Where it is to be
// acted as now, so must the login: the server lets nobody else. dbo is the owner of the database.
const mayActAs = `with way (right_needed) as (
  select case when pg_catalog.current_setting('server_version_num')::integer >= 160000 then 'SET' else 'MEMBER' end
)
select r.rolname::text, pg_catalog.current_setting('role'),
  (pg_catalog.pg_has_role(case when $2 = '' then current_user else $2::name end, r.oid, w.right_needed)
    and (not $3::boolean or pg_catalog.pg_has_role(session_user, r.oid, w.right_needed)))::text
from pg_catalog.pg_roles as r cross join way as w
where case
  when pg_catalog.lower($1) in ('dbo', 'sa') then
    r.oid = (select d.datdba from pg_catalog.pg_database as d where d.datname = pg_catalog.current_database())
  else pg_catalog.lower(r.rolname) = pg_catalog.lower($1)
end
order by r.rolname = $1 desc limit 1`

// RoleToActAs finds the role that EXECUTE AS names. The author is the role that wrote it; empty for the role of the session. Error 15517
// where there is none of the name, or where it may not be acted as. Without isNow the login is not asked for.
func (c *Connection) RoleToActAs(ctx context.Context, name, author string, isNow bool) (string, error) {
	role, first, may := "", "", ""
	now := "false"
	if isNow {
		now = "true"
	}
	_, err := c.Run(ctx, Statement{
		SQL: mayActAs, Parameters: [][]byte{[]byte(name), []byte(author), []byte(now)},
		Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
			role, first, may = string(row[0]), string(row[1]), string(row[2])
			return nil
		},
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("finding role %s: %w", name, err)
	case may != "true":
		return "", fault.New(15517, name)
	}
	if !c.isUsed {
		c.first = first
	}
	return role, nil
}

// ActAs has the statements that follow run with the rights of a role that RoleToActAs gave; empty for the one that the session began as.
func (c *Connection) ActAs(role string) {
	if role != c.role {
		c.role, c.isUsed, c.isRoleSure = role, true, false
	}
}

// takeRole has the role set by the next flush where it is not certain.
func (c *Connection) takeRole() {
	if c.isUsed && !c.isRoleSure {
		c.wait(c.roleStatement())
		c.isRoleSure = true
	}
}

// roleStatement gives the statement that takes the role on.
func (c *Connection) roleStatement() string {
	wanted := c.role
	if wanted == "" {
		wanted = c.first
	}
	if wanted == "" || wanted == "none" {
		return "set role none"
	}
	return "set role " + pgx.Identifier{wanted}.Sanitize()
}
