package process_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/flow/process"
)

// failer is a test, or one history of a model.
type failer interface {
	Helper()
	Fatalf(format string, arguments ...any)
}

// memory is a runtime without a database: a message box with a lane for each instance and each key, timers, and a log of statements.
type memory struct {
	t          failer
	program    *process.Program
	now        time.Time
	messages   map[int64]process.Message
	bodies     map[int64]string
	instances  []*instance
	waiting    []int64 // that begin instances, in their order
	unrouted   []int64
	sent       []process.Publication
	starts     []process.Start
	activities []asked
	cancelled  []string
	statements []string
	refuses    string // a statement that fails
	breaks     int    // after so many statements the transaction breaks, once; 0: never
	ids        int
	crashes    bool // each step is run twice, as after a crash before its commit
}

type asked struct {
	by *instance
	process.Activity
}

type instance struct {
	step   process.Step
	lane   []int64 // messages for its waits
	passed []process.Passed
	isOver bool
}

func newMemory(t failer, p *process.Program) *memory {
	return &memory{
		t: t, program: p, now: time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC), messages: map[int64]process.Message{},
		bodies:  map[int64]string{},
		crashes: true,
	}
}

func (m *memory) Open(_ context.Context, of process.Message) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(m.bodies[of.ID])), nil
}

var element = regexp.MustCompile(`<(?:\w+:)?(\w+)[^>]*>([^<]*)</`)

// Type gives a message the type of its root and the properties of the elements that are called like them.
func (m *memory) Type(_ context.Context, of process.Message) (process.Message, error) {
	of.Promoted = map[string]any{}
	decoder := xml.NewDecoder(bytes.NewReader(of.Body))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return of, nil
		}
		if err != nil {
			return of, nil //nolint:nilerr // it is no XML, and has no type
		}
		if start, is := token.(xml.StartElement); is {
			of.Type = start.Name.Space + "#" + start.Name.Local
			break
		}
	}
	for _, found := range element.FindAllStringSubmatch(string(of.Body), -1) {
		for _, name := range []string{numberName, stateName} {
			if strings.HasSuffix(name, "#"+found[1]) {
				of.Promoted[name] = found[2]
			}
		}
	}
	of.Promoted["MessageType"] = of.Type
	return of, nil
}

func (m *memory) Transform(_ context.Context, name string, inputs []process.Message) (process.Message, error) {
	return process.Message{Body: fmt.Appendf(nil, "<Mapped by='%s' inputs='%d'/>", name, len(inputs))}, nil
}

var errBroken = errors.New("serialization failure")

func (m *memory) Query(_ context.Context, sql string, arguments []any) ([]map[string]any, error) {
	if m.breaks > 0 {
		if m.breaks--; m.breaks == 0 {
			return nil, errBroken
		}
	}
	if m.refuses != "" && strings.Contains(sql, m.refuses) {
		return nil, &process.Fault{Message: "violates a constraint"}
	}
	m.statements = append(m.statements, fmt.Sprint(sql, arguments))
	return []map[string]any{{"n": int64(len(m.statements))}}, nil
}

func (m *memory) Savepoint(context.Context) (release, back func(context.Context) error, err error) {
	before := len(m.statements)
	nothing := func(context.Context) error { return nil }
	return nothing, func(context.Context) error {
		m.statements = m.statements[:before]
		return nil
	}, nil
}

func (m *memory) Now() time.Time { return m.now }

func (m *memory) NewID() string {
	m.ids++
	return fmt.Sprint("id", m.ids)
}

