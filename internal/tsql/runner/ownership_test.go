package runner_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// ALTER AUTHORIZATION gives each kind of object to another role, and to the owner of its schema.
func TestObjectsAreGivenToAnotherRole(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	named, config := roles(t, pool, "anna")
	play := open(t, pool.Config().ConnConfig)
	expect(t, "the objects", play(`CREATE TABLE item (n int)
GO
CREATE VIEW items AS SELECT n FROM item
GO
CREATE PROCEDURE look AS PRINT 'looked'
GO
CREATE FUNCTION one() RETURNS int AS BEGIN RETURN 1 END
GO
CREATE SEQUENCE numbers AS int
CREATE TYPE short FROM varchar(10)
CREATE QUEUE q`), "")
	owners := func() string {
		t.Helper()
		var list string
		if err := pool.QueryRow(t.Context(), `select string_agg(distinct k.owner::regrole::text, ' ') from (
  select c.relowner as owner from pg_class as c where c.relnamespace = 'dbo'::regnamespace and c.relkind in ('r', 'v', 'S')
  union all select p.proowner from pg_proc as p where p.pronamespace = 'dbo'::regnamespace
  union all select t.typowner from pg_type as t where t.typnamespace = 'dbo'::regnamespace and t.typtype = 'd'
  union all select q.principal_id from parley.service_queues as q where q.name = 'q'
) as k`).Scan(&list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	all := func(role string) string {
		return `ALTER AUTHORIZATION ON item TO ` + role + `
ALTER AUTHORIZATION ON OBJECT::dbo.items TO ` + role + `
ALTER AUTHORIZATION ON OBJECT::LOOK TO ` + role + `
ALTER AUTHORIZATION ON dbo.one TO ` + role + `
ALTER AUTHORIZATION ON numbers TO ` + role + `
ALTER AUTHORIZATION ON TYPE::dbo.Short TO ` + role + `
ALTER AUTHORIZATION ON OBJECT::dbo.q TO ` + role
	}
	was := owners()
	expect(t, "they are given", play(named(all("[@anna@]"))), "")
	if got, want := owners(), named("@anna@"); got != want {
		t.Fatalf("the objects have the owners %q, want %q", got, want)
	}
	expect(t, "what their owner may", script(t, config("anna"), "ALTER TABLE item ADD m int\nPRINT 'altered'"), "altered")
	expect(t, "they come back", play(all("SCHEMA OWNER")), "")
	if got := owners(); got != was {
		t.Fatalf("the objects have the owners %q, want those of before: %q", got, was)
	}
	expect(t, "another role gives nothing away", script(t, config("anna"), named("ALTER AUTHORIZATION ON item TO [@anna@]")),
		"Msg 15151, Level 16, State 1, Line 1\nCannot find the object 'item', because it does not exist or you do not have permission.")
	expect(t, "nor a schema", script(t, config("anna"), named("ALTER AUTHORIZATION ON SCHEMA::dbo TO [@anna@]")),
		"Msg 15151, Level 16, State 1, Line 1\nCannot find the schema 'dbo', because it does not exist or you do not have permission.")
	expect(t, "there is none", play("ALTER AUTHORIZATION ON nothing TO dbo"),
		"Msg 15151, Level 16, State 1, Line 1\nCannot find the object 'nothing', because it does not exist or you do not have permission.")
	expect(t, "there is no type", play("ALTER AUTHORIZATION ON TYPE::nothing TO dbo"),
		"Msg 15151, Level 16, State 1, Line 1\nCannot find the type 'nothing', because it does not exist or you do not have permission.")
}
