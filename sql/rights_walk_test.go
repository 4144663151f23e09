package sql_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// entry is a function or a view that every role can reach.
type entry struct {
	Name      string
	Statement string // calls it, with every argument of its own
}

// secret stands in each body, address, argument and description of the walk's scene: a role without rights must not be shown it.
const secret = "TOPSECRET"

// walkScene gives every function an object of another role to work on.
const walkScene = `
	select parley.create_queue('Watched'), parley.set_queue_quota('Answering', 1000);
	select parley.create_program_activation('Watched', array['/opt/reader', 'TOPSECRET'], environment => '{"KEY": "TOPSECRET"}');
	create function public.watched() returns integer language sql security definer
	as $$ select q.object_id from parley.service_queues as q where q.name = 'Watched' $$;
	select parley.create_queue('Hooked');
	select parley.create_webhook_activation('Hooked', 'https://example.com/TOPSECRET', secret => 'TOPSECRET-TOPSECRET');
	create table public.given (name text primary key, literal text);
	grant select on public.given to public;
	insert into public.given (name, literal)
	select 'conversation_handle', format('%L::uuid', parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work'));
	select parley.send((select trim('''' from split_part(literal, '::', 1))::uuid from public.given), '//test/Request', 'TOPSECRET 1');
	select parley.send((select trim('''' from split_part(literal, '::', 1))::uuid from public.given), '//test/Request', 'TOPSECRET 2');
	select parley.send(parley.begin_dialog('//test/Asker', '//nowhere'), 'DEFAULT', 'TOPSECRET 3');
	select parley.create_remote_service_binding('Bound', '//far', current_user);
	select parley.create_route('Far', 'tcp://far:4022', '//far');
	select parley.begin_conversation_timer((select trim('''' from split_part(literal, '::', 1))::uuid from public.given), 0);
	insert into parley._p_set_aside (endpoint_id, position, moved_position, rollbacks)
	select e.endpoint_id, 0, 0, 5 from parley._p_endpoint as e where not e.is_initiator;
	select parley.create_queue('Jobs', kind => 'SIMPLE');
	select parley.put_batch('Jobs', array['TOPSECRET 4', 'TOPSECRET 5']);
	select parley.put('Jobs', 'TOPSECRET 6', deliver_at => now() + interval '1 day');
	insert into parley._p_set_aside_message (queue_id, position, priority, rollbacks)
	select q.queue_id, 1024, 5, 5 from parley._p_queue as q where q.name = 'Jobs';
	update parley._p_message as m set lane = parley._p_set_aside_lane(s.queue_id)
	from parley._p_set_aside_message as s where m.position = 1024 and parley._p_owner_of_lane(m.lane) = s.queue_id;
`

// literals are arguments by name; what is not here is made from its type.
var literals = map[string]string{
	"queue": "'Answering'", "class": "'queue'", "object": "'Answering'", "permission": "'CONTROL'", "grantee": "'PUBLIC'",
	"owner": "'PUBLIC'", "from_service": "'//test/Asker'", "to_service": "'//test/Answerer'", "contract": "'//test/Work'",
	"message_type": "'//test/Request'", "body": "'x'", "bodies": "array['x']", "timeout": "0", "wait_seconds": "0", "top": "10",
	"contracts": "array['DEFAULT']", "message_types": "array['//test/Request']", "validation": "'NONE'",
	"conversation_handles": "array[(select literal from public.given)]", "from_position": "0",
	"authorization": "null", "broker_instance": "null", "related_conversation": "null", "related_conversation_group": "null",
	"conversation_group_id": "null", "level": "'INFORMATION'", "ignore": "'{}'", "patience": "null", "event": "'QUEUE_ACTIVATION'",
	"error_code": "1", "error_number": "1", "status": "false", "add_contracts": "null", "drop_contracts": "null", "url": "'https://example.com'",
	"address": "'LOCAL'", "fingerprint": "repeat('d4', 32)", "seconds": "1", "retry_ms": "null", "older_than": "'0'", "service_name": "null",
	"poison_action": "null", "activation_procedure": "null", "execute_as": "null", "events": "null", "max_events": "10", "encryption": "false", "lifetime": "null",
}

