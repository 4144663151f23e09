package sql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func requireNoReader(s session, queueID int) {
	s.Helper()
	_, err := s.db.Exec(s.Context(), "select parley._p_require_reader($1)", queueID)
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || refused.Code != "42501" {
		s.Errorf("a reader may be started: got %v, want SQLSTATE 42501", err)
	}
}

// A queue of an owner, which runs a procedure as that owner, and a role that may ALTER it and is no member of anything.
func activatedQueue(t *testing.T) (b *broker, owner, mallory string) {
	t.Helper()
	b = newWorld(t)
	owner, mallory = b.role("owner"), b.role("mallory")
	b.exec("create procedure public.read() language sql as ''; create procedure public.steal() language sql as ''")
	b.exec("select parley.create_queue('Own', \"authorization\" => $1)", owner)
	o := b.as(owner)
	o.exec("select parley.alter_queue('Own', activation_procedure => 'public.read', execute_as => 'OWNER', max_queue_readers => 1, activation => true)")
	b.grant(right{"ALTER", "queue", "Own"}, mallory)
	b.exec("select parley.create_service('//test/Own', 'Own')")
	return b, owner, mallory
}

func TestWhoMayActAsWhomIsTheSameOnEveryVersion(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	group, member, outsider, super := b.role("group"), b.role("member"), b.role("outsider"), b.role("super")
	b.exec("grant " + quote(group) + " to " + quote(member))
	b.exec("alter role " + quote(super) + " superuser")
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
		equal(b.session, pair.may, query, pair.caller, pair.role)
	}
	// A role that is gone is no member of itself.
	equal(b.session, false, "select parley._p_may_act_as(4294967295, 4294967295)")
	if value[int](b.session, "select current_setting('server_version_num')::integer") < 160000 {
		return
	}
	b.exec("grant " + quote(group) + " to " + quote(member) + " with set false")
	equal(b.session, false, query, member, group)
	b.exec("grant " + quote(group) + " to " + quote(member) + " with set true, inherit false")
	equal(b.session, true, query, member, group)
}

func TestTheRightToAlterAQueueRunsNothingAsItsOwner(t *testing.T) {
	t.Parallel()
	b, owner, name := activatedQueue(t)
	mallory := b.as(name)
	for _, statement := range []string{
		"select parley.alter_queue('Own', activation_procedure => 'public.steal')",
		"select parley.alter_queue('Own', activation_procedure => 'public.steal', activation => false)",
		"select parley.alter_queue('Own', execute_as => 'OWNER')",
		"select parley.alter_queue('Own', execute_as => '" + owner + "')",
		"select parley.alter_queue('Own', activation_procedure => 'public.steal', execute_as => 'postgres')",
		"select parley.alter_queue('Own', execute_as => 'SELF')", // the owner, who set the procedure, cannot act as mallory
	} {
		mallory.refuses(15517, statement)
	}
	equal(b.session, "public.read", "select activation_procedure from parley.service_queues where name = 'Own'")
	// Numbers and the switch are ALTER's, and what mallory may act as.
	mallory.exec("select parley.alter_queue('Own', max_queue_readers => 2)")
	mallory.exec("select parley.alter_queue('Own', activation => false)")
	mallory.exec("select parley.alter_queue('Own', activation => true)")
	mallory.exec("select parley.alter_queue('Own', activation_procedure => 'public.steal', execute_as => 'SELF')")
	equal(b.session, true, "select refusal is null from parley._p_activated_queues() where name = 'Own'")
	// The owner may act as its own role, and yet what mallory chose must not run as that role.
	b.as(owner).refuses(15517, "select parley.alter_queue('Own', execute_as => 'OWNER')")
	b.as(owner).exec("select parley.alter_queue('Own', activation_procedure => 'public.read', execute_as => 'OWNER')")
}