// run takes an instance through an event, and does with its step what a commit does. It reports whether the instance took the event.
func (m *memory) run(i *instance, event process.Event) bool {
	m.t.Helper()
	ids, statements := m.ids, slices.Clone(m.statements)
	step, err := m.program.Run(context.Background(), m, i.step.State, event)
	for m.crashes || errors.Is(err, errBroken) {
		// The node dies before the commit, or the transaction cannot be serialized: the event comes again.
		m.ids, m.statements = ids, slices.Clone(statements)
		again, err2 := m.program.Run(context.Background(), m, i.step.State, event)
		if errors.Is(err, errBroken) {
			step, err = again, err2
			continue
		}
		one, _ := json.Marshal(step)
		if other, _ := json.Marshal(again); string(one) != string(other) || (err == nil) != (err2 == nil) {
			m.t.Fatalf("%s again gives\n%s, %v and not\n%s, %v", event.Kind, other, err2, one, err)
		}
		break
	}
	if errors.Is(err, process.ErrNotWaiting) {
		return false
	}
	if err != nil {
		m.t.Fatalf("%s: %v", event.Kind, err)
	}
	i.step = step
	i.passed = append(i.passed, step.Passed...)
	i.isOver = step.Status == process.Finished || step.Status == process.Terminated
	m.sent = append(m.sent, step.Publications...)
	m.starts = append(m.starts, step.Starts...)
	m.cancelled = append(m.cancelled, step.Cancelled...)
	for _, a := range step.Activities {
		m.activities = append(m.activities, asked{i, a})
	}
	m.settle(i)
	return true
}

// settle publishes again what an instance has not read, where no wait of it is left that takes it.
func (m *memory) settle(i *instance) {
	lane := i.lane
	i.lane = nil
	for _, id := range lane {
		if !i.isOver && slices.ContainsFunc(i.step.Waits, func(w process.Wait) bool { return m.fits(w, id) }) {
			i.lane = append(i.lane, id)
			continue
		}
		m.route(id)
	}
}

func (m *memory) fits(w process.Wait, id int64) bool {
	for property, value := range w.Equal {
		if fmt.Sprint(m.messages[id].Promoted[property]) != value {
			return false
		}
	}
	return m.satisfies(w.Filter, id)
}

func (m *memory) satisfies(group []match.Predicate, id int64) bool {
	promoted := map[string]string{}
	for property, value := range m.messages[id].Promoted {
		promoted[property] = fmt.Sprint(value)
	}
	return len(group) == 0 || len(match.New(1, []match.Group{{SendPort: 1, Predicates: group}}).Match(promoted)) > 0
}

// publish puts a message into the box.
func (m *memory) publish(body string) {
	id := int64(len(m.messages) + 1)
	typed, _ := m.Type(context.Background(), process.Message{Body: []byte(body)})
	typed.ID, typed.Body, typed.Size = id, nil, int64(len(body))
	m.messages[id], m.bodies[id] = typed, body
	m.route(id)
}

// keyOf gives the lane of a message that begins instances; empty where each message is by itself.
func (m *memory) keyOf(id int64) string {
	key := ""
	if a := m.activationOf(id); a != nil {
		for _, property := range a.Convoy {
			key += fmt.Sprintf("%q", m.messages[id].Promoted[property])
		}
	}
	return key
}

func (m *memory) route(id int64) {
	// Messages that wait in the lane of its key are before it.
	if key := m.keyOf(id); key != "" && slices.ContainsFunc(m.waiting, func(other int64) bool { return m.keyOf(other) == key }) {
		m.waiting = append(m.waiting, id)
		slices.Sort(m.waiting)
		return
	}
	for _, i := range m.instances {
		if !i.isOver && slices.ContainsFunc(i.step.Waits, func(w process.Wait) bool { return m.fits(w, id) }) {
			i.lane = append(i.lane, id)
			return
		}
	}
	if m.activationOf(id) != nil {
		// One that is published again keeps its place among those of its key.
		m.waiting = append(m.waiting, id)
		slices.Sort(m.waiting)
		return
	}
	m.unrouted = append(m.unrouted, id)
}

func (m *memory) activationOf(id int64) *process.Activation {
	for _, a := range m.program.Activations() {
		for _, group := range a.Filter {
			if m.satisfies(group, id) {
				return &a
			}
		}
	}
	return nil
}

// A choice is something that can happen next.
type choice struct {
	name string
	do   func()
}

