package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/parleytest"
)

// program is an orchestration of a test.
type program struct {
	activations []process.Activation
	run         func(ctx context.Context, w process.World, state json.RawMessage, e process.Event) (process.Step, error)
}

func (p *program) Activations() []process.Activation {
	if p.activations == nil {
		return []process.Activation{{Receive: "0"}}
	}
	return p.activations
}

func (p *program) Run(ctx context.Context, w process.World, state json.RawMessage, e process.Event) (process.Step, error) {
	return p.run(ctx, w, state, e)
}

// orchestrations makes a node run the orchestrations of a test.
func orchestrations(programs map[string]*program) func(*host.Config) {
	return func(c *host.Config) {
		c.Compile = func(name string, _ json.RawMessage, _ process.Known) (orchestrator.Program, error) {
			if p := programs[name]; p != nil {
				return p, nil
			}
			return nil, fmt.Errorf("there is no program %q", name)
		}
	}
}

const ofKind = `[[{"property": "MessageType", "operator": "=", "value": "%s"}]]`

// orchestration defines one that begins with messages of a type, and a port Result that gets what it publishes.
func (e *engine) orchestration(name, messageType, convoy string) {
	e.Helper()
	e.apply(fmt.Sprintf(`{
		"orchestration": {%[1]q: {"application": "Orders", "host": "Send", "retry_policy": "soon",
			"messages": {"m": "any"}, "correlations": {"key": ["urn:p#Key"]}, "body": [{"receive": "m"}],
			"activations": [{"receive": "0", "filter": `+ofKind+`, "convoy": %[3]s}], "description": "of a test"}},
		"send port": {"Result": {"application": "Orders", "host": "Send", "adapter": "FAKE", "address": "out", "retry_policy": "soon",
			"filter": [[{"property": "InboundTransportLocation", "operator": "=", "value": %[1]q}]]}}
	}`, name, messageType, convoy))
}

// publish publishes a message with a type and a key.
func (e *engine) publish(messageType, key, body string) {
	e.Helper()
	e.Exec(`select parley_flow.publish($3::text, jsonb_build_object('urn:p#Key', $2::text), $1::text)`, messageType, key, body)
}

func (e *engine) number(query string) (n int) {
	e.Helper()
	if err := e.DB.QueryRow(e.Context(), query).Scan(&n); err != nil {
		e.Fatal(err)
	}
	return n
}

func (e *engine) untilNone(query string) {
	e.Helper()
	parleytest.Until(e.T, "none of "+query, func() bool { return e.number("select count(*)::int from "+query) == 0 })
}

func finished(out ...process.Publication) process.Step {
	return process.Step{Status: process.Finished, Publications: out, Passed: []process.Passed{{Path: "0"}, {Path: "1"}}}
}

func publishes(body string) process.Publication {
	return process.Publication{Message: process.Message{Type: "Done", Body: []byte(body)}, Port: "out"}
}

// sentOn publishes the body of a message under another type.
func sentOn(m *process.Message) process.Publication {
	out := *m
	out.Type = "Copied"
	return process.Publication{Message: out, Port: "out"}
}

func TestAnInstanceThatBeginsAndEndsInAStepHasNoRow(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.orchestration("Copy", "Order", "[]")
	e.serve(orchestrations(map[string]*program{"Copy": {run: func(_ context.Context, _ process.World, _ json.RawMessage, v process.Event) (process.Step, error) {
		return finished(sentOn(v.Message)), nil
	}}}))
	for n := range 30 {
		e.publish("Order", "k", fmt.Sprintf("order %d", n))
	}
	parleytest.Until(t, "all are sent on", func() bool { return len(e.sentBy("Result")) == 30 })
	e.untilEmpty()
	sent := e.sentBy("Result")
	slices.Sort(sent)
	if len(slices.Compact(sent)) != 30 {
		t.Errorf("sent %v", sent)
	}
	if n := e.number("select count(*)::int from parley_flow._p_instance"); n != 0 {
		t.Errorf("%d instances have rows", n)
	}
	found := ""
	err := e.DB.QueryRow(e.Context(), `select string_agg(distinct t.event || ' ' || t.send_port, ', ' order by t.event || ' ' || t.send_port)
		from parley_flow.track((select min((t.fields ->> 'first')::bigint) from parley_store.tracking as t where t.fields ->> 'send_port' = 'Copy'))
			as t`).Scan(&found)
	if err != nil || !strings.Contains(found, "PROCESS Copy") {
		t.Errorf("tracking shows %q (%v)", found, err)
	}
}

