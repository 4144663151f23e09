package flow_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/flow"
	"github.com/parley-broker/parley/parleytest"
)

// definitions have the port ERP, which gets orders of more than 100, and a receive port.
const definitions = `
	select parley_flow.apply(jsonb_build_object(
		'application', '{"Shop": {}}'::jsonb, 'host', jsonb_build_object('Send', jsonb_build_object('role', current_user)),
		'property schema', '{"http://shop.example/properties": {"application": "Shop", "properties": {"Amount": {"type": "number"}}}}'::jsonb,
		'receive port', '{"Orders": {"application": "Shop"}}'::jsonb,
		'send port', '{"ERP": {"application": "Shop", "host": "Send", "adapter": "TCP", "address": "erp.example:9000",
			"filter": [[{"property": "http://shop.example/properties#Amount", "operator": ">", "value": 100}]]}}'::jsonb))`

const amount = "http://shop.example/properties#Amount"

func engine(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := parleytest.Database(t)
	if _, err := pool.Exec(t.Context(), definitions); err != nil {
		t.Fatal(err)
	}
	return pool
}

func value[T any](t *testing.T, pool *pgxpool.Pool, statement string, arguments ...any) (got T) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), statement, arguments...).Scan(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestMessagesAreRoutedAndTheirOutcomesAreGiven(t *testing.T) {
	t.Parallel()
	pool := engine(t)
	published, err := flow.PublishBatch(t.Context(), pool, []flow.Message{
		{Body: []byte("dear"), Type: "urn:s#Order", Properties: map[string]any{amount: 120.5}, Written: map[string]any{"urn:p#Note": "by hand"}},
		{Content: strings.NewReader("cheap"), Properties: map[string]any{amount: 7, "urn:p#Gone": nil}},
		{},
	}, flow.As("Orders"))
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []flow.Outcome
	for _, p := range published {
		outcomes = append(outcomes, p.Outcome)
	}
	if !slices.Equal(outcomes, []flow.Outcome{flow.Published, flow.Suspended, flow.Suspended}) {
		t.Errorf("the outcomes are %v", outcomes)
	}
	for i, want := range []string{"dear urn:s#Order 120.5 Orders", "cheap - 7 Orders", " - - Orders"} {
		got := value[string](t, pool, `select concat_ws(' ', convert_from(parley_flow.read_message(m.message_id), 'UTF8'), coalesce(m.message_type, '-'),
			coalesce(m.promoted ->> $2, '-'), m.receive_port) from parley_flow.messages as m where m.message_id = $1`, published[i].MessageID, amount)
		if got != want {
			t.Errorf("message %d is %q, want %q", i+1, got, want)
		}
	}
	note := value[string](t, pool, "select value #>> '{}' from parley_flow.read_properties($1) where name = 'urn:p#Note' and not is_promoted",
		published[0].MessageID)
	if note != "by hand" {
		t.Errorf("the note is %q", note)
	}
	if none, err := flow.PublishBatch(t.Context(), pool, nil); err != nil || len(none) != 0 {
		t.Errorf("of nothing: %v, %v", none, err)
	}
}

func TestPublishingIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	pool := engine(t)
	rolledBack := errors.New("not this time")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := flow.Publish(t.Context(), tx, flow.Message{Body: []byte("x")}); err != nil {
			return err
		}
		return rolledBack
	})
	if !errors.Is(err, rolledBack) {
		t.Fatal(err)
	}
	if messages := value[int](t, pool, "select count(*)::integer from parley_flow.messages"); messages != 0 {
		t.Errorf("%d messages are there", messages)
	}
}

func TestASecondMessageUnderAKeyIsTheFirstOne(t *testing.T) {
	t.Parallel()
	pool := engine(t)
	first, err := flow.PublishOnce(t.Context(), pool, "4711", flow.Message{Body: []byte("x")})
	if err != nil || first.Outcome != flow.Suspended {
		t.Fatal(first, err)
	}
	second, err := flow.PublishOnce(t.Context(), pool, "4711", flow.Message{Body: []byte("x")})
	if err != nil || second != (flow.Publication{MessageID: first.MessageID, Outcome: flow.Repeated}) {
		t.Errorf("the second is %v, %v", second, err)
	}
	_, err = flow.PublishOnce(t.Context(), pool, "4711", flow.Message{Body: []byte("y")})
	if number, is := flow.ErrorNumber(err); !is || number != flow.KeyOfAnother {
		t.Errorf("of another body: %v", err)
	}
}

func TestErrorsHaveNumbersAndRemedies(t *testing.T) {
	t.Parallel()
	pool := engine(t)
	message := flow.Message{Body: []byte("x")}
	_, noPort := flow.Publish(t.Context(), pool, message, flow.As("Nowhere"))
	_, malformed := flow.Publish(t.Context(), pool, flow.Message{Properties: map[string]any{"MessageType": "x"}})
	if _, err := pool.Exec(t.Context(), "select parley_flow.set_quota(current_user::text, messages_per_minute => 0)"); err != nil {
		t.Fatal(err)
	}
	_, quota := flow.Publish(t.Context(), pool, message)
	if _, err := pool.Exec(t.Context(), "drop schema parley_flow cascade"); err != nil {
		t.Fatal(err)
	}
	_, notInstalled := flow.Publish(t.Context(), pool, message)
	for want, err := range map[int]error{
		flow.PortNotFound: noPort, flow.Malformed: malformed, flow.QuotaExceeded: quota, flow.NotInstalled: notInstalled,
	} {
		e, is := errors.AsType[*flow.Error](err)
		if !is || e.Number != want || e.Hint == "" {
			t.Errorf("%v, want number %d", err, want)
		}
	}
	_, err := flow.Publish(t.Context(), pool, flow.Message{Content: iotest.ErrReader(errors.New("cut"))})
	if err == nil || !strings.Contains(err.Error(), "message 1: read its content: cut") {
		t.Errorf("of content that cannot be read: %v", err)
	}
	if _, err := flow.Publish(t.Context(), pool, flow.Message{Body: []byte("x"), Content: strings.NewReader("y")}); err == nil {
		t.Error("a message with two bodies is published")
	}
}