func (m *memory) choices() []choice {
	var all []choice
	heads := map[string]bool{}
	for n, id := range m.waiting {
		// Messages of one key begin instances one after the other.
		a, key := m.activationOf(id), m.keyOf(id)
		if len(a.Convoy) > 0 && heads[key] {
			continue
		}
		heads[key] = true
		all = append(all, choice{fmt.Sprint("begin ", id), func() { m.begin(n, a) }})
	}
	for n, i := range m.instances {
		if i.isOver {
			continue
		}
		for k, id := range i.lane {
			open := slices.IndexFunc(i.step.Waits, func(w process.Wait) bool { return w.IsOpen && m.fits(w, id) })
			if open >= 0 && i.step.Status == process.Waiting {
				all = append(all, choice{fmt.Sprintf("deliver %d to %d", id, n), func() { m.deliver(i, k, i.step.Waits[open].ID) }})
				break
			}
		}
		for _, timer := range i.step.Timers {
			if i.step.Status == process.Waiting {
				all = append(all, choice{fmt.Sprintf("%s of %d", timer.ID, n), func() { m.fire(i, timer) }})
			}
		}
	}
	return all
}

func (m *memory) begin(n int, a *process.Activation) {
	id := m.waiting[n]
	m.waiting = slices.Delete(slices.Clone(m.waiting), n, n+1)
	// Under the lock of its key: an instance that came to be meanwhile takes the message before a new one begins.
	for _, i := range m.instances {
		if !i.isOver && len(a.Convoy) > 0 && slices.ContainsFunc(i.step.Waits, func(w process.Wait) bool { return m.fits(w, id) }) {
			i.lane = append(i.lane, id)
			return
		}
	}
	i := &instance{}
	m.instances = append(m.instances, i)
	message := m.messages[id]
	if !m.run(i, process.Event{Kind: process.Activated, Receive: a.Receive, Message: &message}) {
		m.t.Fatalf("an activation is not taken")
	}
}

func (m *memory) deliver(i *instance, k int, wait string) {
	id := i.lane[k]
	i.lane = slices.Delete(slices.Clone(i.lane), k, k+1)
	message := m.messages[id]
	if !m.run(i, process.Event{Kind: process.Received, Wait: wait, Message: &message}) {
		m.t.Fatalf("an open wait takes nothing: %s in %s", wait, i.step.State)
	}
}

func (m *memory) fire(i *instance, timer process.Timer) {
	if timer.At.After(m.now) {
		m.now = timer.At
	}
	if !m.run(i, process.Event{Kind: process.TimerFired, Timer: timer.ID}) {
		m.t.Fatalf("a timer is not taken: %s in %s", timer.ID, i.step.State)
	}
}

// settleAll does all that can happen without a timer, the first first.
func (m *memory) settleAll() {
	for range 10_000 {
		all := slices.DeleteFunc(m.choices(), func(c choice) bool { return strings.HasPrefix(c.name, "t") })
		if len(all) == 0 {
			return
		}
		all[0].do()
	}
	m.t.Fatalf("it does not come to an end")
}

// start begins an instance with parameters.
func (m *memory) start(parameters string) *instance {
	i := &instance{}
	m.instances = append(m.instances, i)
	m.run(i, process.Event{Kind: process.Started, Parameters: json.RawMessage(parameters)})
	return i
}

// bodiesSent gives the bodies of what was published, in order.
func (m *memory) bodiesSent() []string {
	var all []string
	for _, p := range m.sent {
		body := string(p.Body)
		if p.ID != 0 {
			body = m.bodies[p.ID]
		}
		all = append(all, body)
	}
	return all
}

func order(number string, more ...string) string {
	return "<o:Order xmlns:o='http://shop.example/orders'><PoNumber>" + number + "</PoNumber>" + strings.Join(more, "") + "</o:Order>"
}

func answer(number string, more ...string) string {
	return "<a:Answer xmlns:a='http://stock.example'><PoNumber>" + number + "</PoNumber>" + strings.Join(more, "") + "</a:Answer>"
}

// passedPlaces gives what an instance went through.
func passedPlaces(i *instance) string {
	var all []string
	for _, p := range i.passed {
		all = append(all, strings.TrimSuffix(p.Path+"="+p.Way, "="))
	}
	return strings.Join(all, " ")
}

var (
	_ = testing.Short
	_ = maps.Keys[map[string]int]
)
