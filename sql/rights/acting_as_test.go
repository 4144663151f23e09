package rights_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

func requireNoReader(s sqltest.Session, queueID int) {
	s.Helper()
	_, err := s.DB.Exec(s.Context(), "select parley._p_require_reader($1)", queueID)
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || refused.Code != "42501" {
		s.Errorf("a reader may be started: got %v, want SQLSTATE 42501", err)
	}
}

// A queue of an owner, which runs a procedure as that owner, and a role that may ALTER it and is no member of anything.
func activatedQueue(t *testing.T) (b *sqltest.Broker, owner, mallory string) {
	t.Helper()
	b = sqltest.NewWorld(t)
	owner, mallory = b.Role("owner"), b.Role("mallory")
	b.Exec("create procedure public.read() language sql as ''; create procedure public.steal() language sql as ''")
	b.Exec("select parley.create_queue('Own', \"authorization\" => $1)", owner)
	o := b.As(owner)
	o.Exec("select parley.alter_queue('Own', activation_procedure => 'public.read', execute_as => 'OWNER', max_queue_readers => 1, activation => true)")
	b.Grant(sqltest.RightTo("ALTER", "queue", "Own"), mallory)
	b.Exec("select parley.create_service('//test/Own', 'Own')")
	return b, owner, mallory
}

func TestWhoMayActAsWhomIsTheSameOnEveryVersion(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	group, member, outsider, super := b.Role("group"), b.Role("member"), b.Role("outsider"), b.Role("super")
	b.Exec("grant " + sqltest.Quote(group) + " to " + sqltest.Quote(member))
	b.Exec("alter role " + sqltest.Quote(super) + " superuser")
	const query = `
		select parley._p_may_act_as((select oid from pg_roles where rolname = $1), (select oid from pg_roles where rolname = $2))`
	for _, pair := range []struct {
		caller, role string
		may          bool
	}{
		{member, group, true},
		{group, member, false},
		{member, member, true},
		{outsider, group, false},
		{super, group, true},
		{"no such role", group, false},
		{super, "no such role", false},
	} {
		sqltest.Equal(b.Session, pair.may, query, pair.caller, pair.role)
	}
	// A role that is gone is no member of itself.
	sqltest.Equal(b.Session, false, "select parley._p_may_act_as(4294967295, 4294967295)")
	if sqltest.Value[int](b.Session, "select current_setting('server_version_num')::integer") < 160000 {
		return
	}
	b.Exec("grant " + sqltest.Quote(group) + " to " + sqltest.Quote(member) + " with set false")
	sqltest.Equal(b.Session, false, query, member, group)
	b.Exec("grant " + sqltest.Quote(group) + " to " + sqltest.Quote(member) + " with set true, inherit false")
	sqltest.Equal(b.Session, true, query, member, group)
}

func TestTheRightToAlterAQueueRunsNothingAsItsOwner(t *testing.T) {
	t.Parallel()
	b, owner, name := activatedQueue(t)
	mallory := b.As(name)
	for _, statement := range []string{
		"select parley.alter_queue('Own', activation_procedure => 'public.steal')",
		"select parley.alter_queue('Own', activation_procedure => 'public.steal', activation => false)",
		"select parley.alter_queue('Own', execute_as => 'OWNER')",
		"select parley.alter_queue('Own', execute_as => '" + owner + "')",
		"select parley.alter_queue('Own', activation_procedure => 'public.steal', execute_as => 'postgres')",
		"select parley.alter_queue('Own', execute_as => 'SELF')", // the owner, who set the procedure, cannot act as mallory
	} {
		mallory.Refuses(15517, statement)
	}
	sqltest.Equal(b.Session, "public.read", "select activation_procedure from parley.service_queues where name = 'Own'")
	// Numbers and the switch are ALTER's, and what mallory may act as.
	mallory.Exec("select parley.alter_queue('Own', max_queue_readers => 2)")
	mallory.Exec("select parley.alter_queue('Own', activation => false)")
	mallory.Exec("select parley.alter_queue('Own', activation => true)")
	mallory.Exec("select parley.alter_queue('Own', activation_procedure => 'public.steal', execute_as => 'SELF')")
	sqltest.Equal(b.Session, true, "select refusal is null from parley._p_activated_queues() where name = 'Own'")
	// The owner may act as its own role, and yet what mallory chose must not run as that role.
	b.As(owner).Refuses(15517, "select parley.alter_queue('Own', execute_as => 'OWNER')")
	b.As(owner).Exec("select parley.alter_queue('Own', activation_procedure => 'public.read', execute_as => 'OWNER')")
}

