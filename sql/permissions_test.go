package sql_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// right is a permission on an object, as parley.grant takes it.
type right struct{ permission, class, object string }

func (s session) grant(r right, grantee string) {
	s.Helper()
	s.exec("select parley.grant($1, $2, nullif($3, ''), $4)", r.permission, r.class, r.object, grantee)
}

func (s session) revoke(r right, grantee string) {
	s.Helper()
	s.exec("select parley.revoke($1, $2, nullif($3, ''), $4)", r.permission, r.class, r.object, grantee)
}

// try runs a statement and undoes it.
func (s session) try(statement string) error {
	s.Helper()
	s.exec("begin")
	_, err := s.db.Exec(s.Context(), statement)
	s.exec("rollback")
	return err
}

func (s session) requireAllowed(statement string) {
	s.Helper()
	if err := s.try(statement); err != nil {
		s.Errorf("%s: %s", clip(statement), describe(err))
	}
}

func (s session) requireDenied(statement string) {
	s.Helper()
	err := s.try(statement)
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.Code != sqlState(229) {
		s.Errorf("%s: got %v, want a refusal", clip(statement), err)
	}
}

var (
	createMessageType = right{"CREATE MESSAGE TYPE", "database", ""}
	createContract    = right{"CREATE CONTRACT", "database", ""}
	createQueue       = right{"CREATE QUEUE", "database", ""}
	createService     = right{"CREATE SERVICE", "database", ""}
	receiveAsking     = right{"RECEIVE", "queue", "Asking"}
	referenceAsking   = right{"REFERENCES", "queue", "Asking"}
	referenceWork     = right{"REFERENCES", "contract", "//test/Work"}
	referenceNote     = right{"REFERENCES", "message type", note}
)

