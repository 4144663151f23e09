package host_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapters"
	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// engine is a database with two hosts, and the adapter FAKE by which a test is source and destination.
type engine struct {
	*sqltest.Broker
	receive, send string // roles of hosts Receive and Send

	mu      sync.Mutex
	intakes map[string]adapter.Intake
	made    map[string]int // receivers and senders that were made, by name
	closed  map[string]int
	sent    map[string][]string // bodies, by port
	send1   map[string]func(ctx context.Context, messages []*adapter.Message) []adapter.Delivery
	sendIn  map[string]func(ctx context.Context, tx adapter.Transaction, messages []*adapter.Message) ([]adapter.Delivery, error)
}

const definitions = `{
	"application": {"Orders": {}},
	"host": {"Receive": {"role": "$1"}, "Send": {"role": "$2"}},
	"property schema": {"urn:p": {"application": "Orders", "properties": {"Key": {}, "Amount": {"type": "number"}}}},
	"message type": {"urn:s#Order": {"application": "Orders", "promotions": {"urn:p#Key": "/*[local-name()='Order' and namespace-uri()='urn:s']/*[local-name()='Key' and namespace-uri()='urn:s']"}}},
	"retry policy": {"soon": {"count": 3, "interval": "1 second", "jitter": 0}, "never": {"count": 0}},
	"receive port": {"In": {"application": "Orders"}},
	"receive location": {"Source": {"receive_port": "In", "host": "Receive", "adapter": "FAKE", "address": "source"}},
	"send port": {"Out": {"application": "Orders", "host": "Send", "adapter": "FAKE", "address": "out", "retry_policy": "soon",
		"filter": [[{"property": "ReceivePortName", "operator": "=", "value": "In"}]]}}
}`

func newEngine(t *testing.T) *engine {
	t.Helper()
	b := sqltest.NewBroker(t)
	e := &engine{
		Broker: b, receive: b.Role("receive"), send: b.Role("send"), intakes: map[string]adapter.Intake{}, made: map[string]int{},
		closed: map[string]int{}, sent: map[string][]string{},
		send1:  map[string]func(context.Context, []*adapter.Message) []adapter.Delivery{},
		sendIn: map[string]func(context.Context, adapter.Transaction, []*adapter.Message) ([]adapter.Delivery, error){},
	}
	e.apply(strings.NewReplacer("$1", e.receive, "$2", e.send).Replace(definitions))
	return e
}

func (e *engine) apply(definitions string) {
	e.Helper()
	e.Exec("select parley_flow.apply($1::jsonb)", definitions)
}

// port changes settings of send port Out.
func (e *engine) port(name, settings string) {
	e.Helper()
	e.Exec(`select parley_flow.apply(jsonb_build_object('send port', jsonb_build_object($1::text, jsonb_build_object(
		'application', 'Orders', 'host', 'Send', 'adapter', 'FAKE', 'address', 'out', 'retry_policy', 'soon',
		'filter', '[[{"property": "ReceivePortName", "operator": "=", "value": "In"}]]'::jsonb) || $2::jsonb)))`, name, settings)
}

// kind is the adapter of the test.
func (e *engine) kind() adapter.Kind {
	return adapter.Kind{
		Name: "FAKE",
		NewReceiver: func(endpoint adapter.Endpoint) (adapter.Receiver, error) {
			if endpoint.Address == "wrong" {
				return nil, fmt.Errorf("%s cannot be reached from here", endpoint.Address)
			}
			return &receiver{e, endpoint.Name}, nil
		},
		NewSender: func(endpoint adapter.Endpoint) (adapter.Sender, error) {
			if endpoint.Address == "wrong" {
				return nil, fmt.Errorf("%s cannot be reached from here", endpoint.Address)
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			e.made[endpoint.Name]++
			return &sender{e, endpoint.Name}, nil
		},
	}
}

type receiver struct {
	engine *engine
	name   string
}

// Run lets the test take in until it is ended.
func (r *receiver) Run(ctx context.Context, in adapter.Intake) error {
	e := r.engine
	e.mu.Lock()
	e.intakes[r.name] = in
	e.made[r.name]++
	e.mu.Unlock()
	<-ctx.Done()
	e.mu.Lock()
	delete(e.intakes, r.name)
	e.mu.Unlock()
	return nil
}

type sender struct {
	engine *engine
	name   string
}

var _ adapter.TransactionSender = (*sender)(nil)

func (s *sender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	e := s.engine
	e.mu.Lock()
	send := e.send1[s.name]
	e.mu.Unlock()
	if send == nil {
		send = e.record(s.name)
	}
	return send(ctx, messages)
}

func (s *sender) InTransaction() bool {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	return s.engine.sendIn[s.name] != nil
}

func (s *sender) SendIn(ctx context.Context, tx adapter.Transaction, messages []*adapter.Message) ([]adapter.Delivery, error) {
	s.engine.mu.Lock()
	send := s.engine.sendIn[s.name]
	s.engine.mu.Unlock()
	return send(ctx, tx, messages)
}

func (s *sender) Close() error {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	s.engine.closed[s.name]++
	return nil
}

// body reads the body of a message.
func body(ctx context.Context, m *adapter.Message) (string, error) {
	opened, err := m.Open(ctx)
	if err != nil {
		return "", err
	}
	read, err := io.ReadAll(opened)
	return string(read), err
}

// record is a destination that takes everything.
func (e *engine) record(port string) func(context.Context, []*adapter.Message) []adapter.Delivery {
	return func(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
		deliveries := make([]adapter.Delivery, len(messages))
		for i, m := range messages {
			var text string
			if text, deliveries[i].Err = body(ctx, m); deliveries[i].Err == nil {
				e.mu.Lock()
				e.sent[port] = append(e.sent[port], text)
				e.mu.Unlock()
			}
		}
		return deliveries
	}
}

// destination makes what a port does with messages.
func (e *engine) destination(port string, send func(context.Context, []*adapter.Message) []adapter.Delivery) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.send1[port] = send
}

