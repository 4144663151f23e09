package security

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// Whether the role $1 may grant one of the rights $3, with commas between, that it holds on the object $2: of a table or sequence, also
// on the columns of it that $4 lists; of a procedure or function; of an object of the broker, whose class is $4.
const (
	grantsOnTable = `select 'yes' from (
    select c.oid, a.* from pg_catalog.pg_class as c cross join lateral pg_catalog.aclexplode(c.relacl) as a
    union all
    select t.attrelid, a.* from pg_catalog.pg_attribute as t cross join lateral pg_catalog.aclexplode(t.attacl) as a
    where strpos(', ' || $4::text || ', ', ', ' || pg_catalog.quote_ident(t.attname) || ', ') > 0
  ) as a
where a.oid = $2::text::regclass` + grantedToRole
	grantsOnFunction = `select 'yes' from pg_catalog.pg_proc as p cross join lateral pg_catalog.aclexplode(p.proacl) as a
where p.oid = $2::text::regprocedure and $4::text = ''` + grantedToRole
	grantedToRole = `
  and a.is_grantable and a.grantee = (select r.oid from pg_catalog.pg_roles as r where r.rolname = $1::text)
  and a.privilege_type = any (string_to_array(upper($3::text), ', ')) limit 1`
	grantsOnBroker = `select 'yes' from parley.permissions as p
where p.class = $4::text and p.object_name = $2::text and p.permission = $3::text and p.grantee = $1::text and p.is_grantable limit 1`
)

// needsCascade gives error 4611 where REVOKE or DENY takes back a right that its holder may grant, and does not say CASCADE.
func (t *Translator) needsCascade(ctx context.Context, g *grant, query, object, rights, where string) *fault.Error {
	if g.node.Verb == "GRANT" || g.node.Cascade {
		return nil
	}
	found, err := t.ask(ctx, query, g.role, object, rights, where)
	switch {
	case err != nil:
		return connection.Fault(err, g.node.Verb)
	case found != "":
		return fault.New(4611)
	}
	return nil
}
