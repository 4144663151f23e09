package postgresql_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/postgresql"
)

const inserting = `{"table": "shop.orders_in", "columns": {"id": {"property": "MessageID"}, "customer": {"field": "/customer/name"},
	"amount": {"field": "/amount"}, "body": {"body": "text"}, "raw": {"body": "bytes"}, "note": {"property": "urn:p#Shop"}}}`

// sendIn sends messages in a transaction that commits.
func sendIn(t *testing.T, pool *pgxpool.Pool, s adapter.TransactionSender, messages ...*adapter.Message) []adapter.Delivery {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	var before, after string
	const settings = "select current_setting('search_path') || ' ' || current_setting('role')"
	if err := tx.QueryRow(t.Context(), settings).Scan(&before); err != nil {
		t.Fatal(err)
	}
	deliveries, err := s.SendIn(t.Context(), tx, messages)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(t.Context(), settings).Scan(&after); err != nil || after != before {
		t.Errorf("the settings of the host have become %s from %s, %v", after, before, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return deliveries
}

func TestAMessageBecomesARowInTheTransactionOfTheHost(t *testing.T) {
	t.Parallel()
	pool := database(t)
	s := newSender(t, pool, "local", inserting)
	if !s.InTransaction() {
		t.Error("the port does not take part in the transaction of the host")
	}
	const body = `{"customer": {"name": "Zoë"}, "amount": 12.50}`
	if d := sendIn(t, pool, s, message(7, body)); d[0].Err != nil {
		t.Fatal(d[0].Err)
	}
	got := value[string](t, pool, `select row(id, customer, amount, body, convert_from(raw, 'UTF8') = body::text, note)::text from shop.orders_in`)
	if want := `(7,Zoë,12.50,"{""amount"": 12.50, ""customer"": {""name"": ""Zoë""}}",f,"north'; drop table taken; --")`; got != want {
		t.Errorf("the row is %s, want %s", got, want)
	}
	if got := value[string](t, pool, `select convert_from(raw, 'UTF8') from shop.orders_in`); got != body {
		t.Errorf("the bytes are %s", got)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d, err := s.SendIn(t.Context(), tx, []*adapter.Message{message(8, body)}); err != nil || d[0].Err != nil {
		t.Fatal(err, d)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows := value[int](t, pool, "select count(*) from shop.orders_in"); rows != 1 {
		t.Errorf("after a rollback there are %d rows", rows)
	}
}

func TestABadMessageUndoesNoOther(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `create table shop.customers (name text primary key);
		insert into shop.customers values ('a');
		alter table shop.orders_in add foreign key (customer) references shop.customers deferrable initially deferred`)
	s := newSender(t, pool, "local", inserting)
	good := `{"customer": {"name": "a"}, "amount": 1}`
	d := sendIn(t, pool, s, message(1, good), message(2, `{"customer": {"name": "a"}, "amount": 5000}`), message(3, `{"amount": 1}`),
		message(4, "no JSON"), message(5, `{"customer": {"name": "nobody"}, "amount": 1}`), message(6, `{"customer": {"name": "a"}, "amount": "many"}`),
		message(1, good), message(7, "{\"customer\": {\"name\": \"a\"}}\x00"), message(8, good+good), message(9, good))
	for i, delivery := range d {
		if i == 0 || i == len(d)-1 {
			if delivery.Err != nil {
				t.Errorf("message %d was refused: %v", i, delivery.Err)
			}
			continue
		}
		if f := failure(t, delivery.Err); !f.Permanent || f.Code != "send.refused" || f.Unreachable {
			t.Errorf("message %d failed with %+v", i, f)
		} else if strings.Contains(f.Error(), "Failing row") || strings.Contains(f.Error(), "nobody") {
			t.Errorf("message %d: the error shows values: %v", i, f)
		}
	}
	if f := failure(t, d[5].Err); !strings.Contains(f.Error(), "column amount") || !strings.Contains(f.Error(), "write statement and parameters") {
		t.Errorf("a value of another type is refused with %v", f)
	}
	if ids := value[string](t, pool, "select string_agg(id::text, ',' order by id) from shop.orders_in"); ids != "1,9" {
		t.Errorf("written are %s", ids)
	}
}

func TestAnErrorOfTheDefinitionHoldsThePort(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `create function shop.refuse(state text) returns void language plpgsql as $$
		begin raise exception using errcode = state, message = 'no', detail = 'a secret'; end $$`)
	call := func(state string) string {
		return `{"function": "shop.refuse", "arguments": {"state": {"value": "` + state + `"}}}`
	}
	for name, c := range map[string]struct {
		settings               string
		permanent, unreachable bool
	}{
		"no such table":          {`{"table": "shop.none", "columns": {"a": {"property": "MessageID"}}}`, false, true},
		"not qualified":          {`{"statement": "insert into taken (key) values ('a')"}`, false, true},
		"a search path":          {`{"table": "taken", "search_path": "shop", "columns": {"key": {"property": "MessageID"}}}`, false, true},
		"serialization":          {call("40001"), false, false},
		"a deadlock":             {call("40P01"), false, false},
		"a lock":                 {call("55P03"), false, false},
		"a full disk":            {call("53100"), false, true},
		"read only":              {call("25006"), false, true},
		"what the function says": {call("P0001"), true, false},
		"of the setting":         {strings.Replace(call("P0001"), "{", `{"retried": ["P0001"], `, 1), false, false},
		"too slow":               {`{"statement": "select pg_sleep(10)", "statement_timeout": "50 milliseconds"}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := failure(t, sendIn(t, pool, newSender(t, pool, "local", c.settings), message(1, "x"))[0].Err)
			if f.Permanent != c.permanent || f.Unreachable != c.unreachable || strings.Contains(f.Error(), "a secret") {
				t.Errorf("the failure is %+v", f)
			}
		})
	}
	if d := sendIn(t, pool, newSender(t, pool, "local", `{"table": "taken", "search_path": "public", "columns": {"key": {"property": "MessageID"}}}`),
		message(1, "x")); d[0].Err != nil {
		t.Error(d[0].Err)
	}
}

func TestAMessageIsGivenToAFunctionAndToAStatement(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, `create function shop.take(id bigint, "order" jsonb, kind text default 'x') returns integer language sql as $$
		insert into shop.orders_in (id, customer, body, note) values (id, 'f', "order", kind) returning 1 $$`)
	for _, settings := range []string{
		`{"function": "shop.take", "arguments": {"id": {"property": "MessageID"}, "order": {"field": ""}, "kind": {"value": null}}}`,
		`{"statement": "select shop.take($1, jsonb_build_object('a', $2::int + 1), $3)", "parameters": [{"property": "MessageID"}, {"field": "/a/0"}, {"value": true}]}`,
	} {
		exec(t, pool, "truncate shop.orders_in")
		if d := sendIn(t, pool, newSender(t, pool, "local", settings), message(5, `{"a": [41]}`)); d[0].Err != nil {
			t.Errorf("%s: %v", settings, d[0].Err)
			continue
		}
		if got := value[string](t, pool, "select body || coalesce(note, '-') from shop.orders_in"); got != `{"a": [41]}-` && got != `{"a": 42}true` {
			t.Errorf("%s wrote %s", settings, got)
		}
	}
}

func TestAMessageThatComesTwiceIsOneRowOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	pool := database(t)
	address := addressOf(t, pool)
	for _, conflict := range []string{"nothing", "update"} {
		exec(t, pool, "truncate shop.orders_in")
		s := newSender(t, pool, address, `{"tls": "disable", "table": "shop.orders_in", "key": ["id"], "on_conflict": "`+conflict+`",
			"columns": {"id": {"property": "MessageID"}, "customer": {"body": "text"}}}`)
		if s.InTransaction() {
			t.Error("the port takes part in the transaction of the host")
		}
		for _, body := range []string{"first", "second"} {
			for _, d := range s.Send(t.Context(), []*adapter.Message{message(1, body), message(2, body), message(3, "a\x00")}) {
				if f, is := errors.AsType[*adapter.Failure](d.Err); d.Err != nil && (!is || !f.Permanent) {
					t.Fatal(d.Err)
				}
			}
		}
		want := map[string]string{"nothing": "1first,2first", "update": "1second,2second"}[conflict]
		if got := value[string](t, pool, "select string_agg(id || customer, ',' order by id) from shop.orders_in"); got != want {
			t.Errorf("%s wrote %s", conflict, got)
		}
	}
}

func TestADatabaseThatIsAwayIsUnreachable(t *testing.T) {
	t.Parallel()
	settings := `{"tls": "disable", "function": "f", "arguments": {"id": {"property": "MessageID"}}}`
	s := newSender(t, nil, "postgresql://me@127.0.0.1:1/shop", settings)
	if f := failure(t, s.Send(t.Context(), []*adapter.Message{message(1, "x")})[0].Err); !f.Unreachable || f.Code != "send.unreachable" {
		t.Errorf("the failure is %+v", f)
	}
	e := endpoint(t, nil, "postgresql://me@127.0.0.1:1/shop", settings)
	e.Permission = adapter.Permission{}
	if _, err := postgresql.Kind.NewSender(e); !errors.Is(err, adapter.ErrNotPermitted) {
		t.Errorf("a port that may connect nowhere gave %v", err)
	}
}

func TestABodyThatCannotBeReadIsAFailureOfItsPipeline(t *testing.T) {
	t.Parallel()
	pool := database(t)
	cause := &adapter.Failure{Code: "send.pipeline", Err: errors.New("record 5"), Permanent: true}
	m := message(1, "")
	m.Open = func(context.Context) (io.ReadCloser, error) { return nil, cause }
	if d := sendIn(t, pool, newSender(t, pool, "local", inserting), m); !errors.Is(d[0].Err, cause) {
		t.Errorf("the failure is %v", d[0].Err)
	}
}

func TestSettingsThatAreWrongAreRefusedBeforeTheyRun(t *testing.T) {
	t.Parallel()
	in, out := adapter.Receive, adapter.Send
	const elsewhere = "postgresql://me@db.example/shop"
	for name, c := range map[string]struct {
		direction adapter.Direction
		address   string
		settings  string
		secrets   []string
		path      string
	}{
		"no statement":                {in, "local", `{}`, nil, "settings.statement"},
		"two statements":              {in, "local", `{"statement": "delete from a returning *; drop table b"}`, nil, "settings.statement"},
		"a commit":                    {in, "local", `{"statement": "commit"}`, nil, "settings.statement"},
		"a role":                      {in, "local", `{"statement": "reset role"}`, nil, "settings.statement"},
		"a setting":                   {in, "local", `{"statement": "select SET_config('role', 'none', true)", "takes": true}`, nil, "settings.statement"},
		"a setting in disguise":       {in, "local", `{"statement": "select U&\"set\\005fconfig\"('role', 'none', true)", "takes": true}`, nil, "settings.statement"},
		"a statement in a text":       {in, "local", `{"statement": "select query_to_xml('x', true, true, '')", "takes": true}`, nil, "settings.statement"},
		"a copy":                      {in, "local", `{"statement": "copy t to '/tmp/x'"}`, nil, "settings.statement"},
		"a commit behind a comment":   {in, "local", `{"statement": "/* select */ commit -- delete"}`, nil, "settings.statement"},
		"two parameters":              {in, "local", `{"statement": "delete from a where x = $2 returning *"}`, nil, "settings.statement"},
		"one that only reads":         {in, "local", `{"statement": "select * from a for update skip locked"}`, nil, "settings.statement"},
		"a mark without a key":        {in, "local", `{"statement": "select * from a", "after_statement": "update a set b = $1"}`, nil, "settings.after_statement"},
		"a mark without a parameter":  {in, "local", `{"statement": "select * from a", "key_column": "a", "after_statement": "delete from a"}`, nil, "settings.after_statement"},
		"no key of another database":  {in, elsewhere, `{"statement": "delete from a returning *"}`, []string{"password"}, "settings.key_column"},
		"no password":                 {in, elsewhere, `{"statement": "delete from a returning *", "key_column": "a"}`, nil, "secrets"},
		"a password in clear":         {in, "postgresql://me:x@db/shop", `{"statement": "delete from a returning *", "key_column": "a"}`, nil, "address"},
		"parameters of a connection":  {in, "postgresql://me@db/shop?sslkey=/etc/key", `{"statement": "delete from a returning *", "key_column": "a"}`, nil, "address"},
		"a socket":                    {in, "postgresql://me@%2Frun/shop", `{"statement": "delete from a returning *", "key_column": "a"}`, nil, "address"},
		"a property without a name":   {in, "local", `{"statement": "delete from a returning *", "promoted": {"a": "B"}}`, nil, "settings.promoted.a"},
		"nothing to write":            {out, "local", `{}`, nil, "settings"},
		"a table without its schema":  {out, "local", `{"table": "t", "columns": {"a": {"body": "text"}}}`, nil, "settings.table"},
		"two things to write":         {out, "local", `{"table": "s.t", "function": "f"}`, nil, "settings"},
		"a table of three parts":      {out, "local", `{"table": "a.b.c", "columns": {"a": {"body": "text"}}}`, nil, "settings.table"},
		"no columns":                  {out, "local", `{"table": "s.t"}`, nil, "settings.columns"},
		"a conflict without a key":    {out, "local", `{"table": "s.t", "columns": {"a": {"body": "text"}}, "on_conflict": "update"}`, nil, "settings.key"},
		"a key without a value":       {out, "local", `{"table": "s.t", "columns": {"a": {"body": "text"}}, "on_conflict": "update", "key": ["b"]}`, nil, "settings.key"},
		"a parameter too few":         {out, "local", `{"statement": "select f($1, $2)", "parameters": [{"body": "text"}]}`, nil, "settings.parameters"},
		"a source that is none":       {out, "local", `{"table": "s.t", "columns": {"a": {"bodies": "text"}}}`, nil, "settings.columns"},
		"a pointer without its slash": {out, "local", `{"table": "s.t", "columns": {"a": {"field": "a"}}}`, nil, "settings.columns"},
		"nothing to know it by":       {out, elsewhere, `{"function": "f", "arguments": {"a": {"body": "text"}}}`, []string{"password"}, "settings.arguments"},
		"a state that is none":        {out, "local", `{"function": "f", "retried": ["4"]}`, nil, "settings.retried"},
		"a secret that it has not":    {out, "local", `{"function": "f"}`, []string{"token"}, "secrets.token"},
	} {
		t.Run(name, func(t *testing.T) {
			problems := postgresql.Kind.Check(c.direction, c.address, json.RawMessage(c.settings), c.secrets)
			if len(problems) == 0 || strings.Join(problems[0].Path, ".") != c.path || problems[0].Message == "" || problems[0].Remedy == "" {
				t.Errorf("the problems are %+v, want one at %s", problems, c.path)
			}
		})
	}
}
