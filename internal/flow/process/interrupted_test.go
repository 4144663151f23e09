package process_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/flow/process"
)

const says = "{construct: {message: line, template: "

// A scope that is broken off, by the time of one around it or by a fault beside it, takes back what has ended within it, before the catch
// of the one around begins.
func TestAScopeThatIsBrokenOffTakesItsInnerOnesBack(t *testing.T) {
	t.Parallel()
	const reserved = `
          - scope:
              variables: {mine: {type: text, value: "own"}}
              do:
                - for_each:
                    item: one
                    in: "['1', '2']"
                    do:
                      - scope: {do: [{set: {mine: "mine + one"}}], compensate: [` + says + `"<R>undo {{one}} {{mine}}</R>"}}, {delay: 1 minute}, {send: line}]}
                - delay: 1 day
              compensate: [` + says + `"<R>never</R>"}}, {send: line}]`
	const caught = `
    catch:
      - do: [` + says + `"<R>caught</R>"}}, {send: line}, {compensate: all}]
`
	for name, body := range map[string]string{
		"by time": `
- scope:
    timeout: 1 hour
    do:
          - scope: {do: [{set: {name: name}}], compensate: [` + says + `"<R>outer</R>"}}, {send: line}]}` + reserved + caught,
		"by a branch": `
- scope:
    do:
      - scope: {do: [{set: {name: name}}], compensate: [` + says + `"<R>outer</R>"}}, {send: line}]}
      - parallel:
          a:` + reserved + `
          b: [{delay: 1 hour}, {throw: x}]` + caught,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, i := begun(t, body)
			for n := 0; i.step.Status == process.Waiting && n < 10; n++ {
				first := i.step.Timers[0]
				for _, timer := range i.step.Timers {
					if timer.At.Before(first.At) {
						first = timer
					}
				}
				m.fire(i, first)
			}
			want(t, m, "<R>undo 2 own12</R>", "<R>undo 1 own12</R>", "<R>caught</R>", "<R>outer</R>")
		})
	}
}

// The time that an activity has may be an expression.
func TestAnActivityHasTheTimeOfAnExpression(t *testing.T) {
	t.Parallel()
	m, i := begun(t, `
- set: {span: "duration('90s')"}
- activity: {name: Charge, queue: q, timeout: span}
`)
	if len(m.activities) != 1 || m.activities[0].TimeOut.Seconds() != 90 {
		t.Errorf("%+v %+v", m.activities, i.step.Fault)
	}
}
