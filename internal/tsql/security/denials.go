package security

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// A denial is DENY. PostgreSQL keeps no DENY, so the right is taken back, and the statement is refused where the principal would still
// have it: by another role, as all roles do, or because a member of the role has it. It needs a transaction, so that a refusal takes
// nothing back.
type denial struct{ statement }

// Fires says that the statement needs a transaction around it.
func (*denial) Fires() bool { return true }

// keepsNone is the line that DENY prints.
const keepsNone = "the right was taken back; one that a role gets later, by itself or by a role that it joins, is not denied"

// refusesDenial gives the error of a DENY that no REVOKE can stand for.
func refusesDenial(node *ast.Permission) *fault.Error {
	for _, item := range node.Permissions {
		switch {
		case item.Name == "CONNECT":
			return refused("DENY CONNECT", "pg_hba.conf says which roles may connect, and a daemon lets in the peers that it is paired with")
		case item.Name == "CONTROL", strings.HasPrefix(item.Name, "ALL") && node.On.IsEmpty():
			return refused("DENY "+item.Name, "deny the rights one by one")
		case strings.HasPrefix(item.Name, "VIEW ") && brokerClasses[node.Class] == "":
			return refused("DENY "+item.Name, openCatalog)
		}
		created, creates := strings.CutPrefix(item.Name, "CREATE ")
		if creates && !isBrokerCreation[created] && created != "SCHEMA" {
			return refused("DENY "+item.Name, "a role may create it in a schema on which it has ALTER; deny that")
		}
	}
	return nil
}

// holders begins the question which role still has the right: the role $1 to which it is denied, or one that is its member. Owners and
// superusers have it in any case, as owners and members of sysadmin do in SQL Server. The condition of the right stands behind.
const holders = `select m.rolname from pg_catalog.pg_roles as m
where not m.rolsuper and m.rolname !~ '^pg_' and ($1::text = 'public' or pg_catalog.pg_has_role(m.oid, (
    select r.oid from pg_catalog.pg_roles as r where r.rolname = $1::text), 'member'))
  and `

const firstHolder = ` order by m.rolname = $1::text desc, m.rolname limit 1`

// denied refuses a DENY whose right a role still has. The condition says whether the role m has it; its parameters follow the role.
func (t *Translator) denied(ctx context.Context, g *grant, condition string, parameters ...string) *fault.Error {
	if !g.denies {
		return nil
	}
	holder, err := t.ask(ctx, holders+condition+firstHolder, append([]string{g.role}, parameters...)...)
	switch {
	case err != nil:
		return connection.Fault(err, "DENY")
	case holder == "":
		return nil
	case holder == g.role:
		return refused("DENY "+g.right(), `"`+holder+`" still has the right, by a role that it is a member of, as all roles do, or by the `+
			`grant of another role; revoke it there`)
	case g.role == everyone:
		return refused("DENY "+g.right(), `"`+holder+`" has the right; revoke it first`)
	}
	return refused("DENY "+g.right(), `"`+holder+`", a member of "`+g.role+`", has the right; revoke it first`)
}

// notOwned says that the role m does not have the rights of the owner of an object of a catalog of PostgreSQL.
func notOwned(owner, catalog, object string) string {
	return "not pg_catalog.pg_has_role(m.oid, (select o." + owner + " from pg_catalog." + catalog + " as o where o.oid = " + object +
		"), 'usage')"
}

