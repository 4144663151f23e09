package process_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/process"
)

const atomicBody = `
- scope:
    do:
      - scope:
          transaction: atomic
          isolation: read committed
          do:
            - set: {count: "7"}
            - query: {sql: "insert $1", arguments: [order.text('/Order/PoNumber')], rows: found}
            - send: order
            - set: {count: "count + found[0].n"}
            - query: "update"
    catch:
      - code: query
        do: [{construct: {message: line, template: "<C>{{count}}</C>"}}, {send: line}]
- construct: {message: line, template: "<R>{{count}}</R>"}
- send: line
`

func TestAnAtomicScopeIsOnePiece(t *testing.T) {
	t.Parallel()
	p := program(t, withBody(begins+atomicBody))
	for refuses, want := range map[string][]string{"": {order("1"), "<R>8</R>"}, "update": {"<C>0</C>", "<R>0</R>"}} {
		m := newMemory(t, p)
		m.refuses, m.breaks = refuses, 2 // the first time the transaction cannot be serialized
		m.crashes = false
		m.publish(order("1"))
		m.settleAll()
		if got := m.bodiesSent(); !slices.Equal(got, want) || m.instances[0].step.Status != process.Finished {
			t.Errorf("refusing %q sends %v", refuses, got)
		}
		if got := len(m.statements); got != map[string]int{"": 2, "update": 0}[refuses] {
			t.Errorf("refusing %q leaves the statements %v", refuses, m.statements)
		}
	}
}

// An isolation that a step cannot have is refused, with what does the same.
func TestAnIsolationThatNoStepHasIsRefused(t *testing.T) {
	t.Parallel()
	for scope, remedy := range map[string]string{
		"{transaction: atomic, isolation: serializable, do: []}":    "for update",
		"{transaction: atomic, isolation: repeatable read, do: []}": "for update",
		"{transaction: atomic, isolation: snapshot, do: []}":        "Write read committed",
		"{isolation: read committed, do: []}":                       "transaction: atomic",
		"{transaction: atomic, isolation: read committed, do: []}":  "",
	} {
		_, problems := compileIn(t, read(t, withBody(begins+"- scope: "+scope)), "P")
		isRight := len(problems) == 1 && strings.Contains(problems[0].Remedy, remedy) && problems[0].Path[len(problems[0].Path)-1] == "isolation"
		if remedy == "" {
			isRight = len(problems) == 0
		}
		if !isRight {
			t.Errorf("%s gives %v", scope, problems)
		}
	}
}

// A state that cannot be written, or read, gives no step but a fault with a code and a remedy for operators.
func TestAStateThatIsTooLargeOrForeignIsAFault(t *testing.T) {
	t.Parallel()
	p := program(t, withBody(begins+"- delay: 1 hour"))
	m := process.Message{Type: orderType, Promoted: map[string]any{numberName: "1"}, Body: make([]byte, 50<<20)}
	_, large := p.Run(t.Context(), newMemory(t, p), nil, process.Event{Kind: process.Activated, Receive: p.Activations()[0].Receive, Message: &m})
	_, foreign := p.Run(t.Context(), newMemory(t, p), json.RawMessage(`{"version": "another"}`), process.Event{Kind: process.Resumed})
	for code, err := range map[string]error{"size": large, "version": foreign} {
		if f, is := errors.AsType[*process.Fault](err); !is || f.Code != code || f.Message == "" || f.Remedy == "" {
			t.Errorf("instead of %s there is %#v", code, err)
		}
	}
}

func TestAScopeEndsByItsTimeOutAndCancelsItsWork(t *testing.T) {
	t.Parallel()
	m, i := begun(t, `
- scope:
    timeout: 1 hour
    do:
      - parallel:
          a: [{activity: {name: Charge, queue: q, input: {n: "order.text('/Order/PoNumber')", all: ["1", true]}, result: thing,
	timeout: 5 minutes, attempts: 3}}]
          b: [{delay: 1 day}]
    catch:
      - code: timeout
        do: [{send: order}]
`)
	asked := m.activities[0]
	if asked.Name != "Charge" || asked.Queue != "q" || string(asked.Input) != `{"all":[1,true],"n":"1"}` || asked.TimeOut != 5*time.Minute || asked.Attempts != 3 {
		t.Fatalf("%+v", asked)
	}
	if len(i.step.Timers) != 2 {
		t.Fatalf("%+v", i.step.Timers)
	}
	for _, timer := range i.step.Timers {
		if timer.At.Equal(m.now.Add(time.Hour)) {
			m.fire(i, timer)
			break
		}
	}
	if i.step.Status != process.Finished || !slices.Equal(m.cancelled, []string{asked.ID}) {
		t.Errorf("%+v %v", i.step, m.cancelled)
	}
	want(t, m, m.bodies[1])
}

