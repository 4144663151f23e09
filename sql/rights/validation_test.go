package rights_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A validation function is code of a user that runs in the middle of the broker. It has the rights of a role that its owner and the role
// that set it may act as, and of no other.

// judge makes mallory a message type whose bodies are judged by m.judge, and a service that sends such messages to itself.
func judge(b *sqltest.Broker, role string) sqltest.Session {
	b.Helper()
	b.Exec("grant " + sqltest.Quote(role) + " to current_user")
	for _, right := range []string{"CREATE MESSAGE TYPE", "CREATE CONTRACT", "CREATE QUEUE", "CREATE SERVICE"} {
		b.Exec("select parley.grant($1, 'database', null, $2)", right, role)
	}
	s := b.As(role)
	s.Exec("create table m.judged (role name)")
	s.Exec(`create function m.judge(body bytea) returns boolean language plpgsql security definer as
		$$begin insert into m.judged (role) values (current_user); return body = 'good'; end$$`)
	return s
}

func ownTypes(s sqltest.Session) {
	s.Helper()
	s.Exec("select parley.create_message_type('//m/Judged', 'FUNCTION', 'm.judge(bytea)'::regprocedure)")
	s.Exec("select parley.create_contract('//m/Judged', array['//m/Judged'])")
	s.Exec("select parley.create_queue('Own')")
	s.Exec("select parley.create_service('//m/Own', 'Own', array['//m/Judged'])")
}

// judgement sends one body and gives the types of what comes out of the queue: the message, or an Error.
func judgement(s sqltest.Session, body string) []string {
	s.Helper()
	for len(s.Receive("Own")) > 0 {
		continue
	}
	handle := sqltest.Value[string](s, "select parley.begin_dialog('//m/Own', '//m/Own', '//m/Judged')")
	s.Exec("select parley.send($1::uuid, '//m/Judged', $2::bytea)", handle, []byte(body))
	return sqltest.TypesOf(s.Receive("Own"))
}

func TestAValidationFunctionRunsAsItsOwner(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	role, _ := newMallory(b)
	s := judge(b, role)
	ownTypes(s)
	if got := judgement(s, "good"); len(got) != 1 || got[0] != "//m/Judged" {
		t.Errorf("a good body: received %q", got)
	}
	if got := judgement(s, "bad"); len(got) == 0 || got[0] != sqltest.ErrorMessage {
		t.Errorf("a bad body: received %q", got)
	}
	sqltest.Equal(s, role, "select distinct role from m.judged")
}

// The daemon may be a member of the owner of the broker, which has more rights. A validation function of that owner does not get these:
// neither for messages that were sent for later, nor for those that waited for their service.
func TestAValidationFunctionHasNotTheRightsOfTheDaemon(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("create table public.judged (role name, body text)")
	b.Exec(`create function public.judge(body bytea) returns boolean language plpgsql as
		$$begin insert into public.judged (role, body) values (current_user, parley.body_text(body)); return true; end$$`)
	b.Exec("select parley.create_message_type('Judged', 'FUNCTION', 'public.judge(bytea)')")
	b.Exec("select parley.create_contract('Judged', array['Judged']), parley.create_service('Early', 'Answering', array['Judged'])")
	const begin = "parley.begin_dialog('//test/Asker', $1, 'Judged', encryption => false, allow_unknown_target => true)"
	b.Exec("select parley.send("+begin+", 'Judged', 'delayed')", "Late")
	b.Exec("select parley.send("+begin+", 'Judged', 'later', deliver_at => clock_timestamp())", "Early")
	b.Exec("update parley._p_service set name = 'Late' where name = 'Early'")
	b.Exec("update parley._p_endpoint set far_service = 'Late' where far_service = 'Early'")
	role := b.Role("daemon")
	b.Exec("grant " + sqltest.Quote(sqltest.Value[string](b.Session, "select current_user")) + " to " + sqltest.Quote(role))
	daemon := b.As(role)
	daemon.Exec("select parley._p_deliver_delayed_of_each(array(select * from parley._p_delayed_senders(null)))")
	daemon.Exec("select parley._p_send_due_of(endpoint_id, clock_timestamp(), 1) from parley._p_delayed_send")
	sqltest.Equal(b.Session, "delayed later", "select string_agg(body, ' ' order by body) from public.judged")
	sqltest.Equal(b.Session, true, "select bool_and(role = current_user) from public.judged")
}

