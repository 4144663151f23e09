package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/parley-broker/parley/internal/flow/process"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// pending is something that an instance has not taken.
type pending struct {
	event   int64 // its number, 0 of what has none
	kind    process.EventKind
	message *delivered
	receive string // of an activation
	timer   string
	work    string // activity
	data    json.RawMessage
	err     string
	cameBy  string
	isNew   bool // it came with this call
	isLate  bool // the instance does not wait for it
}

// overdue is an activity whose time is over, or which has failed and is to be tried again.
type overdue struct {
	Activity  string          `json:"activity"`
	Name      string          `json:"name"`
	Queue     string          `json:"queue"`
	Input     json.RawMessage `json:"input"`
	Attempt   int             `json:"attempt"`
	Attempts  int             `json:"attempts"`
	Error     string          `json:"error"`
	TimeOutMS int64           `json:"time_out_ms"`
}

// instance is one in the course of a call.
type instance struct {
	row       int64 // 0: it has none
	version   int
	status    string // of the row; NEW of one without
	state     json.RawMessage
	program   *compiled
	convoyKey string
	parent    int64
	isParked  bool // it takes nothing now: suspended, or its next attempt is not due
	rest      []*pending
	waits     []process.Wait
	timers    []process.Timer
	works     []overdue

	// The results of the call.
	runs         int
	last         process.Status
	taken        []int64
	takenWorks   []string
	ended        []int64 // messages that were taken
	unread       []*pending
	holds        []int64
	publications []publication
	starts       []process.Start
	activities   []asked
	cancelled    []string
	passed       map[string]int
	at           []string
	fault        *process.Fault
	failure      error // the step failed: nothing of it counts but that
	isWoken      bool
}

type publication struct {
	process.Publication
	parent int64
}

// asked is work that is put into a queue.
type asked struct {
	process.Activity
	attempt int
	pause   time.Duration
	err     string
}

func (i *instance) isOver() bool { return i.last == process.Finished || i.last == process.Terminated }

// read reads what the database gives of an instance.
func (c *call) read(ctx context.Context, b *flowstore.Begun) (*instance, error) {
	i := &instance{row: b.Instance, version: b.Version, status: b.Status, passed: map[string]int{}}
	i.isParked = b.Status == "SUSPENDED" || b.Status == "RETRYING" && !b.IsRetryDue
	if b.State != nil {
		i.state = json.RawMessage(*b.State)
	}
	var timers []process.Timer
	var events []struct {
		Event    int64  `json:"event"`
		Kind     string `json:"kind"`
		Message  int64  `json:"message"`
		Receive  string `json:"receive"`
		Data     string `json:"data"`
		CameBy   string `json:"came_by"`
		Timer    string `json:"timer"`
		Activity string `json:"activity"`
		Error    string `json:"error"`
	}
	err := errors.Join(
		json.Unmarshal(b.Waits, &i.waits), json.Unmarshal(b.Timers, &timers), json.Unmarshal(b.Events, &events),
		json.Unmarshal(b.Activities, &i.works),
	)
	if err != nil {
		return nil, fmt.Errorf("read instance %d: %w", b.Instance, err)
	}
	i.timers = timers
	missing := []int64{}
	for _, e := range events {
		p := &pending{
			event: e.Event, kind: process.EventKind(e.Kind), receive: e.Receive, cameBy: e.CameBy, timer: e.Timer, work: e.Activity,
			err: e.Error,
		}
		if e.Data != "" {
			p.data = json.RawMessage(e.Data)
		}
		if e.Message != 0 {
			if p.message = c.messages[e.Message]; p.message == nil {
				p.message = &delivered{}
				p.message.ID = e.Message
				missing = append(missing, e.Message)
			}
		}
		i.rest = append(i.rest, p)
	}
	if i.isParked || len(missing) == 0 {
		return i, nil
	}
	if err := c.load(ctx, missing); err != nil {
		return nil, err
	}
	for _, p := range i.rest {
		if p.message != nil && c.messages[p.message.ID] != nil {
			p.message = c.messages[p.message.ID]
		}
	}
	return i, nil
}

// advance runs an instance until it takes nothing of what is there.
func (c *call) advance(ctx context.Context, i *instance) {
	if i.isParked || i.failure != nil {
		return
	}
	if i.program == nil {
		program, err := c.runner.programs.of(ctx, c.db(), c.runner.config.Host, c.of, i.version)
		if err != nil {
			i.failure = err
			return
		}
		i.program = program
	}
	for i.failure == nil && !i.isOver() && i.last != process.Suspended {
		next := i.next(c.runner.config.Types())
		if next < 0 {
			break
		}
		if c.mostRuns > 0 && c.runs >= c.mostRuns {
			i.isWoken = true // what is left is run in another transaction
			break
		}
		p := i.rest[next]
		c.take(ctx, i, p)
		if i.failure == nil {
			i.rest = slices.Delete(i.rest, slices.Index(i.rest, p), slices.Index(i.rest, p)+1)
		}
	}
	if i.failure == nil && i.last != process.Suspended {
		i.retire(c.runner.config.Types())
	}
}

// next gives which of what is pending the instance takes next; below 0: none.
func (i *instance) next(types map[string]string) int {
	for n, p := range i.rest {
		switch p.kind {
		case process.Received:
			if i.open(p, types) != nil {
				return n
			}
		case process.TimerFired:
			if !p.isLate && slices.ContainsFunc(i.timers, func(t process.Timer) bool { return t.ID == p.timer }) {
				return n
			}
		case process.ActivityDone:
			if !slices.Contains(i.cancelled, p.work) {
				return n
			}
		default:
			return n
		}
	}
	return -1
}

