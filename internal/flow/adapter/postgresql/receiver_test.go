package postgresql_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter/postgresql"
	"github.com/parley-broker/parley/parleytest"
)

const deleting = `{"poll_interval": "20 milliseconds", "batch_size": 7, "statement": "delete from shop.orders_out where id in ` +
	`(select id from shop.orders_out order by id limit $1 for update skip locked) returning id, customer, amount, done"}`

func TestRowsAreTakenInTheTransactionThatPublishesThem(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `insert into shop.orders_out (id, customer, amount) select n, 'c"' || n, n / 4.0 from generate_series(1, 20) as n`)
	in := &box{}
	e := endpoint(t, pool, "local", deleting)
	stop := run(t, e, in)
	parleytest.Until(t, "all rows are taken", func() bool { return value[int](t, pool, "select count(*) from taken") == 20 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if left := value[int](t, pool, "select count(*) from shop.orders_out"); left != 0 {
		t.Errorf("%d rows are left", left)
	}
	got := value[string](t, pool, "select body || content_type from taken where n = 3")
	if got != `{"id":3,"customer":"c\"3","amount":0.75000000000000000000,"done":false}application/json` {
		t.Errorf("the third message is %s", got)
	}
}

func TestRowsStayWhereTheyAreWhenPublishingFails(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `insert into shop.orders_out (id) values (1), (2)`)
	away := errors.New("the message box is away")
	in := &box{refuse: func([]adapter.Input) error { return away }}
	e := endpoint(t, pool, "local", deleting)
	receiver, err := postgresql.Kind.NewReceiver(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Run(t.Context(), in); !errors.Is(err, away) {
		t.Errorf("the location ended with %v", err)
	}
	if left := value[int](t, pool, "select count(*) from shop.orders_out"); left != 2 {
		t.Errorf("%d rows are left", left)
	}
}

func TestRowsThatAreMarkedAreTakenOnce(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `insert into shop.orders_out (id, customer) select n, 'c' from generate_series(1, 5) as n`)
	in := &box{}
	e := endpoint(t, pool, "local", `{"poll_interval": "20 milliseconds", "key_column": "id", "body_column": "customer", "content_type": "text/x",
		"type_column": "kind", "properties": {"id": "urn:p#Id"}, "promoted": {"done": "urn:p#Done", "amount": "urn:p#Amount"},
		"statement": "select id, customer, 'urn:o#' || 'Order' as kind, done, amount from shop.orders_out where not done order by id limit $1 for update",
		"after_statement": "update shop.orders_out set done = true where id = any ($1)"}`)
	stop := run(t, e, in)
	parleytest.Until(t, "all rows are taken", func() bool { return value[int](t, pool, "select count(*) from taken") == 5 })
	// A row that comes again is known by its key.
	exec(t, pool, "update shop.orders_out set done = false where id = 2")
	parleytest.Until(t, "it is marked again", func() bool { return value[bool](t, pool, "select bool_and(done) from shop.orders_out") })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	got := value[string](t, pool, "select key || type || content_type || body || properties from taken where n = 1")
	want := `row:1urn:o#Ordertext/xc{"written": {"urn:p#Id": 1}, "promoted": {"urn:p#Done": false}}`
	if got != want || value[int](t, pool, "select count(*) from taken") != 5 {
		t.Errorf("taken is %s, want %s", got, want)
	}
}