// sentBy gives the bodies that a port has sent.
func (e *engine) sentBy(port string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.sent[port]...)
}

// untilSent waits until port Out has sent so many messages, and gives their bodies.
func (e *engine) untilSent(count int) []string {
	e.Helper()
	parleytest.Until(e.T, fmt.Sprintf("%d messages are sent", count), func() bool { return len(e.sentBy("Out")) >= count })
	return e.sentBy("Out")
}

// intake waits until a location takes in.
func (e *engine) intake(location string) (in adapter.Intake) {
	e.Helper()
	parleytest.Until(e.T, location+" takes in", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		in = e.intakes[location]
		return in != nil
	})
	return in
}

// take takes small inputs in, each with its body as key, and gives their outcomes.
func (e *engine) take(bodies ...string) []adapter.Result {
	e.Helper()
	inputs := make([]adapter.Input, len(bodies))
	for i, text := range bodies {
		inputs[i] = adapter.Input{Body: []byte(text)}
	}
	results, err := e.intake("Source").Take(e.Context(), inputs)
	if err != nil {
		e.Fatal(err)
	}
	return results
}

// node is a server that runs.
type node struct {
	*host.Server
	stop func()
	done chan error
}

// prepare makes a node.
func (e *engine) prepare(change ...func(*host.Config)) *node {
	e.Helper()
	pool := e.pool()
	config := host.Config{
		Pool: pool, Node: fmt.Sprintf("node %p", pool), Adapters: adapters.New(e.kind()), Lease: 3 * time.Second, Drain: 5 * time.Second,
		Logger: slog.New(slog.NewTextHandler(e.Output(), nil)),
	}
	for _, c := range change {
		c(&config)
	}
	server, err := host.New(config)
	if err != nil {
		e.Fatal(err)
	}
	// A daemon asks again too when its connection breaks off while it begins.
	parleytest.Until(e.T, "the node has reached its database", func() bool {
		err := server.Prepare(e.Context())
		if err != nil && !pgdb.IsUnreachable(e.Context(), err) {
			e.Fatal(err)
		}
		return err == nil
	})
	return &node{Server: server, done: make(chan error, 1)}
}

// serve runs a node until it is stopped, or the test ends.
func (e *engine) serve(change ...func(*host.Config)) *node {
	e.Helper()
	n := e.prepare(change...)
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.Context()))
	go func() { n.done <- n.Run(ctx) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := parleytest.Receive(e.T, n.done, "the node has stopped"); err != nil {
			e.Error(err)
		}
	})
	e.Cleanup(n.stop)
	return n
}

// pool makes sessions as a node has them.
func (e *engine) pool() *pgxpool.Pool { return e.poolAs("") }

// poolAs makes sessions in which a role has logged in; empty: the owner.
func (e *engine) poolAs(role string) *pgxpool.Pool {
	e.Helper()
	config := e.Pool.Config()
	config.MaxConns = 12
	delete(config.ConnConfig.RuntimeParams, "statement_timeout")
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if role != "" {
			if _, err := conn.Exec(ctx, "set session authorization "+sqltest.Quote(role)); err != nil {
				return err
			}
		}
		return pgdb.PrepareSession(ctx, conn)
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(e.Context()), config)
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(pool.Close)
	return pool
}

// inBox gives how many messages are in the box, and how many are suspended. The original of a message that was mended stays, and is not counted.
func (e *engine) inBox() (messages, suspended int) {
	e.Helper()
	err := e.DB.QueryRow(e.Context(), `
		select
			(select count(*) from parley_flow._p_message as m where not exists (select from parley_flow._p_original as o where o.message_id = m.message_id)),
			(select count(*) from parley_flow._p_suspended)`).
		Scan(&messages, &suspended)
	if err != nil {
		e.Fatal(err)
	}
	return messages, suspended
}

func (e *engine) untilEmpty() {
	e.Helper()
	parleytest.Until(e.T, "the box is empty", func() bool { messages, _ := e.inBox(); return messages == 0 })
}

func failsWith(f adapter.Failure) func(context.Context, []*adapter.Message) []adapter.Delivery {
	return func(_ context.Context, messages []*adapter.Message) []adapter.Delivery {
		deliveries := make([]adapter.Delivery, len(messages))
		for i := range deliveries {
			deliveries[i].Err = &f
		}
		return deliveries
	}
}