// literalsOf are arguments of single functions, where the name is not enough.
var literalsOf = map[string]map[string]string{
	"parley.alter_certificate":            {"name": "'Key'"},
	"parley.alter_message_type":           {"name": "'//test/Note'"},
	"parley.alter_remote_service_binding": {"name": "'Bound'", "with_user": "null"},
	"parley.alter_route":                  {"name": "'Far'", "mirror_address": "null"},
	"parley.alter_service":                {"name": "'//test/Answerer'", "queue": "null"},
	"parley.begin_dialog":                 {"lifetime": "600"},
	"parley.drop_certificate":             {"name": "'Key'"},
	"parley.drop_contract":                {"name": "'//test/Work'"},
	"parley.drop_message_type":            {"name": "'//test/Note'"},
	"parley.drop_remote_service_binding":  {"name": "'Bound'"},
	"parley.drop_route":                   {"name": "'Far'"},
	"parley.drop_service":                 {"name": "'//test/Answerer'"},
	"parley.move_conversation":            {"conversation_group_id": "gen_random_uuid()"},
	"parley.discard_message":              {"queue": "'Jobs'", "message_id": "1024"},
	"parley.peek_messages":                {"queue": "'Jobs'"},
	"parley.put":                          {"queue": "'Jobs'", "key": "null", "priority": "5", "deliver_at": "null"},
	"parley.put_batch":                    {"queue": "'Jobs'", "key": "null", "priority": "5", "deliver_at": "null"},
	"parley.retry_message":                {"queue": "'Jobs'", "message_id": "1024"},
	"parley.take":                         {"queue": "'Jobs'", "count": "10"},
	"parley.withdraw_message":             {"queue": "'Jobs'", "delayed_id": "1"},
	"parley._p_create_contract":           {"message_types": "'{\"DEFAULT\": \"ANY\"}'"},
	"parley._p_create_contract_of_text":   {"message_types": "'{\"DEFAULT\": \"ANY\"}'"},
	"parley._p_sees_definition":           {"queue_id": "public.watched()"},
	"parley._p_sees_poisoned":             {"queue_id": "public.watched()"},
	"parley._p_sees_set_aside":            {"queue_id": "public.watched()"},
}

