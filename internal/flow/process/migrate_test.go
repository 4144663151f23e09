package process_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/process"
)

// migrate has an instance go on with another definition, or gives why it cannot.
func migrate(t *testing.T, m *memory, i *instance, written string) *process.Fault {
	t.Helper()
	to := program(t, written)
	migrated, err := m.program.Migrate(to, i.step.State)
	if fault, is := errors.AsType[*process.Fault](err); is {
		if fault.Message == "" || fault.Remedy == "" {
			t.Errorf("the fault does not say what to do: %+v", fault)
		}
		return fault
	}
	if err != nil {
		t.Fatal(err)
	}
	m.program, i.step.State, i.step.Waits, i.step.Timers = to, migrated.State, migrated.Waits, migrated.Timers
	if !m.run(i, process.Event{Kind: process.Resumed}) {
		t.Error("the instance does not go on")
	}
	return nil
}

// An instance goes on where it stands, wherever the shape is now, with the values that it has.
func TestAnInstanceGoesOnInANewVersion(t *testing.T) {
	t.Parallel()
	const waits = "- receive: {message: answer, follow: [number]}\n- send: answer\n"
	const inner = `
- scope:
    do:
      - set: {count: count + 1}
      - for_each:
          item: row
          in: order.parts('/Order/Line')
          parallel: 2
          do: [{receive: {message: answer, follow: [number]}}, {send: answer}]
  name: lines
- send: order
`
	for name, c := range map[string]struct{ was, is, sent string }{
		"shapes before and behind": {waits, "- set: {count: 7}\n" + waits + "- send: order\n", "answer order"},
		"behind one that changed":  {"- set: {count: 1}\n" + waits, "- set: {count: 2}\n" + waits, "answer"},
		"one of the same name": {
			"- receive: {message: answer, follow: [number]}\n  name: wait\n- send: answer\n",
			"- set: {count: 2}\n- receive: {message: line, follow: [number]}\n  name: wait\n- send: order\n", "order",
		},
		"within a scope and a loop": {
			inner, strings.NewReplacer("item: row", "item: one", "- set: {count: count + 1}", "- set: {count: count + 2}\n      - set: {total: 1.0}").Replace(inner),
			"answer answer order",
		},
		"a listen with another branch": {
			"- listen:\n    - receive: {message: answer, follow: [number]}\n      do: [{send: answer}]\n    - delay: 1 hour\n",
			"- listen:\n    - delay: 2 hours\n    - receive: {message: answer, follow: [number]}\n      do: [{send: order}]\n    - delay: 1 minute\n      do: [{send: order}]\n",
			"order",
		},
		"a parallel with another branch": {
			"- parallel:\n    a: [{receive: {message: answer, follow: [number]}}, {send: answer}]\n    b: [{set: {count: 1}}]\n",
			"- parallel:\n    a: [{receive: {message: answer, follow: [number]}}, {send: answer}]\n    c: [{send: order}]\n", "order answer",
		},
		"a scope with a time-out": {
			"- scope:\n    do: [{receive: {message: answer, follow: [number]}}]\n  name: s\n",
			"- scope:\n    timeout: 1 hour\n    do: [{receive: {message: answer, follow: [number]}}]\n    catch: [{do: [{send: answer}]}]\n  name: s\n- send: order\n",
			"order",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, i := begun(t, c.was)
			if fault := migrate(t, m, i, withBody(begins+c.is)); fault != nil {
				t.Fatalf("%s: %s", fault.Path, fault.Message)
			}
			for range 2 {
				if !i.isOver {
					m.publish(answer("1"))
					m.settleAll()
				}
			}
			got := []string{}
			for _, body := range m.bodiesSent() {
				got = append(got, map[bool]string{true: "order", false: "answer"}[body == m.bodies[1]])
			}
			if strings.Join(got, " ") != c.sent {
				t.Errorf("sent are %v, not %s", got, c.sent)
			}
		})
	}
}