func TestAProcedureSetWhileNobodyWasNamedToRunItIsNotRunAsWhoeverIsNamedNext(t *testing.T) {
	t.Parallel()
	b, owner, mallory := activatedQueue(t)
	b.As(owner).Exec("select parley.drop_activation('Own')")
	b.As(mallory).Exec("select parley.alter_queue('Own', activation_procedure => 'public.steal')")
	b.As(owner).Refuses(15517, "select parley.alter_queue('Own', execute_as => 'OWNER', max_queue_readers => 1, activation => true)")
}

func TestTheOwnerOfTheDatabaseRunsNothingAsASuperuser(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	dbo := b.Role("dbo")
	b.Exec("create procedure public.read() language sql as ''")
	database := sqltest.Quote(sqltest.Value[string](b.Session, "select current_database()"))
	b.Exec("alter database " + database + " owner to " + sqltest.Quote(dbo))
	b.Afterwards("alter database " + database + " owner to postgres")
	s := b.As(dbo)
	super := sqltest.Value[string](b.Session, "select current_user")
	s.Refuses(15517, "select parley.create_queue('New', activation_procedure => 'public.read', execute_as => $1)", super)
	s.Refuses(15517, "select parley.alter_queue('Answering', activation_procedure => 'public.read', execute_as => 'OWNER')")
	s.Exec("select parley.create_queue('New', activation_procedure => 'public.read', execute_as => 'SELF')")
}

func TestAReaderIsRefusedOnceWhoSetItMayNoLonger(t *testing.T) {
	t.Parallel()
	b, owner, _ := activatedQueue(t)
	setter := b.Role("setter")
	b.Exec("grant " + sqltest.Quote(owner) + " to " + sqltest.Quote(setter))
	b.As(setter).Exec("select parley.alter_queue('Own', activation_procedure => 'public.read', execute_as => $1)", owner)
	id := sqltest.Value[int](b.Session, "select parley.listen_for_messages('Own')::int")
	const version = "select version from parley._p_activated_queues() where name = 'Own'"
	before := sqltest.Value[string](b.Session, version)
	b.Exec("select parley._p_require_reader($1)", id)

	b.Exec("revoke " + sqltest.Quote(owner) + " from " + sqltest.Quote(setter))
	requireNoReader(b.Session, id)
	if f := b.RequireFinding(sqltest.Configuration, "activation-not-permitted"); !strings.Contains(f.Cause, setter) {
		t.Errorf("the cause does not name who set it: %s", f.Cause)
	}
	if sqltest.Value[string](b.Session, version) == before {
		t.Error("the daemon does not learn of it")
	}
	b.Exec("grant " + sqltest.Quote(owner) + " to " + sqltest.Quote(setter))
	b.Exec("select parley._p_require_reader($1)", id)

	// A role that was dropped is nobody.
	b.Exec("update parley._p_queue set procedure_set_by = 4294967295::oid::regrole where queue_id = $1", id)
	requireNoReader(b.Session, id)
	b.Exec("update parley._p_queue set procedure_set_by = null where queue_id = $1", id)
	requireNoReader(b.Session, id)
}

func TestANewOwnerOfAQueueIsNotActedAsByWhoSetTheProcedureForTheOldOne(t *testing.T) {
	t.Parallel()
	b, _, _ := activatedQueue(t)
	next := b.Role("next")
	id := sqltest.Value[int](b.Session, "select parley.listen_for_messages('Own')::int")
	b.Exec("select parley.alter_authorization('queue', 'Own', $1)", next)
	requireNoReader(b.Session, id)
}

func TestTheRightToAlterAQueueGivesItsMessagesToNobody(t *testing.T) {
	t.Parallel()
	b, owner, name := activatedQueue(t)
	o, mallory := b.As(owner), b.As(name)
	o.Exec("select parley.drop_activation('Own')")
	mallory.Refuses(15517, "select parley.create_webhook_activation('Own', 'https://other.example.com')")
	mallory.Refuses(15517, "select parley.create_program_activation('Own', array['/opt/reader'])")
	o.Exec("select parley.create_webhook_activation('Own', 'https://example.com')")
	for _, argument := range []string{"url => 'https://other.example.com'", "secret => 'sixteen characters'", "body_format => 'raw'", "system_messages => true"} {
		mallory.Refuses(15517, "select parley.alter_webhook_activation('Own', "+argument+")")
	}
	mallory.Exec("select parley.alter_webhook_activation('Own', max_instances => 1, activation => false)")
	mallory.Exec("select parley.alter_webhook_activation('Own', activation => true)")
	o.Exec("select parley.drop_external_activation('Own')")
	o.Exec("select parley.create_program_activation('Own', array['/opt/reader'])")
	for _, argument := range []string{"program => array['/bin/sh']", "environment => '{\"A\": \"1\"}'", "working_directory => '/tmp'"} {
		mallory.Refuses(15517, "select parley.alter_program_activation('Own', "+argument+")")
	}
	id := sqltest.Value[int](b.Session, "select parley.listen_for_messages('Own')::int")
	b.Exec("select parley._p_require_reader($1)", id)
	b.Exec("select parley.alter_authorization('queue', 'Own', $1)", b.Role("next"))
	requireNoReader(b.Session, id)
	b.RequireFinding(sqltest.Configuration, "activation-not-permitted")
}

