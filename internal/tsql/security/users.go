package security

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// Roles are of the whole server, users of T-SQL are of one database. So a role that stands for a user without a login of its own, or of
// another name than its login, has this setting in each database in which it is a user.
const userSetting = "parley.tsql_user"

// A standing is what is known of the role that a user of this database would have.
type standing struct {
	exists, mayLogIn bool
	isUserHere       bool
	isUserElsewhere  bool
}

// standingOf looks up a role by the exact name that roleOf has given.
func (t *Translator) standingOf(ctx context.Context, role string) (s standing, err error) {
	const look = `select concat(r.rolcanlogin,
  coalesce(bool_or(d.datname = current_database()), false), coalesce(bool_or(d.datname <> current_database()), false))
from pg_catalog.pg_roles as r
left join pg_catalog.pg_db_role_setting as s on s.setrole = r.oid and '` + userSetting + `=on' = any (s.setconfig)
left join pg_catalog.pg_database as d on d.oid = s.setdatabase
where r.rolname = $1
group by r.rolcanlogin`
	found, err := t.ask(ctx, look, role)
	if err != nil || found == "" {
		return s, err
	}
	return standing{exists: true, mayLogIn: found[0] == 't', isUserHere: found[1] == 't', isUserElsewhere: found[2] == 't'}, nil
}

// marked makes a role a user of this database.
func (t *Translator) marked(ctx context.Context, role string) error {
	database, err := t.connection.Current(ctx)
	if err != nil {
		return err
	}
	return t.written(ctx, "alter role %I in database %I set "+userSetting+" = 'on'", role, database)
}

// createUser makes the user of a login, or one without a login. The user of a login with the same name is the role of the login; one with
// another name is a role of its own, whose rights the login has as its member.
func (t *Translator) createUser(ctx context.Context, node *ast.Principal) *fault.Error {
	login := ""
	if !node.Without {
		name := node.Source
		if name == "" {
			name = node.Name
		}
		role, err := t.roleOf(ctx, name)
		if err != nil {
			return fault.New(15007, name)
		}
		login = role
	}
	role, err := t.roleOf(ctx, node.Name)
	if err != nil && err.Number != 15151 {
		return err
	}
	if role != "" && role == login {
		return nil
	}
	return changed(t.standForUser(ctx, node.Name, role, login), node)
}

// standForUser makes the role of a user where it is missing, and gives the login its rights. A role that may log in, or is a user of this
// database already, is taken.
func (t *Translator) standForUser(ctx context.Context, name, role, login string) error {
	if role == "" {
		if err := t.written(ctx, "create role %I", name); err != nil {
			return err
		}
		role = name
	} else {
		s, err := t.standingOf(ctx, role)
		switch {
		case err != nil:
			return err
		case s.mayLogIn, s.isUserHere, !s.exists:
			return fault.New(15023, name)
		}
	}
	if err := t.marked(ctx, role); err != nil {
		return err
	}
	if login == "" {
		return nil
	}
	return t.written(ctx, "grant %I to %I", role, login)
}

// dropUser drops the role of a user. The user of a login stays while the login does, and one that is a user of other databases stays there.
func (t *Translator) dropUser(ctx context.Context, role string) error {
	s, err := t.standingOf(ctx, role)
	switch {
	case err != nil:
		return err
	case s.mayLogIn:
		return t.leaves(ctx, role, "")
	case !s.isUserElsewhere:
		return t.leaves(ctx, role, "drop role %I")
	}
	const owns = `select exists (
  select from pg_catalog.pg_shdepend as p
  where p.refclassid = 'pg_catalog.pg_authid'::regclass and p.refobjid = (select r.oid from pg_catalog.pg_roles as r where r.rolname = $1)
    and p.deptype <> 'a' and p.dbid = (select d.oid from pg_catalog.pg_database as d where d.datname = current_database()))`
	found, err := t.ask(ctx, owns, role)
	switch {
	case err != nil:
		return err
	case found == "t":
		return fault.New(15138)
	}
	return t.leaves(ctx, role, "alter role %I in database %I reset "+userSetting)
}

// changed gives the error of T-SQL for one of a statement that creates a user, a login or a role.
func changed(err error, node *ast.Principal) *fault.Error {
	switch stateOf(err) {
	case "42710":
		if node.Kind == "LOGIN" {
			return fault.New(15025, node.Name)
		}
		return fault.New(15023, node.Name)
	case "42501":
		return fault.New(15247)
	}
	if err != nil {
		return connection.Fault(err, node.Verb+" "+node.Kind)
	}
	return nil
}