// A branch that is new gets its time; an instance that a fault suspended goes on in the shape that was mended.
func TestANewVersionMendsWhatFailed(t *testing.T) {
	t.Parallel()
	m, i := begun(t, "- set: {total: \"order.number('/Order/Missing')\"}\n- send: order\n")
	if i.step.Status != process.Suspended {
		t.Fatalf("%+v", i.step)
	}
	if fault := migrate(t, m, i, withBody(begins+"- set: {total: \"order.number('/Order/Missing', 1.0)\"}\n- send: order\n")); fault != nil || !i.isOver {
		t.Errorf("%v, %+v", fault, i.step)
	}
	want(t, m, m.bodies[1])
	m, i = begun(t, "- listen:\n    - receive: {message: answer, follow: [number]}\n    - delay: 1 hour\n")
	if fault := migrate(t, m, i, withBody(begins+"- listen:\n    - receive: {message: answer, follow: [number]}\n    - delay: 1 minute\n      do: [{send: order}]\n")); fault != nil {
		t.Fatal(fault)
	}
	if len(i.step.Timers) != 1 || !i.step.Timers[0].At.Equal(m.now.Add(time.Minute)) {
		t.Fatalf("the timers are %+v", i.step.Timers)
	}
	m.fire(i, i.step.Timers[0])
	want(t, m, m.bodies[1])
}

// Where a state does not fit nothing is guessed: the fault has the place at which it does not.
func TestAStateThatDoesNotFitIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	const waits = "- receive: {message: answer, follow: [number]}\n"
	whole := withBody(begins + waits)
	for name, c := range map[string]struct{ was, is, place string }{
		"the shape is gone":          {waits, withBody(begins + "- send: order\n"), "body/1/receive"},
		"the name is gone":           {strings.TrimSuffix(waits, "\n") + "\n  name: wait\n", whole, "body/1/receive"},
		"it cannot be told which":    {waits, withBody(begins + "- set: {count: 1}\n" + waits + "- set: {count: 2}\n" + waits), "body/1/receive"},
		"another kind of the name":   {"- delay: 1 hour\n  name: x\n" + waits, withBody(begins + strings.TrimSuffix(waits, "\n") + "\n  name: x\n"), "body/1/delay"},
		"a variable of another type": {waits, strings.Replace(whole, "count: integer", "count: boolean", 1), "body"},
		"a message of another type":  {waits, strings.Replace(whole, `order: "`+orderType, `order: "`+answerType, 1), "body"},
		"the set has other values":   {waits, strings.Replace(whole, `number: ["`+numberName+`"]`, `number: ["`+stateName+`"]`, 1), ""},
		"the branch is gone":         {"- parallel:\n    a: [{receive: {message: answer, follow: [number]}}]\n    b: [{delay: 1 hour}]\n", withBody(begins + "- parallel:\n    a: [{receive: {message: answer, follow: [number]}}]\n    c: [{delay: 1 hour}]\n"), "body/1/parallel/b"},
		"fewer elements at once":     {"- for_each: {item: one, in: order.parts('/Order/Line'), parallel: 2, do: [{delay: 1 hour}]}\n", withBody(begins + "- for_each: {item: one, in: order.parts('/Order/Line'), parallel: 1, do: [{delay: 1 hour}]}\n"), "body/1/for_each"},
		"a scope that could go back": {
			"- scope: {do: [{scope: {do: [{send: order}], compensate: [{send: order}]}, name: s}, {receive: {message: answer, follow: [number]}}]}\n  name: w\n",
			withBody(begins + "- scope: {do: [{receive: {message: answer, follow: [number]}}]}\n  name: w\n"), "body/1/scope/do/0/scope",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, i := begun(t, c.was)
			before := string(i.step.State)
			fault := migrate(t, m, i, c.is)
			if fault == nil || fault.Path != c.place {
				t.Fatalf("refused is %+v, not at %s", fault, c.place)
			}
			if string(i.step.State) != before {
				t.Error("the state was changed")
			}
		})
	}
}