// waitsFor is the state of an instance that collects messages of its key until it has so many.
type waitsFor struct {
	Key    string   `json:"key"`
	Bodies []string `json:"bodies"`
}

// collects is a program that begins with a message and ends with the one of a number, of the same key; their bodies are joined.
func collects(until int, next string) *program {
	return &program{
		activations: []process.Activation{{Receive: "0"}},
		run: func(ctx context.Context, w process.World, state json.RawMessage, v process.Event) (process.Step, error) {
			s := waitsFor{}
			if state != nil {
				if err := json.Unmarshal(state, &s); err != nil {
					return process.Step{}, err
				}
			}
			if v.Message != nil {
				s.Key = v.Message.Promoted["urn:p#Key"].(string)
				opened, err := w.Open(ctx, *v.Message)
				if err != nil {
					return process.Step{}, err
				}
				text, err := io.ReadAll(opened)
				if err != nil {
					return process.Step{}, err
				}
				s.Bodies = append(s.Bodies, string(text))
			}
			if len(s.Bodies) >= until {
				return finished(publishes(s.Key + ": " + strings.Join(s.Bodies, ","))), nil
			}
			written, err := json.Marshal(s)
			return process.Step{State: written, Status: process.Waiting, Waits: []process.Wait{{
				ID: "1", Receive: "1", Equal: map[string]string{"urn:p#Key": s.Key}, IsOpen: true,
				Filter: []match.Predicate{{Property: "MessageType", Type: "text", Operator: "=", Value: next}},
			}}}, err
		},
	}
}

func TestAMessageFindsTheInstanceThatWaitsForIt(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.orchestration("Pair", "First", "[]")
	e.serve(orchestrations(map[string]*program{"Pair": collects(2, "Second")}))
	for n := range 20 {
		e.publish("First", fmt.Sprint(n), fmt.Sprintf("a%d", n))
	}
	parleytest.Until(t, "all wait", func() bool {
		return e.number("select count(*)::int from parley_flow.instances where status = 'WAITING'") == 20
	})
	e.untilEmpty()
	for n := range 20 {
		e.publish("Second", fmt.Sprint(n), fmt.Sprintf("b%d", n))
	}
	parleytest.Until(t, "all have ended", func() bool { return len(e.sentBy("Result")) == 20 })
	for n := range 20 {
		if !slices.Contains(e.sentBy("Result"), fmt.Sprintf("%[1]d: a%[1]d,b%[1]d", n)) {
			t.Errorf("of %d: %v", n, e.sentBy("Result"))
		}
	}
	e.untilEmpty()
	e.untilNone("parley_flow._p_instance")
	e.untilNone("parley_flow._p_instance_wait")
	// No instance waits for another one.
	e.publish("Second", "1", "c")
	if n := e.number("select count(*)::int from parley_flow.suspended where stage = 'ROUTE'"); n != 1 {
		t.Errorf("%d suspended", n)
	}
}