func TestAnActivityGivesItsResultOrAFault(t *testing.T) {
	t.Parallel()
	m, i := begun(t, `
- activity: {name: Charge, queue: q, result: total}
- construct: {message: line, template: "<R>{{total * 2.0}}</R>"}
- send: line
`)
	first := m.activities[0]
	m.run(i, process.Event{Kind: process.ActivityDone, Activity: first.ID, Error: "no money"})
	if i.step.Status != process.Suspended || i.step.Fault.Code != "activity" || !strings.Contains(i.step.Fault.Message, "no money") {
		t.Fatalf("%+v %+v", i.step, i.step.Fault)
	}
	m.run(i, process.Event{Kind: process.Resumed})
	if len(m.activities) != 2 || m.activities[1].ID == first.ID {
		t.Fatalf("%+v", m.activities)
	}
	if m.run(i, process.Event{Kind: process.ActivityDone, Activity: first.ID, Result: json.RawMessage("1")}) {
		t.Error("an answer to the first request is taken")
	}
	m.run(i, process.Event{Kind: process.ActivityDone, Activity: m.activities[1].ID, Result: json.RawMessage("21")})
	want(t, m, "<R>42</R>")
}

func TestCallRunsWithinAndStartBegins(t *testing.T) {
	t.Parallel()
	all := read(t, withBody(begins+`
- call: {orchestration: Twice, parameters: {number: order.number('/Order/Amount')}, results: {total: result}}
- start: {orchestration: Twice, parameters: {number: total}}
- construct: {message: line, template: "<R>{{total}}</R>"}
- send: line
`)+`
  Twice:
    application: A
    host: H
    parameters: {number: number, by: {type: number, value: 2}}
    variables: {result: number}
    body: [{delay: 1 minute}, {set: {result: number * by}}]
`)
	p, problems := compileIn(t, all, "P")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	m := newMemory(t, p)
	m.publish(order("1", "<Amount>21</Amount>"))
	m.settleAll()
	i := m.instances[0]
	if !slices.Equal(i.step.At, []string{"body/1/call/Twice/body/0/delay"}) {
		t.Fatalf("it stands at %v", i.step.At)
	}
	m.fire(i, i.step.Timers[0])
	want(t, m, "<R>42</R>")
	if len(m.starts) != 1 || m.starts[0].Orchestration != "Twice" || string(m.starts[0].Parameters) != `{"number":42.0}` {
		t.Errorf("%+v %s", m.starts, m.starts[0].Parameters)
	}
	twice, problems := compileIn(t, all, "Twice")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	started := newMemory(t, twice).start(string(m.starts[0].Parameters))
	if started.step.Status != process.Waiting {
		t.Errorf("%+v", started.step)
	}
	// A start gives parameters, and not the variables with which it works.
	other := newMemory(t, twice)
	if _, err := twice.Run(t.Context(), other, nil, process.Event{Kind: process.Started, Parameters: []byte(`{"result": 7}`)}); err == nil {
		t.Error("a variable was given as a parameter")
	}
}

// A statement that ends the transaction of the step would leave what it has done without the step.
func TestAStatementThatEndsTheTransactionIsRefused(t *testing.T) {
	t.Parallel()
	for sql, isRefused := range map[string]bool{
		"commit": true, " /* x */ COMMIT and chain": true, "-- x\n rollback": true, "end": true, "begin": true, "Savepoint a": true,
		"prepare transaction 'x'": true, "select 1 as commit": false, "update ended set commit = 1": false, "call commits()": false,
	} {
		quoted, _ := json.Marshal(sql)
		all := read(t, withBody(begins+"- scope:\n    transaction: atomic\n    do:\n      - query: {sql: "+string(quoted)+"}\n"))
		_, problems := compileIn(t, all, "P")
		if is := len(problems) == 1 && strings.Contains(problems[0].String(), "transaction"); is != isRefused {
			t.Errorf("%q gives %v", sql, problems)
		}
	}
}