// The database's owner administers the broker, but has not the rights of a superuser that installed it.
func TestAValidationFunctionHasNotTheRightsOfTheBroker(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	role, _ := newMallory(b)
	s := judge(b, role)
	b.Exec("alter database " + sqltest.Quote(sqltest.Value[string](b.Session, "select current_database()")) + " owner to " + sqltest.Quote(role))
	b.Afterwards("reassign owned by " + sqltest.Quote(role) + " to current_user")
	s.Exec(`create function m.climb(body bytea) returns boolean language plpgsql as
		$$begin insert into m.judged (role) values (current_user); return true; end$$`)
	s.Refuses(8402, "select parley.create_message_type('//m/Climb', 'FUNCTION', 'm.climb(bytea)'::regprocedure)")
	// Nor does a function get them afterwards.
	ownTypes(s)
	s.Refuses(8402, "select parley.alter_message_type('//m/Judged', 'FUNCTION', 'm.climb(bytea)'::regprocedure)")
	s.Exec("alter function m.judge(bytea) security invoker")
	if got := judgement(s, "good"); len(got) == 0 || got[0] != sqltest.ErrorMessage {
		t.Errorf("received %q, want an Error: the function would have run as the owner of the schema", got)
	}
	sqltest.Equal(s, 0, "select count(*)::int from m.judged")
	// A function that a superuser sets runs as the owner of the schema only when its owner might do that.
	b.Refuses(8402, "select parley.alter_message_type('//m/Judged', 'FUNCTION', 'm.climb(bytea)'::regprocedure)")
	b.Exec("create function public.trusted(body bytea) returns boolean language sql as 'select true'")
	b.Exec("select parley.alter_message_type('//m/Judged', 'FUNCTION', 'public.trusted(bytea)'::regprocedure)")
	if got := judgement(s, "whatever"); len(got) != 1 || got[0] != "//m/Judged" {
		t.Errorf("received %q", got)
	}
}

// Its owner may give its name to another function, which was never checked, while a message is judged.
func TestAValidationFunctionThatGaveItsNameToAnotherIsNotAsked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"its schema was renamed": "alter schema m rename to old; create schema m",
		"it was renamed":         "alter function m.judge(bytea) rename to old",
		"it moved":               "create schema old; alter function m.judge(bytea) set schema old",
		"it was changed":         "alter function m.judge(bytea) security invoker",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewBroker(t)
			role, _ := newMallory(b)
			s := judge(b, role)
			ownTypes(s)
			b.Exec("create table public.climbed (role name)")
			b.Afterwards("drop schema if exists old cascade")
			// A question that is asked after the function was checked and before it is called does what its owner may do in another session
			// then.
			b.Exec(`create or replace function parley._p_keeps_snapshot() returns boolean language plpgsql as $f$
				declare
					v_context text;
				begin
					get diagnostics v_context = pg_context;
					if v_context not like '%_p_call_validation%' then
						return false;
					end if;
					` + change + `;
					create or replace function m.judge(body bytea) returns boolean language plpgsql as
						$$begin insert into public.climbed (role) values (current_user); return true; end$$;
					return false;
				end$f$`)
			if got := judgement(s, "good"); len(got) == 0 || got[0] != sqltest.ErrorMessage {
				t.Errorf("received %q, want an Error: a function was called that nobody has checked", got)
			}
			sqltest.Equal(b.Session, 0, "select count(*)::int from public.climbed")
		})
	}
}

