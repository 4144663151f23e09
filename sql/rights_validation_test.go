package sql_test

import (
	"strings"
	"testing"
)

// A validation function is code of a user that runs in the middle of the broker. It has the rights of a role that its owner and the role
// that set it may act as, and of no other.

// judge makes mallory a message type whose bodies are judged by m.judge, and a service that sends such messages to itself.
func (b *broker) judge(role string) session {
	b.Helper()
	b.exec("grant " + quote(role) + " to current_user")
	for _, right := range []string{"CREATE MESSAGE TYPE", "CREATE CONTRACT", "CREATE QUEUE", "CREATE SERVICE"} {
		b.exec("select parley.grant($1, 'database', null, $2)", right, role)
	}
	s := b.as(role)
	s.exec("create table m.judged (role name)")
	s.exec(`create function m.judge(body bytea) returns boolean language plpgsql security definer as
		$$begin insert into m.judged (role) values (current_user); return body = 'good'; end$$`)
	return s
}

func (s session) ownTypes() {
	s.Helper()
	s.exec("select parley.create_message_type('//m/Judged', 'FUNCTION', 'm.judge(bytea)'::regprocedure)")
	s.exec("select parley.create_contract('//m/Judged', array['//m/Judged'])")
	s.exec("select parley.create_queue('Own')")
	s.exec("select parley.create_service('//m/Own', 'Own', array['//m/Judged'])")
}

// judgement sends one body and gives the types of what comes out of the queue: the message, or an Error.
func (s session) judgement(body string) []string {
	s.Helper()
	for len(s.receive("Own")) > 0 {
		continue
	}
	handle := value[string](s, "select parley.begin_dialog('//m/Own', '//m/Own', '//m/Judged')")
	s.exec("select parley.send($1::uuid, '//m/Judged', $2::bytea)", handle, []byte(body))
	return typesOf(s.receive("Own"))
}

func TestAValidationFunctionRunsAsItsOwner(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	role, _ := b.mallory()
	s := b.judge(role)
	s.ownTypes()
	if got := s.judgement("good"); len(got) != 1 || got[0] != "//m/Judged" {
		t.Errorf("a good body: received %q", got)
	}
	if got := s.judgement("bad"); len(got) == 0 || got[0] != errorMessage {
		t.Errorf("a bad body: received %q", got)
	}
	equal(s, role, "select distinct role from m.judged")
}

