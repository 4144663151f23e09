package rights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/sql"
)

// A binding to a table inserts as the owner of the schema: code of somebody else that the insert would run is refused, when the table is
// bound and when it has come since.
func TestTableOfABindingRunsNobodyElsesCode(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	role, mallory := newMallory(b)
	b.Exec("grant usage on schema m to public")
	mallory.Exec(`
		create function m.reached(a text) returns boolean immutable language plpgsql as $$ begin return true; end$$;
		create function m.recorded() returns trigger language plpgsql as $$ begin return new; end$$;
		create domain m.word as text check (m.reached(value));
		create function m.given() returns text language sql as $$ select 'x' $$`)
	tx := b.Connection()
	const insert = `select parley_mail._p_insert_into_table('public.box', '{"sender": "a", "subject": "b"}')`
	bind := func(s sqltest.Session, name string) {
		s.Exec(`select parley_mail.create_object('service binding', $1, jsonb_build_object('pattern', $1 || '@example.org', 'table', 'public.box'))`, name)
	}
	for name, change := range map[string]string{
		"trigger":   "create trigger t before insert on public.box for each row execute function m.recorded()",
		"to come":   "grant trigger on public.box to " + sqltest.Quote(role),
		"everybody": "grant all on public.box to public",
		"domain":    "alter table public.box alter subject type m.word",
		"array":     "alter table public.box add more m.word[]",
		"composite": "create type public.pair as (a int, b m.word); alter table public.box add more public.pair",
		"default":   "alter table public.box add more text default m.given()",
		"check":     "alter table public.box add check (m.reached(subject))",
		"index":     "create index on public.box (m.reached(subject))",
		"policy":    "create policy p on public.box with check (m.reached(subject))",
		"owner":     "alter table public.box owner to " + sqltest.Quote(role),
		"schema":    "alter schema public owner to " + sqltest.Quote(role),
		"partition": "create table public.part partition of public.box default; alter table public.part owner to " + sqltest.Quote(role),
	} {
		t.Run(name, func(t *testing.T) {
			tx.Exec("begin")
			defer tx.Rollback()
			partitioned := ""
			if name == "partition" {
				partitioned = " partition by list (sender); create table public.first partition of public.box for values in ('a')"
			}
			tx.Exec("create table public.box (sender text, subject text)" + partitioned)
			bind(tx, "before")
			tx.Exec(insert)
			tx.Exec(change)
			tx.Exec("savepoint changed")
			_, err := tx.DB.Exec(t.Context(), insert)
			requireCode(t, err, "42501") // insufficient_privilege
			tx.Exec("rollback to changed")
			tx.RefusesMail(3, `select parley_mail.create_object('service binding', 'after', '{"pattern": "after@example.org", "table": "public.box"}')`)
		})
	}
}

// The table is that which has the name when it is locked.
func TestTableThatLosesItsNameMeanwhileGetsNoMail(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec("create table public.box (sender text, subject text)")
	renaming, w := b.Begin(), b.Connection()
	renaming.Exec("alter table public.box rename to old")
	renaming.Exec("create table public.box (sender text, subject text)")
	backend := sqltest.Value[int32](w, "select pg_backend_pid()")
	inserted := make(chan error, 1)
	go func() {
		_, err := w.DB.Exec(t.Context(), `select parley_mail._p_insert_into_table('public.box', '{"sender": "a"}')`)
		inserted <- err
	}()
	b.WaitUntil("select exists (select from pg_locks where pid = $1 and not granted)", backend)
	renaming.Commit()
	requireCode(t, parleytest.Receive(t, inserted, "the end of the insert"), "42501")
	sqltest.Equal(b.Session, 0, "select count(*)::int from (table public.box union all table public.old) as t")
}

