package diagnosis_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestActionsOfOperatorsAreSeenByTheirRoleAndByAdministrators(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	alice, bob := b.As(b.Role("alice")), b.As(b.Role("bob"))
	alice.Exec("select parley.record_operator_action('switch off', array['orders'])")
	bob.Exec("select parley.record_operator_action('put back', array(select n::text from generate_series(1, 150) as n), '{\"done\":150}')")
	sqltest.Equal(alice, "switch off", "select string_agg(a.operation, ',') from parley.operator_actions as a")
	sqltest.Equal(bob, "put back", "select string_agg(a.operation, ',') from parley.operator_actions as a")
	sqltest.Equal(b.Session, 2, "select count(*) from parley.operator_actions")
	sqltest.Equal(b.Session, 150, "select max(a.object_count) from parley.operator_actions as a")
	sqltest.Equal(b.Session, 100, "select max(cardinality(a.objects)) from parley.operator_actions as a")
	alice.Refuses(8402, "select parley.record_operator_action(repeat('x', 201), '{}')")
	alice.Refuses(8402, "select parley.record_operator_action('x', array_fill('x'::text, array[10001]))")
	alice.Refuses(8402, "select parley.record_operator_action('x', '{}', to_jsonb((select string_agg(md5(n::text), '') from generate_series(1, 400) as n)))")
}

func TestActionsOfOperatorsAreForgottenByAgeAndByTheirNumberForEachRole(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	alice, bob := b.As(b.Role("alice")), b.As(b.Role("bob"))
	bob.Exec("select parley.record_operator_action('older than all', null)")
	alice.Exec("select parley.record_operator_action('old', null)")
	b.Exec("update parley._p_operator_action set done_at = clock_timestamp() - interval '91 days' where operation = 'old'")
	b.Exec(`
		insert into parley._p_operator_action (role_name, operation, object_count, objects)
		select a.role_name, 'many', 0, '{}'
		from parley._p_operator_action as a
		cross join generate_series(1, 10001)
		where a.operation = 'old'`)
	alice.Exec("select parley.record_operator_action('new', null)")
	sqltest.Equal(b.Session, 10000, "select count(*) from parley.operator_actions as a where a.operation in ('old', 'many', 'new')")
	sqltest.Equal(b.Session, 1, "select count(*) from parley.operator_actions as a where a.operation = 'new'")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.operator_actions as a where a.operation = 'old'")
	sqltest.Equal(b.Session, 1, "select count(*) from parley.operator_actions as a where a.operation = 'older than all'")
}
