package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter/service"
	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// box is a host of tests whose messages are rows, written in the transaction that takes.
type box struct {
	adaptertest.Intake

	mu     sync.Mutex
	refuse func() error
}

func (b *box) TakeIn(ctx context.Context, tx adapter.Transaction, inputs []adapter.Input) ([]adapter.Result, error) {
	results := make([]adapter.Result, len(inputs))
	for i, input := range inputs {
		properties, err := json.Marshal(map[string]any{"promoted": input.Promoted, "written": input.Written})
		if err != nil {
			return nil, err
		}
		_, err = tx.Exec(ctx, "insert into public.taken (type, body, properties) values ($1, $2, $3)", input.MessageType, string(input.Body), properties)
		if err != nil {
			return nil, err
		}
		results[i].Outcome = adapter.Published
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return nil, b.refuse()
	}
	return results, nil
}

type world struct {
	*sqltest.Broker

	role string // of the host, which may do what is granted; the login may do all
}

func newWorld(t *testing.T) *world {
	t.Helper()
	b := sqltest.NewWorld(t)
	w := &world{Broker: b, role: b.Role("host")}
	b.Afterwards("drop owned by " + sqltest.Quote(w.role))
	b.Exec("create table public.taken (n integer generated always as identity, type text, body text, properties jsonb)")
	b.Exec("grant insert, select on public.taken to " + sqltest.Quote(w.role))
	b.Exec("grant usage on schema parley to " + sqltest.Quote(w.role))
	b.Exec("select parley.create_queue('simple', kind => 'SIMPLE')")
	return w
}

func (w *world) endpoint(address, settings string) adapter.Endpoint {
	return adapter.Endpoint{
		Name: "Orders", Address: address, Settings: json.RawMessage(settings), Pool: w.Pool, Role: w.role, Node: "one",
		Logger: (&logtest.Log{}).Logger(slog.LevelDebug),
	}
}

func (w *world) run(in adapter.Intake, address, settings string) (stop func() error) {
	w.Helper()
	receiver, err := service.Kind.NewReceiver(w.endpoint(address, settings))
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- receiver.Run(ctx, in) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return parleytest.Receive(w.T, ended, "the end of the location")
	})
	w.Cleanup(func() { _ = stop() })
	return stop
}

func (w *world) until(what string, query string, want int) {
	w.Helper()
	parleytest.Until(w.T, what, func() bool { return sqltest.Value[int](w.Session, query) == want })
}

func (w *world) put(body []byte, options ...parley.PutOption) {
	w.Helper()
	_, err := parley.Put(w.Context(), w.Pool, "simple", body, options...)
	w.require(err)
}

func (w *world) require(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func TestMessagesOfAServiceAreTakenInTheirOrderAndTheConversationEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Exec("select parley.grant('RECEIVE', 'QUEUE', 'Answering', $1)", w.role)
	w.Exec("select parley.grant('CONTROL', 'SERVICE', '//test/Answerer', $1)", w.role)
	handle, err := parley.BeginDialog(t.Context(), w.Pool, "//test/Asker", "//test/Answerer", parley.OnContract("//test/Work"))
	w.require(err)
	for i := range 20 {
		w.require(parley.Send(t.Context(), w.Pool, handle, sqltest.Request, fmt.Appendf(nil, "%d", i)))
	}
	w.require(parley.EndConversation(t.Context(), w.Pool, handle))
	stop := w.run(&box{}, "//test/Answerer", `{"batch_size": 7, "message_types": {"//test/Request": "urn:o#Order"},
		"promoted": {"ConversationHandle": "urn:p#Conversation"}}`)
	w.until("all are taken", "select count(*)::integer from public.taken", 20)
	w.until("both sides have ended", "select count(*)::integer from parley.conversation_endpoints where state <> 'CD'", 0)
	w.require(stop())
	if order := sqltest.Value[bool](w.Session, "select bool_and(body = (n - 1)::text and type = 'urn:o#Order') from public.taken"); !order {
		t.Error("they were not taken in their order, or have no type")
	}
	var written map[string]map[string]any
	w.require(json.Unmarshal([]byte(sqltest.Value[string](w.Session, "select properties::text from public.taken where n = 3")), &written))
	facts := written["written"]
	if facts["urn:parley:service#MessageTypeName"] != sqltest.Request || facts["urn:parley:service#SequenceNumber"] != 2.0 ||
		facts["urn:parley:service#ConversationHandle"] == "" || facts["urn:parley:service#ConversationHandle"] != written["promoted"]["urn:p#Conversation"] {
		t.Errorf("the properties are %v", written)
	}
}