func TestProgramsAndAddressesAreShownToWhoMayViewTheDefinition(t *testing.T) {
	t.Parallel()
	b, owner, altering := activatedQueue(t)
	b.As(owner).Exec("select parley.drop_activation('Own')")
	b.As(owner).Exec("select parley.create_program_activation('Own', array['/opt/reader', '--key=secret'])")
	viewing, outsider := b.Role("viewing"), b.Role("outsider")
	b.Grant(sqltest.RightTo("VIEW DEFINITION", "queue", "Own"), viewing)
	const query = "select count(*) from parley.external_activations where queue_name = 'Own'"
	for _, s := range []sqltest.Session{b.Session, b.As(owner), b.As(altering), b.As(viewing)} {
		sqltest.Equal(s, 1, query)
	}
	s := b.As(outsider)
	sqltest.Equal(s, 0, query)
	// Nor does a cheap function of the reader's see what the view leaves out.
	s.Exec("create function pg_temp.peek(text[]) returns boolean language plpgsql cost 0.0001 as $$ begin raise exception 'seen %', $1; end $$")
	sqltest.Equal(s, 0, "select count(*) from parley.external_activations where pg_temp.peek(program)")
	// Its backend may not have gone yet when the role goes.
	s.Exec("drop function pg_temp.peek(text[])")
}

// The daemon asks right before each start, and the answer is the queue's definition then.
func TestAReaderIsBegunAsTheQueueIsDefinedNow(t *testing.T) {
	t.Parallel()
	b, owner, _ := activatedQueue(t)
	setter, another := b.Role("setter"), b.Role("another")
	b.Exec("grant " + sqltest.Quote(owner) + " to " + sqltest.Quote(setter))
	b.As(setter).Exec("select parley.alter_queue('Own', activation_procedure => 'public.read', execute_as => $1)", owner)
	id := sqltest.Value[int](b.Session, "select parley.listen_for_messages('Own')::int")
	term := sqltest.Value[int64](b.Session, "select parley._p_lead('a daemon', 0, 60000)")
	const begin = "select parley._p_may_begin_reader($1, $2, $3, 'public.read()', 1000)"
	sqltest.Equal(b.Session, true, begin, term, id, owner)
	sqltest.Equal(b.Session, false, begin, term, id, another)
	sqltest.Equal(b.Session, false, begin, term+1, id, owner)
	sqltest.Equal(b.Session, false, "select parley._p_may_begin_reader($1, $2, $3, 'public.read()', 120000)", term, id, owner)
	b.Exec("select parley.alter_queue('Own', activation => false)")
	sqltest.Equal(b.Session, false, begin, term, id, owner)
	b.Exec("select parley.alter_queue('Own', activation => true)")
	b.Exec("revoke " + sqltest.Quote(owner) + " from " + sqltest.Quote(setter))
	_, err := b.DB.Exec(t.Context(), begin, term, id, owner)
	requireCode(t, err, "42501")
}

// A daemon's login lends its rights to what runs in its sessions, so a superuser is more than it needs.
func TestDiagnosisFindsADaemonThatIsSuperuser(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.RequireNoFinding(sqltest.Runtime, "daemon-superuser")
	sqltest.Equal(b.Session, int64(1), "select parley._p_lead('a daemon', 0, 60000)")
	f := b.RequireFinding(sqltest.Runtime, "daemon-superuser")
	if want := sqltest.Value[string](b.Session, "select session_user::text"); f.ObjectName != want {
		t.Errorf("the finding names %q, want %q", f.ObjectName, want)
	}
	ordinary := b.Role("ordinary")
	b.Exec("update parley._p_leader set login = $1::text::regrole", sqltest.Quote(ordinary))
	b.RequireNoFinding(sqltest.Runtime, "daemon-superuser")
}