// A time that is infinite, or has a year that JSON cannot have, would stop its readers: the reports of all and the lists of operators.
func TestNoMessageHasATimeThatProgramsCannotRead(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	for _, arguments := range []string{
		"expires => 'infinity'", "expires => '12000-01-01'", "expires => '-infinity'", "not_before => 'infinity'", "not_before => '12000-01-01', expires => '12000-01-02'",
	} {
		b.RefusesMail(10, "select parley_mail.send('ann', array['x@example.com'], 'a', 'b', "+arguments+")")
		b.RefusesMail(10, "select parley_mail.send_batch('ann', array['x@example.com'], 'a', 'b', "+arguments+")")
	}
	for _, arguments := range []string{"expires => 'infinity'", "expires => '-infinity'", "next_attempt => 'infinity'", "expires => '0002-01-01 BC'"} {
		b.RefusesMail(10, "select parley_mail.change_messages('{}', "+arguments+")")
	}
}

// The audit is part of the reader's transaction, the log of the server is not.
func TestReadingOfContentIsLoggedWhateverTheReaderRollsBack(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Sent("a", "x@example.com")
	reader := b.Role("reader")
	b.Exec("select parley_mail.grant_right('READ_CONTENT', $1)", reader)
	b.Exec("select parley_mail.suspend_messages('{}')")
	s, notices := b.Noticing(reader)
	s.Exec("set client_min_messages = log")
	s.Exec("begin")
	s.Exec("select parley_mail.read_message($1)", id)
	s.Exec("select parley_mail.export_messages('{}')")
	s.Exec("rollback")
	var logged []string
	for _, notice := range *notices {
		if notice.Severity == "LOG" && strings.Contains(notice.Message, reader) {
			logged = append(logged, notice.Message)
		}
	}
	if len(logged) != 2 {
		t.Errorf("logged %q", logged)
	}
}

// mailWalkScene gives every function of mail something of another role to work on.
const mailWalkScene = `
	select parley_mail.send('ann', array['x@far.example'], 'TOPSECRET 1', 'TOPSECRET 2', tag => 'TOPSECRET 3');
	select parley_mail._p_categorize(100);
	select parley_mail.put_attachment('TOPSECRET');
	select parley_mail.set_quota('pg_monitor', messages_per_minute => 7);
	select parley_mail.hold_domain('topsecret.example', 'TOPSECRET 4');
	select parley_mail.alter_object('send connector', 'internet', '{"username": "TOPSECRET", "password": "TOPSECRET 5"}');
	select parley_mail.create_object('credential', 'TOPSECRET', '{"password": "TOPSECRET 6"}');
	select parley_mail.send('ann', array['y@far.example'], 'TOPSECRET 7', 'waits');
	insert into parley_mail._p_daemon (name, role, host) values ('TOPSECRET 8', 'x', 'x');
	insert into parley_store._p_pressure_change (system, node, resource, event_id, from_level, to_level, message)
	values ('mail', 'TOPSECRET 9', 'x', 15004, 'NORMAL', 'HIGH', 'TOPSECRET 10');
	insert into parley_mail._p_kept_body (body_id, target_table, target_name, body, kept_until)
	values (1, 'parley_mail._p_kept_body'::regclass, 'parley_mail._p_kept_body', 'TOPSECRET 11', now() + '1 day')`

// mailAsksWithoutShowing are the functions whose check the walk does not come to, with the reason.
var mailAsksWithoutShowing = map[string]string{
	"parley_mail.attachment(text, bytea, text, text)":        "it needs no right",
	"parley_mail.read_part(jsonb, text, parley.caller)":      "it reads what its caller gives it, and by read_raw",
	"parley_mail.stored_attachment(text, bytea, text, text)": "it needs no right",
	"parley_mail.remove_attachment(bytea, parley.caller)":    "it finds what its caller has stored; TestStoredAttachmentIsThatOfItsRoleAlone has others call it",
	"parley_mail._p_pressure_history(parley.caller)":         "a daemon alone makes what it shows; it asks as _p_pressure_changes does",
}

