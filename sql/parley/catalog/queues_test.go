package catalog_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/sql"
)

func TestBuiltInQueuesAndServices(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	got := sqltest.Values[string](b.Session, `
		select format('%s %s on %s.%s', s.service_id, s.name, q.schema_name, q.name)
		from parley.services as s
		join parley.service_queues as q on q.object_id = s.service_queue_id and q.is_ms_shipped
		order by s.service_id`)
	want := []string{
		"1 http://schemas.microsoft.com/SQL/Notifications/QueryNotificationService on dbo.QueryNotificationErrorsQueue",
		"2 http://schemas.microsoft.com/SQL/Notifications/EventNotificationService on dbo.EventNotificationErrorsQueue",
		"3 http://schemas.microsoft.com/SQL/ServiceBroker/ServiceBroker on dbo.ServiceBrokerQueue",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

const queueSettings = `
	select format('receive %s enqueue %s retention %s poison %s activation %s procedure %s readers %s as %s',
		is_receive_enabled::int, is_enqueue_enabled::int, is_retention_enabled::int, is_poison_message_handling_enabled::int,
		is_activation_enabled::int, coalesce(activation_procedure, '-'), max_readers, coalesce(execute_as_principal_id::text, '-'))
	from parley.service_queues
	where name = 'Q'`

func TestQueueOptionsHaveTheirDefaults(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.create_queue('Q')")
	sqltest.Equal(b.Session, "receive 1 enqueue 1 retention 0 poison 1 activation 0 procedure - readers 0 as -", queueSettings)
}

func TestAlterQueueChangesOnlyWhatIsGiven(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("create procedure public.read() language sql as ''")
	b.Exec("create procedure public.read_too() language sql as ''")
	b.Exec("select parley.create_queue('Q')")
	for _, step := range []struct{ arguments, want string }{
		{"status => false", "receive 0 enqueue 0 retention 0 poison 1 activation 0 procedure - readers 0 as -"},
		{"retention => true", "receive 0 enqueue 0 retention 1 poison 1 activation 0 procedure - readers 0 as -"},
		{"poison_message_handling => false", "receive 0 enqueue 0 retention 1 poison 0 activation 0 procedure - readers 0 as -"},
		{"status => true", "receive 1 enqueue 1 retention 1 poison 0 activation 0 procedure - readers 0 as -"},
		// Adding a procedure does not change the activation status (spec 2.4).
		{"activation_procedure => 'public.read'", "receive 1 enqueue 1 retention 1 poison 0 activation 0 procedure public.read readers 0 as -"},
		{"execute_as => 'OWNER'", "receive 1 enqueue 1 retention 1 poison 0 activation 0 procedure public.read readers 0 as -2"},
		{
			"activation => true, max_queue_readers => 32767",
			"receive 1 enqueue 1 retention 1 poison 0 activation 1 procedure public.read readers 32767 as -2",
		},
		{
			"activation_procedure => 'public.read_too'",
			"receive 1 enqueue 1 retention 1 poison 0 activation 1 procedure public.read_too readers 32767 as -2",
		},
		{"activation => false", "receive 1 enqueue 1 retention 1 poison 0 activation 0 procedure public.read_too readers 32767 as -2"},
	} {
		b.Exec("select parley.alter_queue('Q', " + step.arguments + ")")
		sqltest.Equal(b.Session, step.want, queueSettings)
	}
	b.Exec("select parley.drop_activation('Q')")
	sqltest.Equal(b.Session, "receive 1 enqueue 1 retention 1 poison 0 activation 0 procedure - readers 0 as -", queueSettings)
}

func TestActivationIsOnWhenAProcedureIsGiven(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("create procedure public.read() language sql as ''")
	b.Exec("select parley.create_queue('Q', activation_procedure => 'public.read', max_queue_readers => 2, execute_as => 'SELF')")
	sqltest.Equal(b.Session, true, "select is_activation_enabled from parley.service_queues where name = 'Q'")
	// SELF is stored as the id of the role that ran the statement.
	sqltest.Equal(b.Session, true, `
		select execute_as_principal_id = (select oid from pg_roles where rolname = current_user) from parley.service_queues where name = 'Q'`)
	b.Exec("select parley.create_queue('Off', activation_procedure => 'public.read', execute_as => 'SELF', activation => false)")
	sqltest.Equal(b.Session, false, "select is_activation_enabled from parley.service_queues where name = 'Off'")
}

func TestActivationAsARoleWithAnyName(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	role := b.Role(`odd "role"`)
	b.Exec("create procedure public.read() language sql as ''")
	b.Exec("select parley.create_queue('Q', activation_procedure => 'public.read', max_queue_readers => 1, execute_as => $1)", role)
	sqltest.Equal(b.Session, true, "select execute_as_principal_id = (select oid from pg_roles where rolname = $1) from parley.service_queues where name = 'Q'", role)

	s := b.As(role)
	b.Exec("select parley.grant('CREATE QUEUE', 'database', null, $1)", role)
	s.Exec("select parley.create_queue('Own', activation_procedure => 'public.read', max_queue_readers => 1, execute_as => 'SELF')")
	sqltest.Equal(b.Session, true, "select execute_as_principal_id = (select oid from pg_roles where rolname = $1) from parley.service_queues where name = 'Own'", role)
}

// The procedure is no tracked dependency (spec 2.4).
func TestActivationProcedureMayBeDropped(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("create procedure public.read() language sql as ''")
	b.Exec("select parley.create_queue('Q', activation_procedure => 'public.read', max_queue_readers => 1, execute_as => 'SELF')")
	b.Exec("drop procedure public.read")
	b.Exec("select parley.alter_queue('Q', activation => false)")
}

func TestQueueIsFoundByItsNameInOneToThreeParts(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	database := sqltest.Value[string](b.Session, "select current_database()")
	id := sqltest.Value[int](b.Session, "select parley.create_queue('Q')")
	for _, name := range []string{"Q", "[Q]", `"Q"`, "dbo.Q", "[dbo].[Q]", `dbo."Q"`, database + ".dbo.Q", "[" + database + "].[dbo].[Q]"} {
		sqltest.Equal(b.Session, id, "select parley.listen_for_messages($1)::int", name)
	}
	for _, name := range []string{"q", "DBO.Q", "other.Q", "Q ", "'Q'"} {
		b.Refuses(208, "select parley.listen_for_messages($1)", name)
	}
}

func TestQueuesOfOneNameInTwoSchemasAreTwo(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	one := sqltest.Value[int](b.Session, "select parley.create_queue('sales.Q')")
	two := sqltest.Value[int](b.Session, "select parley.create_queue('Q')")
	// A point inside brackets is no separator.
	three := sqltest.Value[int](b.Session, "select parley.create_queue('[sales.Q]')")
	for name, id := range map[string]int{"sales.Q": one, "[sales].[Q]": one, "Q": two, "[sales.Q]": three, "dbo.[sales.Q]": three} {
		sqltest.Equal(b.Session, id, "select parley.listen_for_messages($1)::int", name)
	}
}

// A name that does not parse to its end must not be taken for the queue that a part of it names.
func TestMalformedQueueNamesAreRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.create_queue('b')")
	for _, name := range []string{"a[b", "[a]b", "[b", `"b`, `a"b`, "a.", ".b", "a..b", "b.", "[a][b]", `""b`, "[]", "", "."} {
		b.Refuses(9609, "select parley.drop_queue($1)", name)
		b.Refuses(9609, "select parley.create_queue($1)", name)
	}
	// An empty name is none; brackets around it would be none either.
	if got := b.Refuses(9609, "select parley.create_queue('')"); got.Hint != "Write queue, schema.queue or [schema].[queue]." {
		t.Errorf("hint %q", got.Hint)
	}
}

func TestDroppedQueueIsGone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	const countOfRelations = "select count(*) from pg_class where relnamespace::regnamespace::text = any ($1)"
	before := sqltest.Value[int](b.Session, countOfRelations, sql.Wings()[0].Schemas())
	b.Exec("select parley.create_queue('Q')")
	b.Exec("select parley.drop_queue('Q')")
	b.Refuses(208, "select parley.receive('Q')")
	sqltest.Equal(b.Session, before, countOfRelations, sql.Wings()[0].Schemas())
	b.Exec("select parley.create_queue('Q')")
}

// A statement that waits for ever holds its locks for ever: neither may wait for the other.
func TestDropQueueFailsItsWaitingReaders(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('Q')")
	receiving := b.Waiting("select parley.receive('Q', timeout => -1)")
	searching := b.Waiting("select parley.get_conversation_group('Q', timeout => -1)")
	b.Exec("select parley.drop_queue('Q')")
	receiving.RequireRefusal(208)
	searching.RequireRefusal(208)
	// A sequence that the readers still held goes with the next queue.
	b.Exec("select parley.create_queue('Next')")
	b.Exec("select parley.drop_queue('Next')")
	sqltest.Equal(b.Session, 0, `
		select count(*) from pg_class as c
		where c.relname like '\_p\_queue\_%' and c.relkind = 'S'
			and not exists (select from parley.service_queues as q where starts_with(c.relname, format('_p_queue_%s_', q.object_id)))`)
}
