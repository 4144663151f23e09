package rights_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

var (
	createMessageType = sqltest.RightTo("CREATE MESSAGE TYPE", "database", "")
	createContract    = sqltest.RightTo("CREATE CONTRACT", "database", "")
	createQueue       = sqltest.RightTo("CREATE QUEUE", "database", "")
	createService     = sqltest.RightTo("CREATE SERVICE", "database", "")
	receiveAsking     = sqltest.RightTo("RECEIVE", "queue", "Asking")
	referenceAsking   = sqltest.RightTo("REFERENCES", "queue", "Asking")
	referenceWork     = sqltest.RightTo("REFERENCES", "contract", "//test/Work")
	referenceNote     = sqltest.RightTo("REFERENCES", "message type", sqltest.Note)
)

const permissionScene = sqltest.Scene + `
	select parley.create_message_type('//test/Unused');
	select parley.create_contract('//test/Unused', '{"//test/Note": "ANY"}');
	select parley.create_queue('Unused');
	select parley.create_service('//test/Unused', 'Asking');
	select parley.create_route('Unused', 'tcp://far:4022', '//test/Unused');
	select parley.send(public.h('far talking'), '//test/Reply', 'x');
	create table public.own (role name);
	grant all on public.own to public;
`

// Rights per statement (spec 7.7): with all of them it works, with any one missing it is refused.
var statementRights = []struct {
	statement string
	rights    []sqltest.Right
}{
	{`select parley.create_message_type('//new')`, []sqltest.Right{createMessageType}},
	{`select parley.create_message_type('//new')`, []sqltest.Right{sqltest.RightTo("ALTER ANY MESSAGE TYPE", "database", "")}},
	{`select parley.create_contract('//new', '{"//test/Note": "ANY"}')`, []sqltest.Right{createContract, referenceNote}},
	{`select parley.create_contract('//new', array['//test/Note'])`, []sqltest.Right{sqltest.RightTo("ALTER ANY CONTRACT", "database", ""), referenceNote}},
	{`select parley.create_queue('New')`, []sqltest.Right{createQueue}},
	{`select parley.create_queue('New')`, []sqltest.Right{sqltest.RightTo("ALTER ANY QUEUE", "database", "")}},
	{`select parley.create_service('//new', 'Asking', array['//test/Work'])`, []sqltest.Right{createService, referenceAsking, referenceWork}},
	{`select parley.create_service('//new', 'Asking')`, []sqltest.Right{sqltest.RightTo("ALTER ANY SERVICE", "database", ""), sqltest.RightTo("CONTROL", "queue", "Asking")}},

	{`select parley.alter_message_type('//test/Unused', 'JSON')`, []sqltest.Right{sqltest.RightTo("ALTER", "message type", "//test/Unused")}},
	{`select parley.alter_message_type('//test/Unused', 'JSON')`, []sqltest.Right{sqltest.RightTo("ALTER ANY MESSAGE TYPE", "database", "")}},
	{`select parley.drop_message_type('//test/Unused')`, []sqltest.Right{sqltest.RightTo("CONTROL", "message type", "//test/Unused")}},
	{`select parley.drop_contract('//test/Unused')`, []sqltest.Right{sqltest.RightTo("CONTROL", "contract", "//test/Unused")}},
	{`select parley.alter_queue('Unused', retention => true)`, []sqltest.Right{sqltest.RightTo("ALTER", "queue", "Unused")}},
	{`select parley.alter_queue('Unused', retention => true)`, []sqltest.Right{sqltest.RightTo("ALTER ANY QUEUE", "database", "")}},
	{`select parley.drop_activation('Unused')`, []sqltest.Right{sqltest.RightTo("ALTER", "queue", "Unused")}},
	{`select parley.drop_queue('Unused')`, []sqltest.Right{sqltest.RightTo("CONTROL", "queue", "Unused")}},
	{
		`select parley.alter_service('//test/Unused', 'Answering', array['//test/Work'])`,
		[]sqltest.Right{sqltest.RightTo("ALTER", "service", "//test/Unused"), sqltest.RightTo("REFERENCES", "queue", "Answering"), referenceWork},
	},
	{`select parley.drop_service('//test/Unused')`, []sqltest.Right{sqltest.RightTo("CONTROL", "service", "//test/Unused")}},
	{
		`select parley.alter_authorization('queue', 'Unused', (select role from public.own))`,
		[]sqltest.Right{sqltest.RightTo("TAKE OWNERSHIP", "queue", "Unused")},
	},
	{
		`select parley.alter_authorization('service', '//test/Unused', (select role from public.own))`,
		[]sqltest.Right{sqltest.RightTo("CONTROL", "service", "//test/Unused")},
	},

	{`select parley.create_route('new', 'tcp://far:4022')`, []sqltest.Right{sqltest.RightTo("CREATE ROUTE", "database", "")}},
	{`select parley.create_route('new', 'tcp://far:4022')`, []sqltest.Right{sqltest.RightTo("ALTER ANY ROUTE", "database", "")}},
	{`select parley.alter_route('Unused', lifetime => 60)`, []sqltest.Right{sqltest.RightTo("ALTER", "route", "Unused")}},
	{`select parley.alter_route('Unused', lifetime => 60)`, []sqltest.Right{sqltest.RightTo("ALTER ANY ROUTE", "database", "")}},
	{`select parley.drop_route('Unused')`, []sqltest.Right{sqltest.RightTo("CONTROL", "route", "Unused")}},
	{
		`select parley.alter_authorization('route', 'Unused', (select role from public.own))`,
		[]sqltest.Right{sqltest.RightTo("TAKE OWNERSHIP", "route", "Unused")},
	},

	{`select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work')`, []sqltest.Right{receiveAsking, referenceWork}},
	{`select parley.begin_dialog('//test/Asker', '//test/Answerer')`, []sqltest.Right{receiveAsking}},
	{`select parley.send(public.h('new'), '//test/Request', 'x')`, []sqltest.Right{receiveAsking}},
	{`select parley.send(public.h('talking'), '//test/Request', 'x')`, []sqltest.Right{receiveAsking}},
	{`select parley.send(public.h('talking'), '//test/Request', 'x')`, []sqltest.Right{sqltest.RightTo("CONTROL", "queue", "Asking")}},
	{`select parley.send(public.h('talking'), '//test/Note', 'x'::bytea)`, []sqltest.Right{receiveAsking}},
	{`select parley.send_to_all(array[public.h('talking'), public.h('new')], '//test/Request', 'x')`, []sqltest.Right{receiveAsking}},
	{`select parley.send_batch(public.h('talking'), '//test/Request', array['x', 'y'])`, []sqltest.Right{receiveAsking}},
	{`select parley.send(public.h('far talking'), '//test/Reply', 'x')`, []sqltest.Right{sqltest.RightTo("RECEIVE", "queue", "Answering")}},
	{`select parley.receive('Asking')`, []sqltest.Right{receiveAsking}},
	{`select parley.receive('Asking', 0)`, []sqltest.Right{receiveAsking}},
	{`select parley.receive('Asking', conversation_handle => public.h('talking'))`, []sqltest.Right{receiveAsking}},
	{`select parley.get_conversation_group('Asking')`, []sqltest.Right{receiveAsking}},
	{`select parley.get_conversation_groups('Asking', 2)`, []sqltest.Right{receiveAsking}},
	{`select parley.listen_for_messages('Asking')`, []sqltest.Right{receiveAsking}},
	{`select parley.queue_contents('Asking')`, []sqltest.Right{receiveAsking}},
	{`select parley.peek('Asking')`, []sqltest.Right{receiveAsking}},
	{`select * from parley_queue."Asking"`, []sqltest.Right{receiveAsking}},
	{`select parley.end_conversation(public.h('talking'))`, []sqltest.Right{receiveAsking}},
	{`select parley.end_conversation(public.h('talking'), 1, 'no')`, []sqltest.Right{receiveAsking}},
	{`select parley.begin_conversation_timer(public.h('talking'), 1)`, []sqltest.Right{receiveAsking}},
	{
		`select parley.move_conversation(public.h('talking'), (select conversation_group_id from parley._groups where name = 'new'))`,
		[]sqltest.Right{receiveAsking},
	},
}