func TestANotificationIsNotWaitedForButWelcome(t *testing.T) {
	t.Parallel()
	pool := database(t)
	in := &box{}
	settings := strings.Replace(deleting, "20 milliseconds", "1 hour", 1)
	e := endpoint(t, pool, "local", strings.Replace(settings, "{", `{"channel": "Orders out", `, 1))
	stop := run(t, e, in)
	parleytest.Until(t, "the location listens", func() bool {
		return value[int](t, pool, `select count(*) from pg_stat_activity where datname = current_database() and query = 'listen "Orders out"'`) == 1
	})
	exec(t, pool, "insert into shop.orders_out (id) values (1)")
	exec(t, pool, `notify "Orders out"`)
	parleytest.Until(t, "the row is taken", func() bool { return value[int](t, pool, "select count(*) from taken") == 1 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	parleytest.Until(t, "nothing listens any more", func() bool {
		return value[int](t, pool, `select count(*) from pg_stat_activity where datname = current_database() and query = 'listen "Orders out"'`) == 0
	})
}

func TestRowsOfAnotherDatabaseAreKnownByTheirKey(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `insert into shop.orders_out (id) select n from generate_series(1, 5) as n`)
	// A trigger refuses the commit of the first attempt, after the rows were published.
	exec(t, pool, `
		create sequence attempts;
		create function fail_once() returns trigger language plpgsql as $$
		begin
			if nextval('public.attempts') = 1 then
				raise exception 'the commit is lost';
			end if;
			return null;
		end $$;
		create constraint trigger fail_once after delete on shop.orders_out deferrable initially deferred
		for each row execute function fail_once();
	`)
	address := addressOf(t, pool)
	in := &adaptertest.Intake{}
	settings := strings.Replace(deleting, "{", `{"tls": "disable", "key_column": "id", `, 1)
	e := endpoint(t, pool, address, settings)
	e.Pool = nil
	receiver, err := postgresql.Kind.NewReceiver(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Run(t.Context(), in); err == nil || !strings.Contains(err.Error(), "the commit is lost") {
		t.Errorf("the location ended with %v", err)
	}
	if left := value[int](t, pool, "select count(*) from shop.orders_out"); left != 5 || len(in.Bodies()) != 5 {
		t.Errorf("%d rows are left, %d were published", left, len(in.Bodies()))
	}
	stop := run(t, e, in)
	parleytest.Until(t, "all rows are taken away", func() bool { return value[int](t, pool, "select count(*) from shop.orders_out") == 0 })
	if err := stop(); err != nil || len(in.Bodies()) != 5 {
		t.Errorf("the location ended with %v, and %d were published", err, len(in.Bodies()))
	}
}

func TestValuesBecomeJSON(t *testing.T) {
	t.Parallel()
	pool := database(t)
	in := &box{}
	e := endpoint(t, pool, "local", `{"poll_interval": "1 hour", "takes": true, "statement": "select null::text as \"a b\", 1::bigint as n,
		12345678901234567890.5 as big, 'NaN'::float8 as nan, true as yes, '{\"a\": [1]}'::jsonb as j, array[1, null] as list,
		array['x,y', 'z\"'] as texts, array[array[1], array[2]] as matrix, '2026-11-28 12:00+02'::timestamptz as at, '\\x00ff'::bytea as raw,
		'1 day'::interval as i, E'line\\nbreak' as t"}`)
	e.Settings = []byte(strings.ReplaceAll(strings.ReplaceAll(string(e.Settings), "\n", " "), "\t", " "))
	run(t, e, in)
	parleytest.Until(t, "the row is taken", func() bool { return value[int](t, pool, "select count(*) from taken") > 0 })
	want := `{"a b":null,"n":1,"big":12345678901234567890.5,"nan":"NaN","yes":true,"j":{"a": [1]},"list":[1,null],"texts":["x,y","z\""],` +
		`"matrix":"{{1},{2}}","at":"2026-11-28 10:00:00+00","raw":"\\x00ff","i":"P1D","t":"line\nbreak"}`
	if got := value[string](t, pool, "select body from taken limit 1"); got != want {
		t.Errorf("the row is %s, want %s", got, want)
	}
}

func TestABodyColumnIsTheBodyAsItIs(t *testing.T) {
	t.Parallel()
	for column, want := range map[string]string{
		`'\x3c00'::bytea`: "<\x00 application/octet-stream ", `'<a/>'::xml`: "<a/> application/xml utf-8", `'{"a":1}'::json`: `{"a":1} application/json utf-8`,
		`'x'::text`: "x text/plain utf-8", `null::text`: " text/plain utf-8", `''::bytea`: " application/octet-stream ",
	} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			in := &capturing{}
			statement := fmt.Sprintf("select %s as body", column)
			e := endpoint(t, pool, "local", `{"poll_interval": "1 hour", "takes": true, "body_column": "body", "statement": `+strconv.Quote(statement)+`}`)
			if strings.Contains(column, `"`) || strings.Contains(column, `\`) {
				e.Settings = []byte(`{"poll_interval": "1 hour", "takes": true, "body_column": "body", "statement": "` +
					strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(statement) + `"}`)
			}
			receiver, err := postgresql.Kind.NewReceiver(e)
			if err != nil {
				t.Fatal(err)
			}
			_ = receiver.Run(t.Context(), in)
			if got := string(in.input.Body) + " " + in.input.ContentType + " " + in.input.Charset; got != want {
				t.Errorf("the body is %q, want %q", got, want)
			}
		})
	}
}