func TestAConvoyIsDecidedAboutOnce(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.orchestration("Convoy", "Part", `["urn:p#Key"]`)
	programs := orchestrations(map[string]*program{"Convoy": collects(5, "Part")})
	e.serve(programs)
	e.serve(programs)
	for n := range 40 {
		for key := range 10 {
			e.publish("Part", fmt.Sprint(key), fmt.Sprintf("%d", n))
		}
	}
	parleytest.Until(t, "all are collected", func() bool { return len(e.sentBy("Result")) == 80 })
	e.untilEmpty()
	got := e.sentBy("Result")
	slices.Sort(got)
	want := []string{}
	for key := range 10 {
		for of := range 8 {
			numbers := []string{}
			for n := range 5 {
				numbers = append(numbers, fmt.Sprint(of*5+n))
			}
			want = append(want, fmt.Sprintf("%d: %s", key, strings.Join(numbers, ",")))
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	e.untilNone("parley_flow._p_instance")
}

func TestAStepThatFailsIsTriedAgainAndThenSuspendsItsInstance(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.orchestration("Fails", "Order", "[]")
	isMended := make(chan struct{})
	// No lease is over before its work is done: a step that is repeated would be counted otherwise.
	lasting := func(c *host.Config) { c.Lease = time.Minute }
	node := e.serve(lasting, orchestrations(map[string]*program{"Fails": {run: func(_ context.Context, _ process.World, _ json.RawMessage, v process.Event) (process.Step, error) {
		select {
		case <-isMended:
		default:
			if v.Message.Promoted["urn:p#Key"] == "bad" {
				return process.Step{}, fmt.Errorf("the map is missing")
			}
		}
		return finished(sentOn(v.Message)), nil
	}}}))
	for n := range 20 {
		key := "good"
		if n == 7 {
			key = "bad"
		}
		e.publish("Order", key, key)
	}
	parleytest.Until(t, "the good ones go on", func() bool { return len(e.sentBy("Result")) == 19 })
	parleytest.Until(t, "the bad one is suspended", func() bool {
		return e.number("select count(*)::int from parley_flow.instances where status = 'SUSPENDED' and code = 'process.step' and error ~ 'map is missing'") == 1
	})
	close(isMended)
	if n := e.number(`select parley_flow.resume_instances('{"code": "process.step"}', dry_run => false)`); n != 1 {
		t.Errorf("%d resumed", n)
	}
	parleytest.Until(t, "it goes on", func() bool { return len(e.sentBy("Result")) == 20 })
	parleytest.Until(t, "all are counted", func() bool { return node.Counter("Orchestrations", "Send", "Instances completed") == 20 })
	started, failed := node.Counter("Orchestrations", "Send", "Instances started"), node.Counter("Orchestrations", "Send", "Failed steps")
	if started != 20 || failed < 1 {
		t.Errorf("%v are counted as started, and %v steps as failed", started, failed)
	}
	e.untilEmpty()
	e.untilNone("parley_flow._p_instance")
}

// An operator who has mended the cause does not wait for the next attempt.
func TestAnInstanceThatWaitsForItsNextAttemptIsResumedAtOnce(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.orchestration("Fails", "Order", "[]")
	e.apply(`{"retry policy": {"soon": {"count": 3, "interval": "1 day"}}}`)
	isMended := make(chan struct{})
	e.serve(orchestrations(map[string]*program{"Fails": {run: func(_ context.Context, _ process.World, _ json.RawMessage, v process.Event) (process.Step, error) {
		select {
		case <-isMended:
			return finished(sentOn(v.Message)), nil
		default:
			return process.Step{}, fmt.Errorf("the queue is missing")
		}
	}}}))
	e.publish("Order", "k", "kept")
	parleytest.Until(t, "it waits for its next attempt", func() bool {
		return e.number("select count(*)::int from parley_flow.instances where status = 'RETRYING'") == 1
	})
	close(isMended)
	if n := e.number(`select parley_flow.resume_instances('{"status": "SUSPENDED"}')`); n != 0 {
		t.Errorf("%d resumed that are not suspended", n)
	}
	if n := e.number(`select parley_flow.resume_instances('{"orchestration": "Fails"}')`); n != 1 {
		t.Errorf("%d resumed", n)
	}
	parleytest.Until(t, "it goes on", func() bool { return slices.Equal(e.sentBy("Result"), []string{"kept"}) })
	e.untilNone("parley_flow._p_instance_timer")
}

// A state that is too large is so again whenever the step is tried: the instance is suspended at once, and its message stays.
func TestAStateThatIsTooLargeSuspendsItsInstance(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.orchestration("Grows", "Order", "[]")
	isMended := make(chan struct{})
	e.serve(orchestrations(map[string]*program{"Grows": {run: func(_ context.Context, _ process.World, _ json.RawMessage, v process.Event) (process.Step, error) {
		select {
		case <-isMended:
			return finished(sentOn(v.Message)), nil
		default:
			return process.Step{}, fmt.Errorf("run it: %w", &process.Fault{Code: "size", Message: "it would have 70 MB", Remedy: "keep less"})
		}
	}}}))
	e.publish("Order", "k", "kept")
	parleytest.Until(t, "it has failed", func() bool {
		return e.number("select count(*)::int from parley_flow.instances where code is not null") == 1
	})
	if n := e.number("select count(*)::int from parley_flow.instances where status = 'SUSPENDED' and code = 'size' and attempts = 1 and remedy = 'keep less'"); n != 1 {
		t.Error("it is tried again")
	}
	close(isMended)
	e.number(`select parley_flow.resume_instances('{"code": "size"}', dry_run => false)`)
	parleytest.Until(t, "it goes on", func() bool { return slices.Equal(e.sentBy("Result"), []string{"kept"}) })
}

// The content type and charset of a body that an orchestration has made are those of the message; one that is sent on keeps its own.
func TestAConstructedMessageKeepsItsContentType(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.orchestration("Makes", "Order", "[]")
	e.apply(`{"send port": {"Result": {"application": "Orders", "host": "Send", "adapter": "FAKE", "address": "out", "state": "Stopped",
		"filter": [[{"property": "InboundTransportLocation", "operator": "=", "value": "Makes"}]]}}}`)
	e.serve(orchestrations(map[string]*program{"Makes": {run: func(_ context.Context, _ process.World, _ json.RawMessage, v process.Event) (process.Step, error) {
		made := publishes("<a/>")
		made.Content, made.Charset = "application/xml", "utf-16"
		large := publishes(strings.Repeat("x", 9000))
		large.Content = "text/plain"
		return finished(made, publishes("none"), large, sentOn(v.Message)), nil
	}}}))
	e.publish("Order", "k", "x")
	const parts = `(select coalesce(string_agg(m.size || ' ' || coalesce((m.parts -> 0) - 'name' - 'is_body', '{}')::text, '; ' order by m.size desc), '')
		from parley_flow._p_message as m where m.promoted ->> 'InboundTransportLocation' = 'Makes')`
	const want = `9000 {"bytes": 9000, "content_type": "text/plain"}; 4 {"bytes": 4, "charset": "utf-16", "content_type": "application/xml"}; 4 {}; 1 {}`
	parleytest.Until(t, "they are there", func() bool {
		var got string
		if err := e.DB.QueryRow(t.Context(), "select "+parts).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != "" && got != want {
			t.Fatalf("got %s", got)
		}
		return got == want
	})
}

func TestATimerEndsAWait(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.orchestration("Timer", "Order", "[]")
	e.serve(orchestrations(map[string]*program{"Timer": {run: func(_ context.Context, w process.World, _ json.RawMessage, v process.Event) (process.Step, error) {
		if v.Kind == process.TimerFired {
			return finished(publishes("late " + v.Timer)), nil
		}
		return process.Step{
			State: json.RawMessage(`{}`), Status: process.Waiting, Timers: []process.Timer{{ID: "2", At: w.Now().Add(300 * time.Millisecond)}},
		}, nil
	}}}))
	e.publish("Order", "k", "x")
	parleytest.Until(t, "it fires", func() bool { return slices.Equal(e.sentBy("Result"), []string{"late 2"}) })
	e.untilNone("parley_flow._p_instance_timer")
}

// Programs, which are compiled without a database too, know the properties of the engine that the database knows.
func TestProgramsKnowThePropertiesOfTheEngine(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	inDatabase := map[string]string{}
	var written []byte
	if err := e.DB.QueryRow(t.Context(), "select jsonb_object_agg(name, type) from parley_flow._p_engine_property").Scan(&written); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(written, &inDatabase); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(inDatabase, process.EngineProperties) {
		t.Errorf("the database has %v, and programs have %v", inDatabase, process.EngineProperties)
	}
}