// The database's owner administers the broker, but has not the rights of a superuser that installed it.
func TestAValidationFunctionHasNotTheRightsOfTheBroker(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	role, _ := b.mallory()
	s := b.judge(role)
	b.exec("alter database " + quote(value[string](b.session, "select current_database()")) + " owner to " + quote(role))
	b.afterwards("reassign owned by " + quote(role) + " to current_user")
	s.exec(`create function m.climb(body bytea) returns boolean language plpgsql as
		$$begin insert into m.judged (role) values (current_user); return true; end$$`)
	s.refuses(8402, "select parley.create_message_type('//m/Climb', 'FUNCTION', 'm.climb(bytea)'::regprocedure)")
	// Nor does a function get them afterwards.
	s.ownTypes()
	s.refuses(8402, "select parley.alter_message_type('//m/Judged', 'FUNCTION', 'm.climb(bytea)'::regprocedure)")
	s.exec("alter function m.judge(bytea) security invoker")
	if got := s.judgement("good"); len(got) == 0 || got[0] != errorMessage {
		t.Errorf("received %q, want an Error: the function would have run as the owner of the schema", got)
	}
	equal(s, 0, "select count(*)::int from m.judged")
	// What a superuser sets runs as the owner of the schema only when its owner might do that.
	b.refuses(8402, "select parley.alter_message_type('//m/Judged', 'FUNCTION', 'm.climb(bytea)'::regprocedure)")
	b.exec("create function public.trusted(body bytea) returns boolean language sql as 'select true'")
	b.exec("select parley.alter_message_type('//m/Judged', 'FUNCTION', 'public.trusted(bytea)'::regprocedure)")
	if got := s.judgement("whatever"); len(got) != 1 || got[0] != "//m/Judged" {
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
			b := newBroker(t)
			role, _ := b.mallory()
			s := b.judge(role)
			s.ownTypes()
			b.exec("create table public.climbed (role name)")
			b.afterwards("drop schema if exists old cascade")
			// What is asked after the function was checked and before it is called does what its owner may do in another session then.
			b.exec(`create or replace function parley._p_keeps_snapshot() returns boolean language plpgsql as $f$
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
			if got := s.judgement("good"); len(got) == 0 || got[0] != errorMessage {
				t.Errorf("received %q, want an Error: a function was called that nobody has checked", got)
			}
			equal(b.session, 0, "select count(*)::int from public.climbed")
		})
	}
}

// The role that set the function must still be a member of the role as which it runs.
func TestAValidationFunctionRunsWhileItsSetterMayActAsItsOwner(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	role, _ := b.mallory()
	s := b.judge(role)
	friend := b.role("friend")
	b.exec("grant " + quote(role) + " to " + quote(friend))
	b.exec("select parley.grant('CREATE MESSAGE TYPE', 'database', null, $1)", friend)
	b.as(friend).exec("select parley.create_message_type('//m/Judged', 'FUNCTION', 'm.judge(bytea)'::regprocedure)")
	b.exec("select parley.alter_authorization('message type', '//m/Judged', $1)", role)
	s.exec("select parley.create_contract('//m/Judged', array['//m/Judged'])")
	s.exec("select parley.create_queue('Own')")
	s.exec("select parley.create_service('//m/Own', 'Own', array['//m/Judged'])")
	if got := s.judgement("good"); len(got) != 1 || got[0] != "//m/Judged" {
		t.Errorf("a good body: received %q", got)
	}
	b.exec("revoke " + quote(role) + " from " + quote(friend))
	if got := s.judgement("good"); len(got) == 0 || got[0] != errorMessage {
		t.Errorf("received %q, want an Error: whoever set the function is no member of its owner's role any more", got)
	}
}

// The setter trusted one role with the bodies. Whoever takes the name of a function that is gone gets none of them, though an administrator,
// who set it, could act as him.
func TestWhoTakesTheNameOfAValidationFunctionSeesNoBody(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	role, _ := b.mallory()
	s := b.judge(role)
	thief := b.role("thief")
	b.afterwards("drop owned by " + quote(thief) + " cascade")
	b.exec("grant usage, create on schema m to " + quote(thief))
	b.exec("select parley.create_message_type('//m/Judged', 'FUNCTION', 'm.judge(bytea)'::regprocedure)")
	b.exec("select parley.alter_authorization('message type', '//m/Judged', $1)", role)
	s.exec("select parley.create_contract('//m/Judged', array['//m/Judged'])")
	s.exec("select parley.create_queue('Own')")
	s.exec("select parley.create_service('//m/Own', 'Own', array['//m/Judged'])")
	if got := s.judgement("good"); len(got) != 1 || got[0] != "//m/Judged" {
		t.Errorf("a good body: received %q", got)
	}
	b.exec("drop function m.judge(bytea)")
	stealing := b.as(thief)
	stealing.exec("create table m.seen (body bytea)")
	stealing.exec("create function m.judge(body bytea) returns boolean language sql security definer as 'insert into m.seen (body) values (body); select true'")
	if got := s.judgement("good"); len(got) == 0 || got[0] != errorMessage {
		t.Errorf("received %q, want an Error: the function belongs to another role", got)
	}
	equal(b.session, 0, "select count(*)::int from m.seen")
	equal(b.session, 1, "select count(*)::int from parley.check_broker() where object_name = '//m/Judged'")
	b.exec("select parley.alter_message_type('//m/Judged', 'FUNCTION', 'm.judge(bytea)'::regprocedure)")
	if got := s.judgement("good"); len(got) != 1 || got[0] != "//m/Judged" {
		t.Errorf("a good body after it was set again: received %q", got)
	}
}

// A transaction that keeps its snapshot sees an old version of the function's row while the executor takes the new one.
func TestAValidationFunctionOfAnotherRoleIsNotAskedUnderAKeptSnapshot(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	role, _ := b.mallory()
	s := b.judge(role)
	s.ownTypes()
	handle := value[string](s, "select parley.begin_dialog('//m/Own', '//m/Own', '//m/Judged')")
	s.exec("begin isolation level repeatable read")
	_, err := s.db.Exec(t.Context(), "select parley.send($1::uuid, '//m/Judged', 'good'::bytea)", handle)
	requireCode(t, err, "0A000")
	s.exec("rollback")
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
			b := newWorld(t)
			b.exec("select parley.alter_message_type($1, $2)", note, c.validation)
			handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work')")
			b.exec("select parley.send($1::uuid, $2, convert_to('\"' || repeat('x', 16 * 1024 * 1024) || '\"', 'UTF8'))", handle, note)
			m := b.requireError("Asking", -c.number)
			if text := string(m.MessageBody); !strings.Contains(text, "at most 16777216 are validated") {
				t.Errorf("the Error does not state the limit: %s", clip(text))
			}
		})
	}
}