func TestStatementsNeedTheirRights(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(permissionScene)
	// The handles are an ordinary role's to know, the groups are not.
	b.Exec(`create table parley._groups as
		select c.name, e.conversation_group_id from public.c join parley.conversation_endpoints as e on e.conversation_handle = c.handle`)
	b.Exec("grant select on parley._groups to public")
	role := b.Role("ordinary")
	b.Exec("insert into public.own values ($1)", role)
	ordinary := b.As(role)
	for _, c := range statementRights {
		t.Run(c.statement, func(t *testing.T) {
			admin, ordinary := sqltest.Session{T: t, DB: b.DB}, sqltest.Session{T: t, DB: ordinary.DB}
			ordinary.RequireDenied(c.statement)
			for _, r := range c.rights {
				admin.Grant(r, role)
			}
			ordinary.RequireAllowed(c.statement)
			for _, r := range c.rights {
				admin.Revoke(r, role)
				ordinary.RequireDenied(c.statement)
				admin.Grant(r, role)
			}
			ordinary.RequireAllowed(c.statement)
			for _, r := range c.rights {
				admin.Revoke(r, role)
			}
		})
	}
}

func TestAdministratorsMayDoEverything(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(permissionScene)
	owner := b.Role("owner")
	member := b.Role("member")
	database := sqltest.Value[string](b.Session, "select current_database()")
	b.Exec("alter database " + sqltest.Quote(database) + " owner to " + sqltest.Quote(owner))
	b.Exec("grant " + sqltest.Quote(owner) + " to " + sqltest.Quote(member))
	b.Afterwards("alter database " + sqltest.Quote(database) + " owner to current_user")
	b.Exec("insert into public.own values ($1)", owner)
	for _, role := range []string{owner, member} {
		s := b.As(role)
		for _, c := range statementRights {
			if c.rights[0].Permission != "TAKE OWNERSHIP" && !slices.Contains(c.rights, sqltest.RightTo("CONTROL", "service", "//test/Unused")) {
				continue
			}
			s.RequireAllowed(c.statement)
		}
		for _, statement := range []string{
			"select parley.create_broker_priority('New')",
			"select parley.receive('Asking')",
			"select parley.end_conversation(public.h('talking'), cleanup => true)",
			"select parley.end_conversation(public.h('far closed'), cleanup => true)",
			"select parley.grant('SEND', 'service', '//test/Asker', 'PUBLIC')",
		} {
			s.RequireAllowed(statement)
		}
	}
}