func TestAProcedureSetWhileNobodyWasNamedToRunItIsNotRunAsWhoeverIsNamedNext(t *testing.T) {
	t.Parallel()
	b, owner, mallory := activatedQueue(t)
	b.as(owner).exec("select parley.drop_activation('Own')")
	b.as(mallory).exec("select parley.alter_queue('Own', activation_procedure => 'public.steal')")
	b.as(owner).refuses(15517, "select parley.alter_queue('Own', execute_as => 'OWNER', max_queue_readers => 1, activation => true)")
}

func TestTheOwnerOfTheDatabaseRunsNothingAsASuperuser(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	dbo := b.role("dbo")
	b.exec("create procedure public.read() language sql as ''")
	database := quote(value[string](b.session, "select current_database()"))
	b.exec("alter database " + database + " owner to " + quote(dbo))
	b.afterwards("alter database " + database + " owner to postgres")
	s := b.as(dbo)
	super := value[string](b.session, "select current_user")
	s.refuses(15517, "select parley.create_queue('New', activation_procedure => 'public.read', execute_as => $1)", super)
	s.refuses(15517, "select parley.alter_queue('Answering', activation_procedure => 'public.read', execute_as => 'OWNER')")
	s.exec("select parley.create_queue('New', activation_procedure => 'public.read', execute_as => 'SELF')")
}

func TestAReaderIsRefusedOnceWhoSetItMayNoLonger(t *testing.T) {
	t.Parallel()
	b, owner, _ := activatedQueue(t)
	setter := b.role("setter")
	b.exec("grant " + quote(owner) + " to " + quote(setter))
	b.as(setter).exec("select parley.alter_queue('Own', activation_procedure => 'public.read', execute_as => $1)", owner)
	id := value[int](b.session, "select parley.listen_for_messages('Own')::int")
	const version = "select version from parley._p_activated_queues() where name = 'Own'"
	before := value[string](b.session, version)
	b.exec("select parley._p_require_reader($1)", id)

	b.exec("revoke " + quote(owner) + " from " + quote(setter))
	requireNoReader(b.session, id)
	if f := b.requireFinding(configuration, "activation-not-permitted"); !strings.Contains(f.Cause, setter) {
		t.Errorf("the cause does not name who set it: %s", f.Cause)
	}
	if value[string](b.session, version) == before {
		t.Error("the daemon does not learn of it")
	}
	b.exec("grant " + quote(owner) + " to " + quote(setter))
	b.exec("select parley._p_require_reader($1)", id)

	// A role that was dropped is nobody.
	b.exec("update parley._p_queue set procedure_set_by = 4294967295::oid::regrole where queue_id = $1", id)
	requireNoReader(b.session, id)
	b.exec("update parley._p_queue set procedure_set_by = null where queue_id = $1", id)
	requireNoReader(b.session, id)
}

func TestANewOwnerOfAQueueIsNotActedAsByWhoSetTheProcedureForTheOldOne(t *testing.T) {
	t.Parallel()
	b, _, _ := activatedQueue(t)
	next := b.role("next")
	id := value[int](b.session, "select parley.listen_for_messages('Own')::int")
	b.exec("select parley.alter_authorization('queue', 'Own', $1)", next)
	requireNoReader(b.session, id)
}

func TestTheRightToAlterAQueueGivesItsMessagesToNobody(t *testing.T) {
	t.Parallel()
	b, owner, name := activatedQueue(t)
	o, mallory := b.as(owner), b.as(name)
	o.exec("select parley.drop_activation('Own')")
	mallory.refuses(15517, "select parley.create_webhook_activation('Own', 'https://other.example.com')")
	mallory.refuses(15517, "select parley.create_program_activation('Own', array['/opt/reader'])")
	o.exec("select parley.create_webhook_activation('Own', 'https://example.com')")
	for _, argument := range []string{"url => 'https://other.example.com'", "secret => 'sixteen characters'", "body_format => 'raw'", "system_messages => true"} {
		mallory.refuses(15517, "select parley.alter_webhook_activation('Own', "+argument+")")
	}
	mallory.exec("select parley.alter_webhook_activation('Own', max_instances => 1, activation => false)")
	mallory.exec("select parley.alter_webhook_activation('Own', activation => true)")
	o.exec("select parley.drop_external_activation('Own')")
	o.exec("select parley.create_program_activation('Own', array['/opt/reader'])")
	for _, argument := range []string{"program => array['/bin/sh']", "environment => '{\"A\": \"1\"}'", "working_directory => '/tmp'"} {
		mallory.refuses(15517, "select parley.alter_program_activation('Own', "+argument+")")
	}
	id := value[int](b.session, "select parley.listen_for_messages('Own')::int")
	b.exec("select parley._p_require_reader($1)", id)
	b.exec("select parley.alter_authorization('queue', 'Own', $1)", b.role("next"))
	requireNoReader(b.session, id)
	b.requireFinding(configuration, "activation-not-permitted")
}