// open gives the open wait that takes a message.
func (i *instance) open(p *pending, types map[string]string) *process.Wait {
	for n := range i.waits {
		if i.waits[n].IsOpen && satisfies(&i.waits[n], p.message, types) {
			return &i.waits[n]
		}
	}
	return nil
}

// fits reports whether the instance may take a message, now or later.
func (i *instance) fits(m *delivered, types map[string]string) bool {
	if i.isOver() {
		return false
	}
	if i.state == nil && i.runs == 0 { // it has not begun, and nobody knows yet what it will wait for
		return true
	}
	return slices.ContainsFunc(i.waits, func(w process.Wait) bool { return satisfies(&w, m, types) })
}

// retire takes out of what is pending the messages that the instance can never take.
func (i *instance) retire(types map[string]string) {
	if i.state == nil && i.runs == 0 {
		return
	}
	kept := i.rest[:0]
	for _, p := range i.rest {
		switch {
		case p.kind == process.Received && !i.fits(p.message, types):
			i.unread = append(i.unread, p)
			if p.event != 0 {
				i.taken = append(i.taken, p.event)
			}
		case p.kind == process.TimerFired || p.kind == process.ActivityDone && p.event == 0 && slices.Contains(i.cancelled, p.work):
			// its timer is gone, or nobody wants the result
		default:
			kept = append(kept, p)
		}
	}
	i.rest = kept
}

// take has the program take an event, and adds what it brings.
func (c *call) take(ctx context.Context, i *instance, p *pending) {
	event := process.Event{
		Kind: p.kind, Receive: p.receive, Timer: p.timer, Activity: p.work, Error: p.err,
	}
	parent := i.parent
	switch p.kind {
	case process.Activated, process.Received:
		m := p.message.Message
		event.Message, parent = &m, m.ID
		if p.kind == process.Received {
			event.Wait = i.open(p, c.runner.config.Types()).ID
		} else if event.Receive == "" {
			if event.Receive, i.failure = i.program.activation(p.message.texts); i.failure != nil {
				return
			}
		}
	case process.TimerFired, process.Resumed:
	case process.Started:
		event.Parameters = p.data
	case process.ActivityDone:
		if p.err == "" {
			event.Result = p.data
		}
	}
	step, err := c.run(ctx, i, event)
	if errors.Is(err, process.ErrNotWaiting) && p.kind != process.Received && p.kind != process.Activated {
		p.isLate = true
		i.took(p)
		return
	}
	if err != nil {
		i.failure = err
		return
	}
	i.took(p)
	i.runs++
	c.runs++
	i.add(step, parent)
}

// took takes that an event is consumed.
func (i *instance) took(p *pending) {
	if p.event != 0 {
		i.taken = append(i.taken, p.event)
	}
	if p.kind == process.ActivityDone {
		i.takenWorks = append(i.takenWorks, p.work)
	}
	if p.message != nil {
		i.ended = append(i.ended, p.message.ID)
	}
}

// add adds what a run has brought.
func (i *instance) add(step process.Step, parent int64) {
	i.state, i.last, i.waits, i.timers = step.State, step.Status, step.Waits, step.Timers
	i.holds, i.at, i.fault = step.Holds, step.At, step.Fault
	for _, p := range step.Publications {
		i.publications = append(i.publications, publication{p, parent})
	}
	i.starts = append(i.starts, step.Starts...)
	for _, a := range step.Activities {
		i.activities = append(i.activities, asked{Activity: a, attempt: 1})
	}
	i.cancelled = append(i.cancelled, step.Cancelled...)
	i.activities = slices.DeleteFunc(i.activities, func(a asked) bool { return slices.Contains(i.cancelled, a.ID) })
	if i.passed == nil {
		i.passed = map[string]int{}
	}
	for _, shape := range step.Passed {
		path := shape.Path
		if shape.Way != "" {
			path += " " + shape.Way
		}
		i.passed[path]++
	}
}

// renew asks again for work whose time is over, or gives the instance the error where its attempts are.
func (i *instance) renew() {
	for _, w := range i.works {
		reason := w.Error
		if reason == "" {
			reason = "the worker has not answered in time"
		}
		if w.Attempt >= max(w.Attempts, 1) {
			i.rest = append(i.rest, &pending{kind: process.ActivityDone, work: w.Activity, err: reason})
			continue
		}
		i.activities = append(i.activities, asked{
			Activity: process.Activity{
				ID: w.Activity, Name: w.Name, Queue: w.Queue, Input: inputOf(w.Input), Attempts: w.Attempts,
				TimeOut: time.Duration(w.TimeOutMS) * time.Millisecond,
			},
			attempt: w.Attempt + 1, pause: min(time.Second<<min(w.Attempt-1, 6), time.Minute), err: w.Error,
		})
	}
	i.works = nil
}

// inputOf gives an input as it was given: the database has it as a text.
func inputOf(written json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(written, &text) == nil {
		return json.RawMessage(text)
	}
	return written
}

// hasRow reports whether the instance has a row, or gets one.
func (i *instance) hasRow() bool {
	return i.row != 0 || !i.isOver() || i.failure != nil
}

// details gives tracking the path of an instance without a row, under the message that it has taken.
func (i *instance) details() *string {
	if i.row == 0 && i.isOver() {
		written, err := json.Marshal(map[string]any{"version": i.version, "status": i.last, "passed": maps.Clone(i.passed)})
		if err == nil {
			text := string(written)
			return &text
		}
	}
	return nil
}
