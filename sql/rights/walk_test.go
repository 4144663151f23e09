package rights_test

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

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/sql"
)

// entry is a function or a view that every role can reach.
type entry struct {
	Name      string
	Statement string // calls it, with every argument of its own
}

// entriesOf lists what every role can reach in some schemas, those of the broker where none is named, with a call of each. Nothing is named:
// what is new is in it.
func entriesOf(s sqltest.Session, schemas ...string) []entry {
	s.Helper()
	if len(schemas) == 0 {
		schemas = sql.Wings()[0].Schemas()
	}
	return entriesWith(s, func(function, argument string) (string, bool) {
		literal, ok := literalsOf[function][argument]
		return literal, ok
	}, schemas...)
}

// entriesWith does the same with arguments that a function gives; what it does not give is made from name and type.
func entriesWith(s sqltest.Session, own func(function, argument string) (literal string, ok bool), schemas ...string) []entry {
	s.Helper()
	rows, err := s.DB.Query(s.Context(), `
		select format('%s.%I', p.pronamespace::regnamespace, p.proname), coalesce(p.proargnames, '{}'), coalesce(p.proargmodes::text[], '{}'),
			array(select format_type(t.type, null) from unnest(p.proargtypes) with ordinality as t (type, n) order by t.n),
			p.prokind::text, p.prorettype = 'trigger'::regtype
		from pg_proc as p
		where p.pronamespace::regnamespace::text = any ($1)
			and has_function_privilege('public', p.oid, 'execute')
		order by p.oid::regprocedure::text`, schemas)
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
			literal, ok := own(name, argument)
			if ok {
				literal += "::" + types[i]
			} else {
				literal = literalFor(s, argument, types[i])
			}
			arguments = append(arguments, fmt.Sprintf("%s => %s", sqltest.Quote(argument), literal))
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
	for _, view := range sqltest.Values[string](s, `
		select c.oid::regclass::text
		from pg_class as c
		where c.relnamespace::regnamespace::text = any ($1) and c.relkind in ('v', 'm', 'r')
			and has_table_privilege('public', c.oid, 'select')
		order by 1`, schemas) {
		all = append(all, entry{Name: view, Statement: "select string_agg(r::text, ' ') from " + view + " as r"})
	}
	return all
}