// A state is taken by the program that made it, and by no other.
func TestAStateOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	_, i := begun(t, "\n- delay: 1 minute\n")
	other := program(t, withBody(begins+"- delay: 2 minutes\n"))
	same := program(t, strings.Replace(withBody(begins+"- delay: 1 minute\n"), "host: H", "host: K\n    description: other", 1))
	timer := process.Event{Kind: process.TimerFired, Timer: i.step.Timers[0].ID}
	if _, err := other.Run(t.Context(), newMemory(t, other), i.step.State, timer); err == nil {
		t.Error("another version takes the state")
	}
	if step, err := same.Run(t.Context(), newMemory(t, same), i.step.State, timer); err != nil || step.Status != process.Finished {
		t.Errorf("the same shapes do not take the state: %v", err)
	}
}

func FuzzSnapshot(f *testing.F) {
	body := withBody(begins + `
- scope:
    timeout: 1 hour
    do:
      - scope: {do: [{send: order}], compensate: [{delay: 1 minute}]}
      - parallel:
          a: [{listen: [{receive: {message: answer, follow: [number]}, do: []}, {delay: 1 minute, do: [{throw: x}]}]}]
          b: [{for_each: {item: one, in: "[1, 2]", parallel: 2, do: [{activity: {name: Charge, queue: q}}]}}]
    catch:
      - as: problem
        do: [{compensate: all}, {throw: again}]
`)
	p := program(f, body)
	m := newMemory(f, p)
	m.publish(order("1"))
	m.settleAll()
	f.Add([]byte(m.instances[0].step.State), "t4", uint8(1))
	f.Add([]byte(m.instances[0].step.State), "id1", uint8(2))
	f.Fuzz(func(t *testing.T, state []byte, id string, kind uint8) {
		m := newMemory(t, p)
		event := process.Event{Kind: process.Resumed}
		switch kind % 4 {
		case 1:
			event = process.Event{Kind: process.TimerFired, Timer: id}
		case 2:
			event = process.Event{Kind: process.ActivityDone, Activity: id}
		case 3:
			event = process.Event{Kind: process.Received, Wait: id, Message: &process.Message{ID: 2}}
		}
		step, err := p.Run(t.Context(), m, state, event)
		if err == nil && step.State != nil {
			if _, err := p.Run(t.Context(), m, step.State, process.Event{Kind: process.Resumed}); err != nil {
				t.Fatalf("%s gives a state that is not taken: %v", state, err)
			}
		}
	})
}

func FuzzDefinition(f *testing.F) {
	for _, body := range []string{atomicBody, sequentialConvoy} {
		f.Add([]byte(read(f, withBody(begins+body))["P"]))
	}
	f.Add([]byte(`{"body":[{"receive":{"message":"a","activate":true}},{"decide":[{"when":"1"}]},{"listen":[{},{}]},{"call":"P"}]}`))
	f.Fuzz(func(t *testing.T, written []byte) {
		p, problems := process.Compile("P", written, known)
		if (p == nil) != (len(problems) > 0) {
			t.Fatal("there is a program and there are problems")
		}
		for _, problem := range problems {
			if problem.Message == "" || problem.Remedy == "" || len(problem.Path) < 2 {
				t.Fatalf("%+v", problem)
			}
		}
	})
}