func TestOwnersHoldAllRightsOnTheirObjects(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(permissionScene)
	role := b.Role("ordinary")
	b.Exec("insert into public.own values ($1)", role)
	b.Exec("select parley.alter_authorization('message type', '//test/Unused', $1)", role)
	b.Exec("select parley.alter_authorization('contract', '//test/Unused', $1)", role)
	b.Exec("select parley.alter_authorization('queue', 'Unused', $1)", role)
	b.Exec("select parley.alter_authorization('service', '//test/Unused', $1)", role)
	s := b.As(role)
	for _, statement := range []string{
		"select parley.alter_message_type('//test/Unused', 'JSON')",
		"select parley.drop_message_type('//test/Unused')",
		"select parley.drop_contract('//test/Unused')",
		"select parley.alter_queue('Unused', status => false)",
		"select parley.receive('Unused')",
		"select parley.drop_queue('Unused')",
		"select parley.alter_service('//test/Unused', 'Unused', array['//test/Unused'])",
		"select parley.drop_service('//test/Unused')",
		"select parley.grant('SEND', 'service', '//test/Unused', 'PUBLIC')",
		"select parley.revoke('SEND', 'service', '//test/Unused', 'PUBLIC')",
	} {
		s.RequireAllowed(statement)
	}
	// Of others' they hold none.
	s.RequireDenied("select parley.alter_queue('Asking', status => false)")
}

func TestCreatorOwnsWhatHeCreates(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role, other := b.Role("creator"), b.Role("other")
	b.Grant(createQueue, role)
	s := b.As(role)
	s.Exec("select parley.create_queue('Mine')")
	s.Exec("select parley.receive('Mine')")
	s.Exec("select parley.alter_queue('Mine', retention => true)")
	s.Exec("select parley.grant('RECEIVE', 'queue', 'Mine', $1)", other)
	b.As(other).Exec("select parley.receive('Mine')")

	// Others may be named as owner only by who is their member (spec 2.0).
	s.Refuses(15151, `select parley.create_queue('Yours', "authorization" => $1)`, other)
	s.Refuses(15151, "select parley.alter_authorization('queue', 'Mine', $1)", other)
	b.Exec("grant " + sqltest.Quote(other) + " to " + sqltest.Quote(role))
	s.Exec(`select parley.create_queue('Yours', "authorization" => $1)`, other)
	s.Exec("select parley.alter_authorization('queue', 'Mine', $1)", other)
}

func TestPrivateTablesAndFunctionsAreOutOfReach(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(permissionScene)
	s := b.As(b.Role("ordinary"))
	for _, statement := range []string{
		"select * from parley._p_message",
		"select * from parley._p_endpoint",
		"insert into parley._p_permission select 'queue', 1, 'CONTROL', current_user::regrole, current_user::regrole, true",
		"select parley._p_send(0, public.h('talking'), '//test/Request', array[''::bytea])",
		"select parley._p_receive_group(1, 1, null, null)",
		"select parley._p_raise_in_use()",
		"select nextval('parley._p_object_id')",
		"select setval('parley._p_next_alarm', 1)",
		"create table parley.mine ()",
		"create view parley_queue.mine as select 1",
	} {
		_, err := s.DB.Exec(t.Context(), statement)
		var refusal *pgconn.PgError
		if !errors.As(err, &refusal) || refusal.Code != "42501" {
			t.Errorf("%s: got %v, want permission denied", statement, err)
		}
	}
}
