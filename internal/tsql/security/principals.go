package security

import (
	"context"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// ofPeers says what stands for logins of other servers and for their right to connect to an endpoint.
const ofPeers = "a daemon lets in the peers that it is paired with, see parley pair"

// principal compiles CREATE and ALTER of users, logins and roles. All three are roles of PostgreSQL: a login may log in, the user of a
// login is the role of the login.
func (t *Translator) principal(node *ast.Principal, scope expression.Scope) (*statement, *fault.Error) {
	switch {
	case node.Kind != "USER" && node.Kind != "LOGIN" && node.Kind != "ROLE":
		return nil, refused(node.Verb+" "+node.Kind, "roles of the server and of applications are not there")
	case node.From == "CERTIFICATE" && node.Kind != "LOGIN", node.From == "ASYMMETRIC KEY", node.From == "EXTERNAL PROVIDER":
		return nil, refused(node.Verb+" "+node.Kind+" FROM "+node.From, "users are roles of PostgreSQL, which log in as its pg_hba.conf says")
	}
	var password *expression.Expression
	if option := ast.FindOption(node.Options, "PASSWORD"); option != nil && option.Value != nil {
		if strings.Contains(option.Unit, "HASHED") {
			return nil, refused("PASSWORD HASHED", "give the password itself")
		}
		compiled, err := expression.CompileAs(option.Value, value.Sized(value.NVarChar, 128), scope)
		if err != nil {
			return nil, err
		}
		password = compiled
	}
	return &statement{run: func(ctx context.Context, frame *expression.Frame, sink session.Sink) *fault.Error {
		secret := ""
		if password != nil {
			v, err := password.Evaluate(frame)
			if err != nil {
				return err
			}
			secret = v.Raw()
		}
		if node.Verb == "ALTER" {
			return t.alterPrincipal(ctx, node, secret, sink)
		}
		if err := t.createPrincipal(ctx, node, secret); err != nil {
			return err
		}
		if node.From == "CERTIFICATE" {
			return inform(sink, "FROM CERTIFICATE", ofPeers)
		}
		return ignoredOptions(node, sink)
	}}, nil
}

func (t *Translator) createPrincipal(ctx context.Context, node *ast.Principal, password string) *fault.Error {
	switch {
	case node.Kind == "USER":
		return t.createUser(ctx, node)
	case node.Kind == "ROLE":
		return t.createRole(ctx, node)
	case node.From == "CERTIFICATE": // in SQL Server it stands for a server, and no program logs in as it
		return changed(t.written(ctx, "create role %I nologin", node.Name), node)
	case password != "":
		return changed(t.written(ctx, "create role %I login password %L", node.Name, password), node)
	}
	return changed(t.written(ctx, "create role %I login", node.Name), node)
}

// createRole makes a role. Its owner may give it to others.
func (t *Translator) createRole(ctx context.Context, node *ast.Principal) *fault.Error {
	owner := ""
	if node.Owner != "" {
		role, err := t.roleOf(ctx, node.Owner)
		if err != nil {
			return err
		}
		owner = role
	}
	if err := t.written(ctx, "create role %I", node.Name); err != nil || owner == "" {
		return changed(err, node)
	}
	self, err := t.ask(ctx, "select current_user")
	if err == nil && self != owner {
		err = t.written(ctx, "grant %I to %I with admin option", node.Name, owner)
	}
	return changed(err, node)
}

// ignoredOptions says of each option that it has no effect.
func ignoredOptions(node *ast.Principal, sink session.Sink) *fault.Error {
	for _, option := range node.Options {
		name := option.Name
		if column, is := option.Value.(*ast.ColumnReference); is && name == "DEFAULT_SCHEMA" && strings.EqualFold(column.Name.Object(), "dbo") {
			continue
		}
		if name == "PASSWORD" {
			if option.Unit == "" {
				continue
			}
			name = option.Unit
		}
		reason := "its settings are those of a role of PostgreSQL"
		if name == "DEFAULT_SCHEMA" {
			reason = "a name without a schema is one of dbo"
		}
		if err := inform(sink, name, reason); err != nil {
			return err
		}
	}
	return nil
}

// fixedRoles are roles of each database and of the server in SQL Server. Parley has none: a member gets no right by them.
var fixedRoles = []string{
	"db_owner", "db_accessadmin", "db_securityadmin", "db_ddladmin", "db_backupoperator", "db_datareader", "db_datawriter", "sysadmin",
	"serveradmin", "setupadmin", "securityadmin", "processadmin", "dbcreator", "diskadmin", "bulkadmin",
}

// denyingRoles take rights away from their members. PostgreSQL cannot, so they are refused.
var denyingRoles = []string{"db_denydatareader", "db_denydatawriter"}

// alterPrincipal adds and drops members of a role, switches a login on and off, and changes its password.
func (t *Translator) alterPrincipal(ctx context.Context, node *ast.Principal, password string, sink session.Sink) *fault.Error {
	role, err := t.roleOf(ctx, node.Name)
	switch lower := strings.ToLower(node.Name); {
	case err == nil:
	case node.Kind == "ROLE" && slices.Contains(fixedRoles, lower):
		return inform(sink, "ALTER ROLE "+lower, "grant the rights on the objects, or a role of your own")
	case node.Kind == "ROLE" && slices.Contains(denyingRoles, lower):
		return refused("the role "+lower, "revoke the rights")
	default:
		return fault.New(15151, "alter", kindWord(node.Kind), node.Name)
	}
	var bad error
	switch {
	case node.Change == "ADD MEMBER", node.Change == "DROP MEMBER":
		member, err := t.roleOf(ctx, node.Member)
		if err != nil {
			return err
		}
		format := "grant %I to %I"
		if node.Change == "DROP MEMBER" {
			format = "revoke %I from %I"
		}
		bad = t.written(ctx, format, role, member)
	case node.Change == "ENABLE":
		bad = t.written(ctx, "alter role %I login", role)
	case node.Change == "DISABLE":
		bad = t.written(ctx, "alter role %I nologin", role)
	case node.Change != "":
		return refused("ALTER "+node.Kind+" "+node.Change, "credentials are not there")
	case password != "" && node.Kind == "LOGIN":
		bad = t.written(ctx, "alter role %I password %L", role, password)
	case ast.FindOption(node.Options, "NAME") != nil:
		return refused("ALTER "+node.Kind+" WITH NAME", "rename the role by PostgreSQL")
	}
	switch {
	case stateOf(bad) == "42501":
		return fault.New(15247)
	case bad != nil:
		return connection.Fault(bad, "ALTER "+node.Kind)
	}
	return ignoredOptions(node, sink)
}

func kindWord(kind string) string {
	return map[string]string{"USER": "user", "LOGIN": "login", "ROLE": "role"}[kind]
}

// dropPrincipals compiles DROP of users, logins and roles.
func (t *Translator) dropPrincipals(node *ast.Drop) *statement {
	return &statement{run: func(ctx context.Context, _ *expression.Frame, _ session.Sink) *fault.Error {
		for _, name := range node.Names {
			role, err := t.roleOf(ctx, name.Object())
			if err != nil {
				if node.IfExists {
					continue
				}
				return fault.New(15151, "drop", kindWord(node.Kind), name.Object())
			}
			var bad error
			if node.Kind == "USER" {
				bad = t.dropUser(ctx, role)
			} else {
				bad = t.leaves(ctx, role, "drop role %I")
			}
			switch stateOf(bad) {
			case "2BP01":
				return fault.New(15138)
			case "42501":
				return fault.New(15151, "drop", kindWord(node.Kind), name.Object())
			}
			if bad != nil {
				return connection.Fault(bad, "DROP "+node.Kind)
			}
		}
		return nil
	}}
}