// heldObject says whether the role m has one of the rights of a word on an object, $2, or on its columns, $3, which the server has quoted.
func heldObject(kind byte, word, columns string) string {
	var parts []string
	for right := range strings.SplitSeq(word, ", ") {
		switch {
		case kind == 'S':
			parts = append(parts, "pg_catalog.has_sequence_privilege(m.oid, $2::text, '"+right+"')")
		case kind != 'r':
			parts = append(parts, "pg_catalog.has_function_privilege(m.oid, $2::text, 'execute')")
		case columns != "":
			parts = append(parts, "exists (select from pg_catalog.pg_attribute as a where a.attrelid = $2::text::regclass and a.attnum > 0"+
				" and strpos(', ' || $3::text || ', ', ', ' || pg_catalog.quote_ident(a.attname) || ', ') > 0"+
				" and pg_catalog.has_column_privilege(m.oid, a.attrelid, a.attnum, '"+right+"'))")
		case right == "delete":
			parts = append(parts, "pg_catalog.has_table_privilege(m.oid, $2::text, 'delete')")
		default:
			parts = append(parts, "pg_catalog.has_any_column_privilege(m.oid, $2::text, '"+right+"')")
		}
	}
	owner := notOwned("relowner", "pg_class", "$2::text::regclass")
	if kind != 'S' && kind != 'r' {
		owner = notOwned("proowner", "pg_proc", "$2::text::regprocedure")
	}
	return owner + " and (" + strings.Join(parts, " or ") + ")"
}

// heldInSchema says whether the role m has a right on an object of the schema $2 that it does not own.
func heldInSchema(word, objects string) string {
	if objects == "tables" {
		return "exists (select from pg_catalog.pg_class as c where c.relnamespace = pg_catalog.quote_ident($2::text)::regnamespace" +
			" and c.relkind in ('r', 'p', 'v', 'm') and pg_catalog.has_table_privilege(m.oid, c.oid, '" + word + "')" +
			" and not pg_catalog.pg_has_role(m.oid, c.relowner, 'usage'))"
	}
	return "exists (select from pg_catalog.pg_proc as p where p.pronamespace = pg_catalog.quote_ident($2::text)::regnamespace" +
		" and pg_catalog.has_function_privilege(m.oid, p.oid, 'execute') and not pg_catalog.pg_has_role(m.oid, p.proowner, 'usage'))"
}

// heldByBroker says whether the role m has the right $4 on the object $3 of the class $2 of the broker: by the permissions that the role
// that denies may see, which are all of an object that it may grant on. Those who administer the broker stand for dbo.
const heldByBroker = `not pg_catalog.pg_has_role(m.oid, (
    select n.nspowner from pg_catalog.pg_namespace as n where n.nspname = 'parley'), 'usage')
  and not pg_catalog.pg_has_role(m.oid, (
    select d.datdba from pg_catalog.pg_database as d where d.datname = pg_catalog.current_database()), 'usage')
  and not coalesce(pg_catalog.pg_has_role(m.oid, case $2::text
    when 'message type' then (select o.principal_id from parley.service_message_types as o where o.name = $3::text)
    when 'contract' then (select o.principal_id from parley.service_contracts as o where o.name = $3::text)
    when 'queue' then (select o.principal_id from parley.service_queues as o where o.name = $3::text)
    when 'service' then (select o.principal_id from parley.services as o where o.name = $3::text)
    when 'route' then (select o.principal_id from parley.routes as o where o.name = $3::text)
    when 'certificate' then (select o.principal_id from parley.certificates as o where o.name = $3::text)
    when 'remote service binding' then (select o.principal_id from parley.remote_service_bindings as o where o.name = $3::text)
  end, 'usage'), false)
  and exists (
    select from parley.permissions as p
    where (p.class = $2::text and ($2::text = 'database' or p.object_name = $3::text) and (p.permission in ($4::text, 'CONTROL')
        or $4::text = 'VIEW DEFINITION' and p.permission = 'ALTER' or p.permission = replace($4::text, 'CREATE ', 'ALTER ANY '))
      or p.class = 'database' and $4::text in ('ALTER', 'VIEW DEFINITION') and (p.permission = 'ALTER ANY ' || upper($2::text)
        or $4::text = 'VIEW DEFINITION' and p.permission = 'VIEW DEFINITION'))
      and (p.grantee = 'PUBLIC' or pg_catalog.pg_has_role(m.oid, (
        select r.oid from pg_catalog.pg_roles as r where r.rolname = p.grantee), 'usage')))`