// onTheBroker gives the schemas of the systems that stand on the broker.
func onTheBroker() []string {
	return slices.DeleteFunc(sql.Schemas(), func(schema string) bool { return slices.Contains(sql.Wings()[0].Schemas(), schema) })
}

// mailEverything gives all rows of mail and of the store.
func mailEverything(s sqltest.Session) string {
	s.Helper()
	var lines []string
	for _, table := range sqltest.Values[string](s, `
		select c.oid::regclass::text from pg_class as c
		where c.relnamespace::regnamespace::text = any ($1) and c.relkind = 'r' order by 1`, onTheBroker()) {
		for _, row := range sqltest.Values[string](s, "select t::text from "+table+" as t order by 1") {
			lines = append(lines, table+" "+row)
		}
	}
	return strings.Join(lines, "\n")
}

// A role that was granted nothing calls everything of mail and of the store that every role can call, with arguments and with nulls. Each
// function that takes a superuser for its caller gives another answer, so the calls come to its check.
func TestRightsWalkOfMail(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(mailWalkScene)
	entries := entriesOf(b.Session, slices.Concat(sql.Wings()[1].Schemas(), sql.Wings()[2].Schemas())...)
	nobody, viewer := b.Role("nobody"), b.Role("viewer")
	b.Exec("select parley_mail.grant_right('VIEW', $1)", viewer)
	s := b.As(nobody)
	before, answers := mailEverything(b.Session), map[string]string{}
	for _, e := range entries {
		for _, statement := range []string{e.Statement, withNulls(e)} {
			o := call(s, statement)
			if shows(o.text) || o.err != nil && shows(o.err.Error()) {
				t.Errorf("%s shows what is somebody else's: %s %v", statement, sqltest.Clip(o.text), o.err)
			}
		}
		o := call(s, e.Statement)
		answers[e.Name] = o.text
		if o.err != nil {
			answers[e.Name] = o.err.Error()
		}
	}
	if after := mailEverything(b.Session); after != before {
		t.Errorf("mail was changed:\n%s", sqltest.Difference(before, after))
	}
	super := sqltest.Value[string](b.Session, "select format('%s::oid', oid) from pg_roles where rolname = current_user")
	tried := 0
	tx := b.Connection()
	for _, e := range entries {
		if _, _, isFunction := strings.Cut(e.Name, "("); !isFunction || mailAsksWithoutShowing[e.Name] != "" {
			continue
		}
		definition := sqltest.Value[string](b.Session, "select pg_get_functiondef($1::regprocedure)", e.Name)
		credulous := strings.ReplaceAll(definition, "parley.caller_role(caller)", super)
		if credulous == definition {
			t.Errorf("%s does not ask who calls", e.Name)
			continue
		}
		tried++
		tx.Exec("begin")
		tx.Exec(credulous)
		tx.Exec("set local role " + sqltest.Quote(nobody))
		o := call(tx, e.Statement)
		answer := o.text
		if o.err != nil {
			answer = o.err.Error()
		}
		if answer == answers[e.Name] {
			t.Errorf("%s says the same to a superuser and to nobody: %s\n%s", e.Name, sqltest.Clip(answer), sqltest.Clip(e.Statement))
		}
		tx.Rollback()
	}
	if tried < 60 {
		t.Errorf("only %d functions were tried", tried)
	}
}

// withNulls calls a function with nothing but nulls; a view as it is.
func withNulls(e entry) string {
	name, types, isFunction := strings.Cut(e.Name, "(")
	types = strings.TrimSuffix(types, ")")
	if !isFunction || types == "" {
		return e.Statement
	}
	var nulls []string
	for of := range strings.SplitSeq(types, ", ") {
		if of != "parley.caller" {
			nulls = append(nulls, "null::"+of)
		}
	}
	return "select string_agg(r::text, ' ') from " + name + "(" + strings.Join(nulls, ", ") + ") as r"
}