func TestRequestsAreAnsweredAndPortsAskedByTokens(t *testing.T) {
	t.Parallel()
	p := program(t, withBody(begins+`
- scope:
    correlations: {asked: [CorrelationToken]}
    do:
      - send: {message: order, port: stock, initialise: [asked]}
      - receive: {message: answer, follow: [asked]}
      - send: {message: answer, answers: order}
`))
	m := newMemory(t, p)
	i := &instance{}
	request := process.Message{ID: 1, Promoted: map[string]any{numberName: "1"}, Written: map[string]any{"CorrelationToken": "client"}}
	m.run(i, process.Event{Kind: process.Activated, Receive: p.Activations()[0].Receive, Message: &request})
	token, _ := m.sent[0].Written["CorrelationToken"].(string)
	if _, isPromoted := m.sent[0].Promoted["CorrelationToken"]; token == "" || token == "client" || isPromoted {
		t.Fatalf("sent is %+v", m.sent[0])
	}
	if w := i.step.Waits; len(w) != 1 || w[0].Equal["CorrelationToken"] != token {
		t.Fatalf("waits are %+v", w)
	}
	m.run(i, process.Event{Kind: process.Received, Wait: i.step.Waits[0].ID, Message: &process.Message{ID: 2}})
	if m.sent[1].ID != 2 || m.sent[1].Promoted["CorrelationToken"] != "client" {
		t.Errorf("answered is %+v", m.sent[1])
	}
	_, i = begun(t, "\n- send: {message: order, answers: order}\n")
	if i.step.Status != process.Suspended || i.step.Fault.Code != "correlation" {
		t.Errorf("an order is taken for a request: %+v", i.step)
	}
}

// Scopes are taken back once, the last one first, inner ones by the one around them; those of a loop each.
func TestCompensationGoesBackwardsAndOnce(t *testing.T) {
	t.Parallel()
	const note = "{construct: {message: line, template: "
	m, i := begun(t, `
- scope:
    do:
      - for_each:
          item: one
          in: "['a', 'b']"
          do:
            - scope:
                do: [{set: {name: one}}]
                compensate: [`+note+`"<R>undo {{one}}</R>"}}, {send: line}]
              name: each
      - scope:
          do:
            - scope: {do: [{set: {name: name}}], compensate: [`+note+`"<R>first</R>"}}, {send: line}]}
            - scope: {do: [{set: {name: name}}], compensate: [`+note+`"<R>second</R>"}}, {send: line}]}
      - throw: x
    catch:
      - code: x
        do: [{compensate: each}, {compensate: each}, {compensate: all}, {compensate: all}]
- scope:
    do:
      - scope:
          do:
            - scope: {do: [{set: {name: name}}], compensate: [`+note+`"<R>third</R>"}}, {send: line}]}
            - throw: yy
          catch: [{do: [{throw: z}]}]
    catch: [{do: []}]
`)
	want(t, m, "<R>undo b</R>", "<R>undo a</R>", "<R>second</R>", "<R>first</R>", "<R>third</R>")
	if i.step.Status != process.Finished {
		t.Errorf("%+v", i.step.Fault)
	}
}

// A receive in a loop can be reached until the loop has ended, and an aggregate ends at its number.
func TestLoopsKeepTheirWaitsAndAggregatesTheirNumber(t *testing.T) {
	t.Parallel()
	m, i := begun(t, `
- while:
    when: count < 3
    do:
      - receive: {message: answer, follow: [number]}
      - set: {count: count + 1}
      - delay: 1 minute
- receive: {message: line, follow: [number]}
- aggregate: {receive: {message: line, follow: [number]}, into: found, until: {count: 2}}
- construct: {message: ask, template: "<R>{{found}}</R>"}
- send: ask
`)
	m.publish(answer("1"))
	m.settleAll()
	if len(i.step.Waits) != 3 || i.step.Waits[0].IsOpen || !strings.HasPrefix(i.step.Waits[0].Receive, "body/1/while") {
		t.Fatalf("waits are %+v", i.step.Waits)
	}
	for range 2 {
		m.fire(i, i.step.Timers[0])
		m.publish(answer("1"))
		m.settleAll()
	}
	m.fire(i, i.step.Timers[0])
	for _, body := range []string{"<x><PoNumber>1</PoNumber></x>", "<y><PoNumber>1</PoNumber></y>", "<z><PoNumber>1</PoNumber></z>"} {
		m.publish(body)
		m.settleAll()
	}
	want(t, m, "<R><y><PoNumber>1</PoNumber></y><z><PoNumber>1</PoNumber></z></R>")
}