const permissionScene = scene + `
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
	rights    []right
}{
	{`select parley.create_message_type('//new')`, []right{createMessageType}},
	{`select parley.create_message_type('//new')`, []right{{"ALTER ANY MESSAGE TYPE", "database", ""}}},
	{`select parley.create_contract('//new', '{"//test/Note": "ANY"}')`, []right{createContract, referenceNote}},
	{`select parley.create_contract('//new', array['//test/Note'])`, []right{{"ALTER ANY CONTRACT", "database", ""}, referenceNote}},
	{`select parley.create_queue('New')`, []right{createQueue}},
	{`select parley.create_queue('New')`, []right{{"ALTER ANY QUEUE", "database", ""}}},
	{`select parley.create_service('//new', 'Asking', array['//test/Work'])`, []right{createService, referenceAsking, referenceWork}},
	{`select parley.create_service('//new', 'Asking')`, []right{{"ALTER ANY SERVICE", "database", ""}, {"CONTROL", "queue", "Asking"}}},

	{`select parley.alter_message_type('//test/Unused', 'JSON')`, []right{{"ALTER", "message type", "//test/Unused"}}},
	{`select parley.alter_message_type('//test/Unused', 'JSON')`, []right{{"ALTER ANY MESSAGE TYPE", "database", ""}}},
	{`select parley.drop_message_type('//test/Unused')`, []right{{"CONTROL", "message type", "//test/Unused"}}},
	{`select parley.drop_contract('//test/Unused')`, []right{{"CONTROL", "contract", "//test/Unused"}}},
	{`select parley.alter_queue('Unused', retention => true)`, []right{{"ALTER", "queue", "Unused"}}},
	{`select parley.alter_queue('Unused', retention => true)`, []right{{"ALTER ANY QUEUE", "database", ""}}},
	{`select parley.drop_activation('Unused')`, []right{{"ALTER", "queue", "Unused"}}},
	{`select parley.drop_queue('Unused')`, []right{{"CONTROL", "queue", "Unused"}}},
	{
		`select parley.alter_service('//test/Unused', 'Answering', array['//test/Work'])`,
		[]right{{"ALTER", "service", "//test/Unused"}, {"REFERENCES", "queue", "Answering"}, referenceWork},
	},
	{`select parley.drop_service('//test/Unused')`, []right{{"CONTROL", "service", "//test/Unused"}}},
	{
		`select parley.alter_authorization('queue', 'Unused', (select role from public.own))`,
		[]right{{"TAKE OWNERSHIP", "queue", "Unused"}},
	},
	{
		`select parley.alter_authorization('service', '//test/Unused', (select role from public.own))`,
		[]right{{"CONTROL", "service", "//test/Unused"}},
	},

	{`select parley.create_route('new', 'tcp://far:4022')`, []right{{"CREATE ROUTE", "database", ""}}},
	{`select parley.create_route('new', 'tcp://far:4022')`, []right{{"ALTER ANY ROUTE", "database", ""}}},
	{`select parley.alter_route('Unused', lifetime => 60)`, []right{{"ALTER", "route", "Unused"}}},
	{`select parley.alter_route('Unused', lifetime => 60)`, []right{{"ALTER ANY ROUTE", "database", ""}}},
	{`select parley.drop_route('Unused')`, []right{{"CONTROL", "route", "Unused"}}},
	{
		`select parley.alter_authorization('route', 'Unused', (select role from public.own))`,
		[]right{{"TAKE OWNERSHIP", "route", "Unused"}},
	},

	{`select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work')`, []right{receiveAsking, referenceWork}},
	{`select parley.begin_dialog('//test/Asker', '//test/Answerer')`, []right{receiveAsking}},
	{`select parley.send(public.h('new'), '//test/Request', 'x')`, []right{receiveAsking}},
	{`select parley.send(public.h('talking'), '//test/Request', 'x')`, []right{receiveAsking}},
	{`select parley.send(public.h('talking'), '//test/Request', 'x')`, []right{{"CONTROL", "queue", "Asking"}}},
	{`select parley.send(public.h('talking'), '//test/Note', 'x'::bytea)`, []right{receiveAsking}},
	{`select parley.send_to_all(array[public.h('talking'), public.h('new')], '//test/Request', 'x')`, []right{receiveAsking}},
	{`select parley.send_batch(public.h('talking'), '//test/Request', array['x', 'y'])`, []right{receiveAsking}},
	{`select parley.send(public.h('far talking'), '//test/Reply', 'x')`, []right{{"RECEIVE", "queue", "Answering"}}},
	{`select parley.receive('Asking')`, []right{receiveAsking}},
	{`select parley.receive('Asking', 0)`, []right{receiveAsking}},
	{`select parley.receive('Asking', conversation_handle => public.h('talking'))`, []right{receiveAsking}},
	{`select parley.get_conversation_group('Asking')`, []right{receiveAsking}},
	{`select parley.get_conversation_groups('Asking', 2)`, []right{receiveAsking}},
	{`select parley.listen_for_messages('Asking')`, []right{receiveAsking}},
	{`select parley.queue_contents('Asking')`, []right{receiveAsking}},
	{`select parley.peek('Asking')`, []right{receiveAsking}},
	{`select * from parley_queue."Asking"`, []right{receiveAsking}},
	{`select parley.end_conversation(public.h('talking'))`, []right{receiveAsking}},
	{`select parley.end_conversation(public.h('talking'), 1, 'no')`, []right{receiveAsking}},
	{`select parley.begin_conversation_timer(public.h('talking'), 1)`, []right{receiveAsking}},
	{
		`select parley.move_conversation(public.h('talking'), (select conversation_group_id from parley._groups where name = 'new'))`,
		[]right{receiveAsking},
	},
}