func TestProgramsAndAddressesAreShownToWhoMayViewTheDefinition(t *testing.T) {
	t.Parallel()
	b, owner, altering := activatedQueue(t)
	b.as(owner).exec("select parley.drop_activation('Own')")
	b.as(owner).exec("select parley.create_program_activation('Own', array['/opt/reader', '--key=secret'])")
	viewing, outsider := b.role("viewing"), b.role("outsider")
	b.grant(right{"VIEW DEFINITION", "queue", "Own"}, viewing)
	const query = "select count(*) from parley.external_activations where queue_name = 'Own'"
	for _, s := range []session{b.session, b.as(owner), b.as(altering), b.as(viewing)} {
		equal(s, 1, query)
	}
	s := b.as(outsider)
	equal(s, 0, query)
	// Nor does a cheap function of the reader's see what the view leaves out.
	s.exec("create function pg_temp.peek(text[]) returns boolean language plpgsql cost 0.0001 as $$ begin raise exception 'seen %', $1; end $$")
	equal(s, 0, "select count(*) from parley.external_activations where pg_temp.peek(program)")
	// Its backend may not have gone yet when the role goes.
	s.exec("drop function pg_temp.peek(text[])")
}

// The daemon asks right before each start, and the answer is the queue's definition then.
func TestAReaderIsBegunAsTheQueueIsDefinedNow(t *testing.T) {
	t.Parallel()
	b, owner, _ := activatedQueue(t)
	setter, another := b.role("setter"), b.role("another")
	b.exec("grant " + quote(owner) + " to " + quote(setter))
	b.as(setter).exec("select parley.alter_queue('Own', activation_procedure => 'public.read', execute_as => $1)", owner)
	id := value[int](b.session, "select parley.listen_for_messages('Own')::int")
	term := value[int64](b.session, "select parley._p_lead('a daemon', 0, 60000)")
	const begin = "select parley._p_may_begin_reader($1, $2, $3, 'public.read()', 1000)"
	equal(b.session, true, begin, term, id, owner)
	equal(b.session, false, begin, term, id, another)
	equal(b.session, false, begin, term+1, id, owner)
	equal(b.session, false, "select parley._p_may_begin_reader($1, $2, $3, 'public.read()', 120000)", term, id, owner)
	b.exec("select parley.alter_queue('Own', activation => false)")
	equal(b.session, false, begin, term, id, owner)
	b.exec("select parley.alter_queue('Own', activation => true)")
	b.exec("revoke " + quote(owner) + " from " + quote(setter))
	_, err := b.db.Exec(t.Context(), begin, term, id, owner)
	requireCode(t, err, "42501")
}

// A daemon's login lends its rights to what runs in its sessions, so a superuser is more than it needs.
func TestDiagnosisFindsADaemonThatIsSuperuser(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.requireNoFinding(runtime, "daemon-superuser")
	equal(b.session, int64(1), "select parley._p_lead('a daemon', 0, 60000)")
	f := b.requireFinding(runtime, "daemon-superuser")
	if want := value[string](b.session, "select session_user::text"); f.ObjectName != want {
		t.Errorf("the finding names %q, want %q", f.ObjectName, want)
	}
	ordinary := b.role("ordinary")
	b.exec("update parley._p_leader set login = $1::text::regrole", quote(ordinary))
	b.requireNoFinding(runtime, "daemon-superuser")
}