func TestAMessageStaysInItsQueueWhenPublishingFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Exec("select parley.grant('RECEIVE', 'QUEUE', 'simple', $1)", w.role)
	for i := range 5 {
		w.put(fmt.Appendf(nil, "%d", i), parley.WithKey("k"))
	}
	refusals := 0
	in := &box{refuse: func() error { refusals++; return map[bool]error{true: errors.New("the box is away")}[refusals < 3] }}
	stop := w.run(in, "queue:simple", `{"poll_interval": "50 milliseconds", "promoted": {"Key": "urn:p#Key"}}`)
	w.until("all are taken", "select count(*)::integer from public.taken", 5)
	w.require(stop())
	got := sqltest.Value[string](w.Session, "select string_agg(body || (properties #>> '{promoted,urn:p#Key}'), ',' order by n) from public.taken")
	if got != "0k,1k,2k,3k,4k" || refusals < 3 {
		t.Errorf("taken are %s after %d refusals", got, refusals)
	}
}

func TestNothingIsReceivedWhileIntakeIsThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Exec("select parley.grant('RECEIVE', 'QUEUE', 'simple', $1)", w.role)
	in := &box{}
	stop := w.run(in, "queue:simple", `{"poll_interval": "50 milliseconds"}`)
	w.put([]byte("1"))
	w.until("one is taken", "select count(*)::integer from public.taken", 1)
	in.Throttle(true)
	parleytest.Until(t, "the consumer has gone", func() bool {
		return sqltest.Value[int](w.Session, "select count(*)::integer from pg_stat_activity where datname = current_database() and query ilike 'listen%'") == 0
	})
	w.put([]byte("2"))
	in.Throttle(false)
	w.until("the other is taken", "select count(*)::integer from public.taken", 2)
	w.require(stop())
}

func TestALocationTakesOnlyWhatIsItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Exec("select parley.grant('RECEIVE', 'QUEUE', 'Answering', $1)", w.role)
	w.Exec("select parley.create_service('//test/Other', 'Answering')")
	for address, want := range map[string]string{
		"//test/Answerer": "2 services", "//test/None": "no service", "queue:simple": "permission denied", "queue:none": "does not exist",
		"//test/Asker": "RECEIVE on its queue",
	} {
		w.Exec("select parley.grant('VIEW DEFINITION', 'SERVICE', '//test/Answerer', $1)", w.role)
		w.Exec("select parley.grant('VIEW DEFINITION', 'SERVICE', '//test/Other', $1)", w.role)
		w.Exec("select parley.grant('VIEW DEFINITION', 'SERVICE', '//test/Asker', $1)", w.role)
		receiver, err := service.Kind.NewReceiver(w.endpoint(address, "{}"))
		w.require(err)
		if err := receiver.Run(t.Context(), &box{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v", address, err)
		}
	}
}

func TestSettingsThatAreWrongAreRefusedBeforeTheyRun(t *testing.T) {
	t.Parallel()
	in, out := adapter.Receive, adapter.Send
	for name, c := range map[string]struct {
		direction         adapter.Direction
		address, settings string
		secrets           []string
		path              string
	}{
		"no address":                 {in, "queue:", `{}`, nil, "address"},
		"types of a simple queue":    {in, "queue:q", `{"message_types": {"a": "b"}}`, nil, "settings.message_types"},
		"what no message says":       {in, "queue:q", `{"promoted": {"ConversationHandle": "urn:p#A"}}`, nil, "settings.promoted.ConversationHandle"},
		"a property without a name":  {in, "s", `{"promoted": {"ServiceName": "A"}}`, nil, "settings.promoted.ServiceName"},
		"system messages":            {in, "s", `{"system_messages": "drop"}`, nil, "settings.system_messages"},
		"nobody who sends":           {out, "s", `{}`, nil, "settings.from_service"},
		"a contract of simple queue": {out, "queue:q", `{"contract": "c"}`, nil, "settings.contract"},
		"a priority of a service":    {out, "s", `{"from_service": "a", "priority": 3}`, nil, "settings.priority"},
		"a secret":                   {out, "s", `{"from_service": "a"}`, []string{"token"}, "secrets.token"},
	} {
		t.Run(name, func(t *testing.T) {
			problems := service.Kind.Check(c.direction, c.address, json.RawMessage(c.settings), c.secrets)
			if len(problems) != 1 || strings.Join(problems[0].Path, ".") != c.path || problems[0].Message == "" || problems[0].Remedy == "" {
				t.Errorf("the problems are %+v, want one at %s", problems, c.path)
			}
		})
	}
}