func TestStatementsNeedTheirRights(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(permissionScene)
	// The handles are an ordinary role's to know, the groups are not.
	b.exec(`create table parley._groups as
		select c.name, e.conversation_group_id from public.c join parley.conversation_endpoints as e on e.conversation_handle = c.handle`)
	b.exec("grant select on parley._groups to public")
	role := b.role("ordinary")
	b.exec("insert into public.own values ($1)", role)
	ordinary := b.as(role)
	for _, c := range statementRights {
		t.Run(c.statement, func(t *testing.T) {
			admin, ordinary := session{T: t, db: b.db}, session{T: t, db: ordinary.db}
			ordinary.requireDenied(c.statement)
			for _, r := range c.rights {
				admin.grant(r, role)
			}
			ordinary.requireAllowed(c.statement)
			for _, r := range c.rights {
				admin.revoke(r, role)
				ordinary.requireDenied(c.statement)
				admin.grant(r, role)
			}
			ordinary.requireAllowed(c.statement)
			for _, r := range c.rights {
				admin.revoke(r, role)
			}
		})
	}
}

func TestAdministratorsMayDoEverything(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(permissionScene)
	owner := b.role("owner")
	member := b.role("member")
	database := value[string](b.session, "select current_database()")
	b.exec("alter database " + quote(database) + " owner to " + quote(owner))
	b.exec("grant " + quote(owner) + " to " + quote(member))
	b.afterwards("alter database " + quote(database) + " owner to current_user")
	b.exec("insert into public.own values ($1)", owner)
	for _, role := range []string{owner, member} {
		s := b.as(role)
		for _, c := range statementRights {
			if c.rights[0].permission != "TAKE OWNERSHIP" && !slices.Contains(c.rights, right{"CONTROL", "service", "//test/Unused"}) {
				continue
			}
			s.requireAllowed(c.statement)
		}
		for _, statement := range []string{
			"select parley.create_broker_priority('New')",
			"select parley.receive('Asking')",
			"select parley.end_conversation(public.h('talking'), cleanup => true)",
			"select parley.end_conversation(public.h('far closed'), cleanup => true)",
			"select parley.grant('SEND', 'service', '//test/Asker', 'PUBLIC')",
		} {
			s.requireAllowed(statement)
		}
	}
}

func TestOwnersHoldAllRightsOnTheirObjects(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(permissionScene)
	role := b.role("ordinary")
	b.exec("insert into public.own values ($1)", role)
	b.exec("select parley.alter_authorization('message type', '//test/Unused', $1)", role)
	b.exec("select parley.alter_authorization('contract', '//test/Unused', $1)", role)
	b.exec("select parley.alter_authorization('queue', 'Unused', $1)", role)
	b.exec("select parley.alter_authorization('service', '//test/Unused', $1)", role)
	s := b.as(role)
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
		s.requireAllowed(statement)
	}
	// Of others' they hold none.
	s.requireDenied("select parley.alter_queue('Asking', status => false)")
}

func TestCreatorOwnsWhatHeCreates(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	role, other := b.role("creator"), b.role("other")
	b.grant(createQueue, role)
	s := b.as(role)
	s.exec("select parley.create_queue('Mine')")
	s.exec("select parley.receive('Mine')")
	s.exec("select parley.alter_queue('Mine', retention => true)")
	s.exec("select parley.grant('RECEIVE', 'queue', 'Mine', $1)", other)
	b.as(other).exec("select parley.receive('Mine')")

	// Others may be named as owner only by who is their member (spec 2.0).
	s.refuses(15151, `select parley.create_queue('Yours', "authorization" => $1)`, other)
	s.refuses(15151, "select parley.alter_authorization('queue', 'Mine', $1)", other)
	b.exec("grant " + quote(other) + " to " + quote(role))
	s.exec(`select parley.create_queue('Yours', "authorization" => $1)`, other)
	s.exec("select parley.alter_authorization('queue', 'Mine', $1)", other)
}

func TestPrivateTablesAndFunctionsAreOutOfReach(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(permissionScene)
	s := b.as(b.role("ordinary"))
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
		_, err := s.db.Exec(t.Context(), statement)
		var refusal *pgconn.PgError
		if !errors.As(err, &refusal) || refusal.Code != "42501" {
			t.Errorf("%s: got %v, want permission denied", statement, err)
		}
	}
}