func literalFor(s sqltest.Session, argument, of string) string {
	s.Helper()
	given, ok := literals[argument]
	switch {
	case ok && strings.Contains(given, "public.given"):
		return "array[" + sqltest.Value[string](s, "select literal from public.given") + "]"
	case of == "uuid" && !ok:
		return sqltest.Value[string](s, "select literal from public.given")
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

func call(s sqltest.Session, statement string) (o outcome) {
	s.Helper()
	var text *string
	o.err = s.DB.QueryRow(s.Context(), statement).Scan(&text)
	if text != nil {
		o.text = *text
	}
	return o
}

func shows(text string) bool {
	return strings.Contains(text, secret) || strings.Contains(text, hex.EncodeToString([]byte(secret)))
}

// requireNothingTaken fails when a walk has changed the broker or was shown what is another role's.
func requireNothingTaken(t *testing.T, b *sqltest.Broker, before string, seen map[string]string) {
	t.Helper()
	b.Exec("delete from parley._p_operator_action") // each role may record what it does itself
	if after := b.Everything(); after != before {
		t.Errorf("the broker was changed:\n%s", sqltest.Difference(before, after))
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if shows(seen[name]) {
			t.Errorf("%s shows what is somebody else's: %s", name, sqltest.Clip(seen[name]))
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d functions and views gave an answer or an error", len(seen))
	}
}

func newWalk(t *testing.T) (*sqltest.Broker, []entry) {
	t.Helper()
	b := sqltest.NewWorld(t)
	b.Exec(walkScene)
	b.Install("Key", sqltest.Value[string](b.Session, "select current_user::text"), true)
	return b, entriesOf(b.Session)
}

// Everything that every role can call is called by a role that was granted nothing.
func TestRightsWalkByARoleWithoutGrants(t *testing.T) {
	t.Parallel()
	b, entries := newWalk(t)
	s := b.As(b.Role("nobody"))
	before := b.Everything()
	seen := map[string]string{}
	for _, e := range entries {
		o := call(s, e.Statement)
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
	_, mallory := newMallory(b)
	mallory.Exec("create table m.call (name text, statement text)")
	for _, e := range entries {
		mallory.Exec("insert into m.call (name, statement) values ($1, $2)", e.Name, e.Statement)
	}
	plant(mallory, walkInside)
	before := b.Everything()
	b.Exec("analyze m.t")
	requireNothingTaken(t, b, before, walked(b.Session))
}

// The same in a function that is SECURITY DEFINER and belongs to a role without rights, called by a superuser.
func TestRightsWalkInADefinerFunction(t *testing.T) {
	t.Parallel()
	b, entries := newWalk(t)
	_, mallory := newMallory(b)
	mallory.Exec("create table m.call (name text, statement text)")
	for _, e := range entries {
		mallory.Exec("insert into m.call (name, statement) values ($1, $2)", e.Name, e.Statement)
	}
	mallory.Exec("create function m.walk() returns void language plpgsql security definer as $f$begin " + walkInside + " end$f$")
	before := b.Everything()
	b.Exec("select m.walk()")
	requireNothingTaken(t, b, before, walked(b.Session))
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

func walked(s sqltest.Session) map[string]string {
	s.Helper()
	rows, err := s.DB.Query(s.Context(), "select state, coalesce(message, '') from m.log where state <> 'done'")
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
	login := b.Role("login")
	gone := sqltest.Value[string](b.Session, "select 'gone ' || current_database()")
	b.Exec("create role " + sqltest.Quote(gone))
	b.Exec("grant " + sqltest.Quote(gone) + " to " + sqltest.Quote(login))
	s := b.As(login)
	s.Exec("set role " + sqltest.Quote(gone))
	b.Exec("drop role " + sqltest.Quote(gone))
	before := b.Everything()
	seen := map[string]string{}
	for _, e := range entries {
		o := call(s, e.Statement)
		seen[e.Name] = o.text
		if o.err != nil {
			seen[e.Name] = o.err.Error()
		}
	}
	requireNothingTaken(t, b, before, seen)
}

func requireRefused(t *testing.T, err error, number int) {
	t.Helper()
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.Code != sqltest.SQLState(number) {
		t.Errorf("got %v, want error %d", err, number)
	}
}

func requireCode(t *testing.T, err error, code string) {
	t.Helper()
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.Code != code {
		t.Errorf("got %v, want SQLSTATE %s", err, code)
	}
}

// asksWithoutRefusing are the functions that need the caller and refuse nobody, with the reason.
var asksWithoutRefusing = map[string]string{
	"parley.begin_and_send":         "begin_dialog refuses, which is given the caller as it is",
	"parley.send_and_end":           "the same",
	"parley.record_operator_action": "a record of the caller's own, which says what a program reports of itself",
	// As long as there is no conversation to give; TestRightsOfGetConversation has one.
	"parley.get_conversation": "the same", "parley.warm_conversations": "the same", "parley.receive_reply": "receive refuses",
}

// A walk proves nothing about a check that its call does not come to. So each function is made to take a superuser for its caller, one
// after the other: then the role without rights must get another answer.
func TestRightsWalkComesToEachCheck(t *testing.T) {
	t.Parallel()
	b, entries := newWalk(t)
	nobody := b.Role("nobody")
	super := sqltest.Value[string](b.Session, "select format('%s::oid', oid) from pg_roles where rolname = current_user")
	s := b.Connection()
	answer := func(statement string) string {
		s.Exec("savepoint answer")
		s.Exec("set local role " + sqltest.Quote(nobody))
		o := call(s, statement)
		s.Exec("rollback to savepoint answer")
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
		definition := sqltest.Value[string](b.Session, "select pg_get_functiondef($1::regprocedure)", e.Name)
		credulous := strings.ReplaceAll(definition, "parley._p_caller(caller)", super)
		if credulous == definition {
			continue
		}
		tried++
		s.Exec("begin")
		honest := answer(e.Statement)
		s.Exec(credulous)
		if got := answer(e.Statement); got == honest {
			t.Errorf("%s says the same to a superuser and to nobody: %s\n%s", e.Name, sqltest.Clip(honest), sqltest.Clip(e.Statement))
		}
		s.Exec("rollback")
	}
	if tried < 60 {
		t.Errorf("only %d functions were tried", tried)
	}
}