// The role that set the function must still be a member of the role as which it runs.
func TestAValidationFunctionRunsWhileItsSetterMayActAsItsOwner(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	role, _ := newMallory(b)
	s := judge(b, role)
	friend := b.Role("friend")
	b.Exec("grant " + sqltest.Quote(role) + " to " + sqltest.Quote(friend))
	b.Exec("select parley.grant('CREATE MESSAGE TYPE', 'database', null, $1)", friend)
	b.As(friend).Exec("select parley.create_message_type('//m/Judged', 'FUNCTION', 'm.judge(bytea)'::regprocedure)")
	b.Exec("select parley.alter_authorization('message type', '//m/Judged', $1)", role)
	s.Exec("select parley.create_contract('//m/Judged', array['//m/Judged'])")
	s.Exec("select parley.create_queue('Own')")
	s.Exec("select parley.create_service('//m/Own', 'Own', array['//m/Judged'])")
	if got := judgement(s, "good"); len(got) != 1 || got[0] != "//m/Judged" {
		t.Errorf("a good body: received %q", got)
	}
	b.Exec("revoke " + sqltest.Quote(role) + " from " + sqltest.Quote(friend))
	if got := judgement(s, "good"); len(got) == 0 || got[0] != sqltest.ErrorMessage {
		t.Errorf("received %q, want an Error: whoever set the function is no member of its owner's role any more", got)
	}
}

// The setter trusted one role with the bodies. A role that takes the name of a function that is gone gets none of them, though an
// administrator, who set it, could act as it.
func TestWhoTakesTheNameOfAValidationFunctionSeesNoBody(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	role, _ := newMallory(b)
	s := judge(b, role)
	thief := b.Role("thief")
	b.Afterwards("drop owned by " + sqltest.Quote(thief) + " cascade")
	b.Exec("grant usage, create on schema m to " + sqltest.Quote(thief))
	b.Exec("select parley.create_message_type('//m/Judged', 'FUNCTION', 'm.judge(bytea)'::regprocedure)")
	b.Exec("select parley.alter_authorization('message type', '//m/Judged', $1)", role)
	s.Exec("select parley.create_contract('//m/Judged', array['//m/Judged'])")
	s.Exec("select parley.create_queue('Own')")
	s.Exec("select parley.create_service('//m/Own', 'Own', array['//m/Judged'])")
	if got := judgement(s, "good"); len(got) != 1 || got[0] != "//m/Judged" {
		t.Errorf("a good body: received %q", got)
	}
	b.Exec("drop function m.judge(bytea)")
	stealing := b.As(thief)
	stealing.Exec("create table m.seen (body bytea)")
	stealing.Exec("create function m.judge(body bytea) returns boolean language sql security definer as 'insert into m.seen (body) values (body); select true'")
	if got := judgement(s, "good"); len(got) == 0 || got[0] != sqltest.ErrorMessage {
		t.Errorf("received %q, want an Error: the function belongs to another role", got)
	}
	sqltest.Equal(b.Session, 0, "select count(*)::int from m.seen")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley.check_broker() where object_name = '//m/Judged'")
	b.Exec("select parley.alter_message_type('//m/Judged', 'FUNCTION', 'm.judge(bytea)'::regprocedure)")
	if got := judgement(s, "good"); len(got) != 1 || got[0] != "//m/Judged" {
		t.Errorf("a good body after it was set again: received %q", got)
	}
}

// A transaction that keeps its snapshot sees an old version of the function's row while the executor takes the new one.
func TestAValidationFunctionOfAnotherRoleIsNotAskedUnderAKeptSnapshot(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	role, _ := newMallory(b)
	s := judge(b, role)
	ownTypes(s)
	handle := sqltest.Value[string](s, "select parley.begin_dialog('//m/Own', '//m/Own', '//m/Judged')")
	s.Exec("begin isolation level repeatable read")
	_, err := s.DB.Exec(t.Context(), "select parley.send($1::uuid, '//m/Judged', 'good'::bytea)", handle)
	requireCode(t, err, "0A000")
	s.Exec("rollback")
}

// The largest body that is validated has 16 MiB; a larger one costs no more than a check of its size.
func TestABodyTooLargeToValidateIsRefusedUnread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		validation string
		number     int
	}{{"WELL_FORMED_XML", 9615}, {"JSON", 8430}} {
		t.Run(c.validation, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec("select parley.alter_message_type($1, $2)", sqltest.Note, c.validation)
			handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work')")
			b.Exec("select parley.send($1::uuid, $2, convert_to('\"' || repeat('x', 16 * 1024 * 1024) || '\"', 'UTF8'))", handle, sqltest.Note)
			m := b.RequireError("Asking", -c.number)
			if text := string(m.MessageBody); !strings.Contains(text, "at most 16777216 are validated") {
				t.Errorf("the Error does not state the limit: %s", sqltest.Clip(text))
			}
		})
	}
}
