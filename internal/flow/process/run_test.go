package process_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/process"
)

// begun gives the memory in which the orchestration of some shapes has taken an order.
func begun(t *testing.T, body string, orders ...string) (*memory, *instance) {
	t.Helper()
	m := newMemory(t, program(t, withBody(begins+body)))
	if len(orders) == 0 {
		orders = []string{order("1", "<Amount>12.5</Amount>", "<Line sku='a'>2</Line>", "<Line sku='b'>3</Line>")}
	}
	for _, o := range orders {
		m.publish(o)
	}
	m.settleAll()
	return m, m.instances[0]
}

func want(t *testing.T, m *memory, sent ...string) {
	t.Helper()
	if got := m.bodiesSent(); !slices.Equal(got, sent) {
		t.Errorf("sent are\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(sent, "\n"))
	}
}

func TestMessagesAreConstructedSetAndSent(t *testing.T) {
	t.Parallel()
	m, i := begun(t, `
- construct:
    message: ask
    template: "<Ask n='{{order.text('/Order/PoNumber')}}'>{{order.number('/Order/Amount') * 2.0}}{{order.parts('//Line')}}{{'<'}}</Ask>"
- send: {message: ask, port: stock, follow: [number]}
- construct: {message: line, from: order, set: {/Order/Amount: "1 + 1", "/Order/Line[1]": null, /Order/@by: "'me'"}}
- set: {line/Order/Amount: "line.text('/Order/Amount') + '!'", count: "order.count('//Line')"}
- send: {message: line, properties: {"urn:p#N": count}}
- construct: {message: line, value: {number: "order.property('http://shop.example/properties#PoNumber')", all: ["count", true],
	of: {at: now}}}
- send: line
- construct: {message: line, template: '{"skus": {{order.texts("//@sku")}}, "n": "<{{count}}>"}'}
- set: {line/n: "line.json().skus[1]"}
- send: {message: line}
- transform: {map: OrderToAsk, from: [order, line], to: ask}
- send: ask
- send: order
`)
	if i.step.Status != process.Finished {
		t.Fatalf("%+v", i.step)
	}
	want(t, m, "<Ask n='1'>25<Line sku='a'>2</Line><Line sku='b'>3</Line>&lt;</Ask>",
		"<o:Order by=\"me\" xmlns:o='http://shop.example/orders'><PoNumber>1</PoNumber><Amount>2!</Amount><Line sku='b'>3</Line></o:Order>",
		`{"all":[2,true],"number":"1","of":{"at":"2026-11-28T08:00:00Z"}}`, `{"skus": ["a","b"], "n": "b"}`,
		"<Mapped by='OrderToAsk' inputs='2'/>", m.bodies[1])
	if m.sent[0].SendPort != "Stock" || m.sent[0].Promoted[numberName] != "1" || m.sent[1].Promoted["urn:p#N"] != "2" || m.sent[5].ID != 1 {
		t.Errorf("%+v", m.sent)
	}
}

// JSON does not say its type: what is constructed and changed is of the declared one. XML does, and has to be of it.
func TestAConstructedMessageOfJSONIsOfTheDeclaredType(t *testing.T) {
	t.Parallel()
	shapes := strings.Replace(withBody(begins+`
- construct: {message: ask, value: {n: "1"}}
- set: {ask/n: "2"}
- send: ask
- construct: {message: ask, template: "<Other xmlns='urn:o'/>"}
`), "ask: any", "ask: Ask", 1)
	m := newMemory(t, program(t, shapes))
	m.publish(order("1"))
	m.settleAll()
	want(t, m, `{"n":2}`)
	if len(m.sent) == 1 && m.sent[0].Type != "Ask" {
		t.Errorf("it is sent as %q", m.sent[0].Type)
	}
	step := m.instances[0].step
	if step.Fault == nil || step.Fault.Message != `the message is of type "urn:o#Other", and declared as "Ask"` || step.Fault.Path != "body/4/construct" {
		t.Errorf("%+v", step.Fault)
	}
}

func TestDecideLoopsAndLists(t *testing.T) {
	t.Parallel()
	m, i := begun(t, `
- while:
    when: count < 3
    do:
      - set: {count: count + 1, found: "found + [count]"}
      - decide:
          - when: count == 2
            name: two
            do: [{set: {name: "name + 'two'"}}]
          - otherwise: [{set: {name: "name + '-'"}}]
- for_each:
    item: one
    in: order.parts('//Line')
    messages: {part: any}
    do:
      - construct: {message: part, template: "<P>{{one.text('@sku')}} {{found}} {{name}}</P>"}
      - send: part
- set: {at: "now + duration('1h')", span: "(now + duration('90s')) - now", thing: "{'a': [1, 2.5, null]}", is: "at > now"}
- construct: {message: line, template: "<R>{{is}} {{span}} {{thing.a[1]}} {{at}}</R>"}
- send: line
`)
	if i.step.Status != process.Finished {
		t.Fatalf("%+v %+v", i.step, i.step.Fault)
	}
	want(t, m, "<P>a 012 -two-</P>", "<P>b 012 -two-</P>", "<R>false 90s 2.5 2026-11-28T09:00:00Z</R>")
	if !strings.Contains(passedPlaces(i), "decide=two") || !strings.Contains(passedPlaces(i), "while=3 times") {
		t.Errorf("passed are %s", passedPlaces(i))
	}
}

func TestListenTakesTheFirstOfMessageAndTime(t *testing.T) {
	t.Parallel()
	const body = `
- listen:
    - receive: {message: answer, follow: [number]}
      do: [{send: answer}]
    - delay: 10 minutes
      do: [{send: order}]
`
	m, i := begun(t, body)
	if len(i.step.Timers) != 1 || len(i.step.Waits) != 1 || !i.step.Waits[0].IsOpen || i.step.Waits[0].Equal[numberName] != "1" ||
		!i.step.Timers[0].At.Equal(m.now.Add(10*time.Minute)) || !slices.Equal(i.step.Holds, []int64{1}) {
		t.Fatalf("%+v", i.step)
	}
	for _, late := range []process.Event{
		{Kind: process.TimerFired, Timer: "t99"}, {Kind: process.ActivityDone, Activity: "id9"}, {
			Kind: process.Received, Wait: "w",
			Message: &process.Message{},
		},
	} {
		if m.run(i, late) {
			t.Errorf("%s is taken", late.Kind)
		}
	}
	m.publish(answer("2"))
	m.settleAll()
	m.publish(answer("1"))
	m.settleAll()
	want(t, m, m.bodies[3])
	if !i.isOver || i.step.State != nil || len(m.unrouted) != 1 {
		t.Errorf("%+v", i.step)
	}
	m, i = begun(t, body)
	m.fire(i, i.step.Timers[0])
	want(t, m, m.bodies[1])
}

// A wait begins when its set has values, not when its receive is reached, and ends when nothing leads there any more.
func TestWaitsLiveAsLongAsTheirReceivesCanBeReached(t *testing.T) {
	t.Parallel()
	m, i := begun(t, `
- delay: 1 minute
- decide:
    - when: order.has('/Order/Note')
      do: [{receive: {message: answer, follow: [number]}}]
- receive: {message: line, follow: [number], from: Stock in}
- delay: 1 minute
`)
	places := func() (all []string) {
		for _, w := range i.step.Waits {
			all = append(all, w.Receive)
			if w.IsOpen {
				all = append(all, "open")
			}
		}
		return all
	}
	if got := places(); !slices.Equal(got, []string{"body/2/decide/0/do/0/receive", "body/3/receive"}) {
		t.Fatalf("waits are %v", got)
	}
	m.fire(i, i.step.Timers[0])
	if got := places(); !slices.Equal(got, []string{"body/3/receive", "open"}) {
		t.Fatalf("waits are %v", got)
	}
	if f := i.step.Waits[0].Filter; len(f) != 1 || f[0].Property != "ReceivePortName" || f[0].Value != "Stock in" {
		t.Errorf("the filter is %+v", f)
	}
}

func TestFaultsAreCaughtByCodeAndPassedOn(t *testing.T) {
	t.Parallel()
	m, i := begun(t, `
- scope:
    do:
      - scope:
          do: [{throw: {code: a, message: "bad {{order.text('/Order/PoNumber')}}"}}]
          catch:
            - code: b
              do: [{send: order}]
      - send: order
    catch:
      - code: a
        as: problem
        do:
          - construct: {message: line, template: "<F>{{problem.code}} {{problem.message}} {{problem.path}}</F>"}
          - send: line
- scope:
    do: [{set: {total: order.number('/Order/Nothing')}}]
    catch: [{do: [{construct: {message: line, template: "<G/>"}}, {send: line}]}]
- set: {total: order.number('/Order/PoNumber') / 0.0}
- set: {total: double(order.text('/Order/Nothing'))}
`)
	want(t, m, "<F>a bad 1 body/1/scope/do/0/scope/do/0/throw</F>", "<G/>")
	if i.step.Status != process.Suspended || i.step.Fault.Code != "expression" ||
		i.step.Fault.Path != "body/4/set/total" || i.step.State == nil {
		t.Fatalf("%+v %+v", i.step, i.step.Fault)
	}
	if !slices.Equal(i.step.At, []string{"body/4/set"}) {
		t.Errorf("it stands at %v", i.step.At)
	}
	m.run(i, process.Event{Kind: process.Resumed})
	if i.step.Status != process.Suspended {
		t.Errorf("resumed, it is %+v", i.step)
	}
}

func TestSuspendAndTerminate(t *testing.T) {
	t.Parallel()
	m, i := begun(t, `
- suspend: see {{order.text('/Order/PoNumber')}}
- decide: [{when: is, do: [{send: order}]}]
- terminate: enough of {{name}}
`)
	if i.step.Status != process.Suspended || i.step.Fault.Message != "see 1" {
		t.Fatalf("%+v", i.step)
	}
	m.run(i, process.Event{Kind: process.Resumed})
	if i.step.Status != process.Terminated || i.step.Fault.Message != "enough of " || i.step.State != nil {
		t.Fatalf("%+v", i.step)
	}
}

func TestALoopThatNeverEndsIsAFaultWithItsPlace(t *testing.T) {
	t.Parallel()
	m, i := begun(t, `
- scope:
    do: [{while: {when: "true", do: [{scope: {do: [{throw: x}], catch: [{do: []}]}}]}}]
    catch: [{do: []}]
`)
	if i.step.Status != process.Suspended || i.step.Fault.Code != "loop" || !strings.HasPrefix(i.step.Fault.Path,
		"body/1/scope/do/0/while") {
		t.Fatalf("%+v %+v", i.step, i.step.Fault)
	}
	m.run(i, process.Event{Kind: process.Resumed})
	if i.step.Fault == nil || i.step.Fault.Code != "loop" {
		t.Errorf("resumed, it is %+v", i.step)
	}
}

// All that a step sends is in memory until it is committed: a loop that sends on and on does not take all that its node has.
func TestALoopThatSendsTooMuchIsAFaultWithItsPlace(t *testing.T) {
	if os.Getenv("PARLEY_TEST_LONG") == "" {
		t.Skip("256 MB take some seconds: PARLEY_TEST_LONG=1 has them sent")
	}
	t.Parallel()
	m, i := begun(t, `
- while:
    when: "true"
    do:
      - construct: {message: line, template: "{{order.body()}}"}
      - send: line
`, order("1", strings.Repeat(" ", 15<<20)))
	if i.step.Status != process.Suspended || i.step.Fault.Code != "size" || !strings.HasPrefix(i.step.Fault.Path, "body/1/while") {
		t.Fatalf("%s %+v", i.step.Status, i.step.Fault)
	}
	if len(m.sent) != 18 {
		t.Errorf("%d were sent", len(m.sent))
	}
}

func TestExpressionsThatCostTooMuchAreFaults(t *testing.T) {
	t.Parallel()
	for _, costly := range []string{
		"set: {found: \"order.texts('//Line')\", " +
			"count: \"order.texts('//Line').map(a, order.texts('//Line').map(b, order.texts('//Line').map(c, a + b + c))).size()\"}",
		"set: {count: \"order.count('//*[count(//*[count(//*) > 0]) > 0]')\"}",
	} {
		_, i := begun(t, "\n- "+costly+"\n", order("1", strings.Repeat("<Line>1</Line>", 400)))
		if i.step.Status != process.Suspended || i.step.Fault.Code != "cost" || !strings.HasPrefix(i.step.Fault.Path, "body/1/set") {
			t.Errorf("%s gives %+v %+v", costly, i.step.Status, i.step.Fault)
		}
	}
}