// entries lists what every role can reach, with a call of each. Nothing is named: what is new is in it.
func (s session) entries() []entry {
	s.Helper()
	rows, err := s.db.Query(s.Context(), `
		select format('parley.%I', p.proname), coalesce(p.proargnames, '{}'), coalesce(p.proargmodes::text[], '{}'),
			array(select format_type(t.type, null) from unnest(p.proargtypes) with ordinality as t (type, n) order by t.n),
			p.prokind::text, p.prorettype = 'trigger'::regtype
		from pg_proc as p
		where p.pronamespace in ('parley'::regnamespace, 'parley_queue'::regnamespace)
			and has_function_privilege('public', p.oid, 'execute')
		order by p.oid::regprocedure::text`)
	if err != nil {
		s.Fatal(err)
	}
	var all []entry
	for rows.Next() {
		var name, kind string
		var names, modes, types []string
		var isTrigger bool
		if err := rows.Scan(&name, &names, &modes, &types, &kind, &isTrigger); err != nil {
			s.Fatal(err)
		}
		var arguments []string
		for i, argument := range names {
			if argument == "caller" && strings.HasPrefix(name, "parley._p_") {
				arguments = append(arguments, "caller => parley.current_caller()")
			}
			if argument == "caller" || i >= len(types) || len(modes) > 0 && modes[i] != "i" {
				continue
			}
			literal, ok := literalsOf[name][argument]
			if ok {
				literal += "::" + types[i]
			} else {
				literal = s.literal(argument, types[i])
			}
			arguments = append(arguments, fmt.Sprintf("%s => %s", quote(argument), literal))
		}
		if slices.Contains(types, "parley.message_type") || isTrigger || kind != "f" {
			continue
		}
		all = append(all, entry{
			Name:      fmt.Sprintf("%s(%s)", name, strings.Join(types, ", ")),
			Statement: fmt.Sprintf("select string_agg(r::text, ' ') from %s(%s) as r", name, strings.Join(arguments, ", ")),
		})
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	for _, view := range values[string](s, `
		select c.oid::regclass::text
		from pg_class as c
		where c.relnamespace in ('parley'::regnamespace, 'parley_queue'::regnamespace) and c.relkind in ('v', 'm', 'r')
			and has_table_privilege('public', c.oid, 'select')
		order by 1`) {
		all = append(all, entry{Name: view, Statement: "select string_agg(r::text, ' ') from " + view + " as r"})
	}
	return all
}

func (s session) literal(argument, of string) string {
	s.Helper()
	given, ok := literals[argument]
	switch {
	case ok && strings.Contains(given, "public.given"):
		return "array[" + value[string](s, "select literal from public.given") + "]"
	case of == "uuid" && !ok:
		return value[string](s, "select literal from public.given")
	case ok && (strings.HasSuffix(of, "[]") || given != "array['x']"):
		return given + "::" + of
	}
	switch of {
	case "integer", "bigint", "smallint":
		return "1::" + of
	case "boolean":
		return "true"
	case "jsonb", "json":
		return "'{}'::" + of
	case "text", "bytea", "xml", "name":
		return "'x'::" + of
	}
	return "null::" + of
}

// outcome of one call: the text that it gave, or its error.
type outcome struct {
	text string
	err  error
}

func (s session) call(statement string) (o outcome) {
	s.Helper()
	var text *string
	o.err = s.db.QueryRow(s.Context(), statement).Scan(&text)
	if text != nil {
		o.text = *text
	}
	return o
}

func shows(text string) bool {
	return strings.Contains(text, secret) || strings.Contains(text, hex.EncodeToString([]byte(secret)))
}

// requireNothingTaken fails when a walk has changed the broker or was shown what is another role's.
func requireNothingTaken(t *testing.T, b *broker, before string, seen map[string]string) {
	t.Helper()
	if after := b.everything(); after != before {
		t.Errorf("the broker was changed:\n%s", difference(before, after))
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if shows(seen[name]) {
			t.Errorf("%s shows what is somebody else's: %s", name, clip(seen[name]))
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d functions and views gave an answer or an error", len(seen))
	}
}

func newWalk(t *testing.T) (*broker, []entry) {
	t.Helper()
	b := newWorld(t)
	b.exec(walkScene)
	b.install("Key", value[string](b.session, "select current_user::text"), true)
	return b, b.entries()
}

// Everything that every role can call is called by a role that was granted nothing.
func TestRightsWalkByARoleWithoutGrants(t *testing.T) {
	t.Parallel()
	b, entries := newWalk(t)
	s := b.as(b.role("nobody"))
	before := b.everything()
	seen := map[string]string{}
	for _, e := range entries {
		o := s.call(e.Statement)
		seen[e.Name] = o.text
		if o.err != nil {
			seen[e.Name] = o.err.Error()
		}
	}
	requireNothingTaken(t, b, before, seen)
}

// The same inside ANALYZE by a superuser, in a function of the table's owner.
func TestRightsWalkInsideAnalyze(t *testing.T) {
	t.Parallel()
	b, entries := newWalk(t)
	_, mallory := b.mallory()
	mallory.exec("create table m.call (name text, statement text)")
	for _, e := range entries {
		mallory.exec("insert into m.call (name, statement) values ($1, $2)", e.Name, e.Statement)
	}
	mallory.plant(walkInside)
	before := b.everything()
	b.exec("analyze m.t")
	requireNothingTaken(t, b, before, b.walked())
}

// The same in a function that is SECURITY DEFINER and belongs to a role without rights, called by a superuser.
func TestRightsWalkInADefinerFunction(t *testing.T) {
	t.Parallel()
	b, entries := newWalk(t)
	_, mallory := b.mallory()
	mallory.exec("create table m.call (name text, statement text)")
	for _, e := range entries {
		mallory.exec("insert into m.call (name, statement) values ($1, $2)", e.Name, e.Statement)
	}
	mallory.exec("create function m.walk() returns void language plpgsql security definer as $f$begin " + walkInside + " end$f$")
	before := b.everything()
	b.exec("select m.walk()")
	requireNothingTaken(t, b, before, b.walked())
}

// walkInside makes every call of the walk inside a function, and records what came of it.
const walkInside = `
	declare
		c record;
		v text;
	begin
		for c in select name, statement from m.call loop
			begin
				execute c.statement into v;
				insert into m.log (role, state, message) values (current_user, c.name, v);
			exception when others then
				insert into m.log (role, state, message) values (current_user, c.name, sqlerrm);
			end;
		end loop;
	end;
`

func (s session) walked() map[string]string {
	s.Helper()
	rows, err := s.db.Query(s.Context(), "select state, coalesce(message, '') from m.log where state <> 'done'")
	if err != nil {
		s.Fatal(err)
	}
	seen := map[string]string{}
	var name, text string
	_, err = pgx.ForEachRow(rows, []any{&name, &text}, func() error {
		seen[name] = text
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	return seen
}

// The same in a session whose role was dropped: it has no rights left, and no message states otherwise.
func TestRightsWalkByADroppedRole(t *testing.T) {
	t.Parallel()
	b, entries := newWalk(t)
	login := b.role("login")
	gone := value[string](b.session, "select 'gone ' || current_database()")
	b.exec("create role " + quote(gone))
	b.exec("grant " + quote(gone) + " to " + quote(login))
	s := b.as(login)
	s.exec("set role " + quote(gone))
	b.exec("drop role " + quote(gone))
	before := b.everything()
	seen := map[string]string{}
	for _, e := range entries {
		o := s.call(e.Statement)
		seen[e.Name] = o.text
		if o.err != nil {
			seen[e.Name] = o.err.Error()
		}
	}
	requireNothingTaken(t, b, before, seen)
}

// difference gives the lines that one text has and the other has not.
func difference(before, after string) string {
	old, now := strings.Split(before, "\n"), strings.Split(after, "\n")
	var lines []string
	for _, line := range old {
		if !slices.Contains(now, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range now {
		if !slices.Contains(old, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return strings.Join(lines, "\n")
}

func requireRefused(t *testing.T, err error, number int) {
	t.Helper()
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.Code != sqlState(number) {
		t.Errorf("got %v, want error %d", err, number)
	}
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }

func requireCode(t *testing.T, err error, code string) {
	t.Helper()
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.Code != code {
		t.Errorf("got %v, want SQLSTATE %s", err, code)
	}
}

// asksWithoutRefusing are the functions that need the caller and refuse nobody, with the reason.
var asksWithoutRefusing = map[string]string{
	"parley.begin_and_send": "begin_dialog refuses, which is given the caller as it is", "parley.begin_and_send_binary": "the same",
	"parley.send_and_end": "the same", "parley.send_binary_and_end": "the same",
	// As long as there is no conversation to give; TestRightsOfGetConversation has one.
	"parley.get_conversation": "the same", "parley.warm_conversations": "the same", "parley.receive_reply": "receive refuses",
}

// A walk proves nothing about a check that its call does not come to. So each function is made to take a superuser for its caller, one
// after the other: then the role without rights must get another answer.
func TestRightsWalkComesToEachCheck(t *testing.T) {
	t.Parallel()
	b, entries := newWalk(t)
	nobody := b.role("nobody")
	super := value[string](b.session, "select format('%s::oid', oid) from pg_roles where rolname = current_user")
	s := b.connection()
	answer := func(statement string) string {
		s.exec("savepoint answer")
		s.exec("set local role " + quote(nobody))
		o := s.call(statement)
		s.exec("rollback to savepoint answer")
		if o.err != nil {
			return o.err.Error()
		}
		return o.text
	}
	tried := 0
	for _, e := range entries {
		name, _, isFunction := strings.Cut(e.Name, "(")
		if !isFunction || asksWithoutRefusing[name] != "" {
			continue
		}
		definition := value[string](b.session, "select pg_get_functiondef($1::regprocedure)", e.Name)
		credulous := strings.ReplaceAll(definition, "parley._p_caller(caller)", super)
		if credulous == definition {
			continue
		}
		tried++
		s.exec("begin")
		honest := answer(e.Statement)
		s.exec(credulous)
		if got := answer(e.Statement); got == honest {
			t.Errorf("%s says the same to a superuser and to nobody: %s\n%s", e.Name, clip(honest), clip(e.Statement))
		}
		s.exec("rollback")
	}
	if tried < 60 {
		t.Errorf("only %d functions were tried", tried)
	}
}
