package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-broker/parley/internal/flow/parts"
)

// run is one run of an instance: an event, and all that follows until nothing goes on without another one.
type run struct {
	ctx     context.Context //nolint:containedctx // a run is one call, and expressions are called back by the library
	world   World
	program *Program
	state   *state
	event   Event
	step    *Step

	isTaken   bool // the event has had its effect
	passed    int  // shapes
	given     int  // bytes of what it sends, starts and asks for
	unwinding *Fault
	status    Status
	fault     *Fault
	err       error

	steps      int // of paths, in the expression that is evaluated
	namespaces map[string]string
	documents  map[*Message]*parts.Document
	bodies     map[int64][]byte
}

// passedMost bounds how many shapes a run passes: what passes more is a loop that never ends.
const passedMost = 100_000

// givenMost bounds what a run sends, starts and asks for, in bytes: all of it is in memory until the step is committed.
const givenMost = 256 << 20

// Run takes an instance from an event as far as it goes without another one. The state is null for the events that begin an instance.
// It is ErrNotWaiting when the instance does not take the event; every other error is one of the world, and nothing has happened.
func (p *Program) Run(ctx context.Context, world World, snapshot json.RawMessage, event Event) (Step, error) {
	r := &run{
		ctx: ctx, world: world, program: p, event: event, step: &Step{}, documents: map[*Message]*parts.Document{},
		bodies: map[int64][]byte{},
	}
	if err := r.open(snapshot); err != nil {
		return Step{}, err
	}
	before := r.live()
	reached, _ := r.advance(r.state.Root) // a fault that nothing catches has stopped the run
	if r.err != nil {
		return Step{}, r.err
	}
	if !r.isTaken {
		return Step{}, ErrNotWaiting
	}
	switch reached {
	case hasEnded:
		r.status = Finished
	case waits:
		r.status = Waiting
	case hasStopped:
	}
	r.step.Status, r.step.Fault = r.status, r.fault
	after := r.live()
	for id := range before.activities {
		if !after.activities[id] && id != event.Activity {
			r.step.Cancelled = append(r.step.Cancelled, id)
		}
	}
	if r.status == Finished || r.status == Terminated {
		for id := range after.activities {
			r.step.Cancelled = append(r.step.Cancelled, id)
		}
		return r.settled(), nil
	}
	r.step.Timers, r.step.At = after.timers, after.at
	r.step.Waits, r.step.Holds = r.waits(), r.holds()
	return r.saved()
}

// settled drops the activities that were asked for and cancelled in the same step.
func (r *run) settled() Step {
	isCancelled := map[string]bool{}
	for _, id := range r.step.Cancelled {
		isCancelled[id] = true
	}
	var wanted []Activity
	isNew := map[string]bool{}
	for _, a := range r.step.Activities {
		isNew[a.ID] = true
		if !isCancelled[a.ID] {
			wanted = append(wanted, a)
		}
	}
	var cancelled []string
	for _, id := range r.step.Cancelled {
		if !isNew[id] {
			cancelled = append(cancelled, id)
		}
	}
	r.step.Activities, r.step.Cancelled = wanted, cancelled
	return *r.step
}

// saved gives the step with its snapshot.
func (r *run) saved() (Step, error) {
	written, err := json.Marshal(r.state)
	if err != nil {
		return Step{}, fmt.Errorf("write the state of an instance: %w", err)
	}
	if len(written) > stateMost {
		return Step{}, &Fault{
			Code: codeSize, Path: "", Message: fmt.Sprintf("the state of the instance would have %d bytes", len(written)),
			Remedy: "keep less in it: send what was collected, and keep messages of the box instead of constructed ones",
		}
	}
	r.step.State, r.step.IsLarge = written, len(written) > stateWarned
	return r.settled(), nil
}

var errEvent = errors.New("an instance cannot begin or go on by this event")

// open makes or reads the state that the event is for.
func (r *run) open(snapshot json.RawMessage) error {
	isNew := r.event.Kind == Activated || r.event.Kind == Started
	if isNew != (len(snapshot) == 0 || string(snapshot) == "null") {
		return fmt.Errorf("%w: %s", errEvent, r.event.Kind)
	}
	if !isNew {
		var err error
		r.state, err = r.program.readState(snapshot)
		r.isTaken = r.event.Kind == Resumed
		return err
	}
	r.state = &state{Version: r.program.version}
	r.state.Root = r.begin(r.program.root, nil)
	if r.event.Kind == Activated {
		if r.event.Message == nil {
			return fmt.Errorf("%w: there is no message", errEvent)
		}
		return nil
	}
	r.isTaken = true
	if len(r.program.activations) > 0 {
		return fmt.Errorf("%w: messages begin instances of %s", errEvent, r.program.name)
	}
	return r.setParameters()
}

// setParameters gives the variables of the orchestration the values with which it is started.
func (r *run) setParameters() error {
	if len(r.event.Parameters) == 0 || string(r.event.Parameters) == "null" {
		return nil
	}
	given := map[string]json.RawMessage{}
	if err := json.Unmarshal(r.event.Parameters, &given); err != nil {
		return fmt.Errorf("%w: the parameters are no object: %w", errEvent, err)
	}
	f := r.state.Root.Frames[0]
	for name, written := range given {
		v := r.program.root.names.variables[name]
		if !v.isParameter {
			return fmt.Errorf("%w: %s has no parameter %q", errEvent, r.program.name, name)
		}
		value, err := (*run)(nil).decodeValue(written)
		if err == nil {
			value, err = valueOfType(value, v.typ)
		}
		if err != nil {
			return fmt.Errorf("%w: parameter %s: %w", errEvent, name, err)
		}
		f.Values[name] = encodeValue(value)
	}
	return nil
}

// advance takes a node as far as it goes. A fault that it gives is one that a scope around it catches.
func (r *run) advance(n *node) (outcome, *Fault) {
	if r.isOver() {
		return hasStopped, nil
	}
	var reached outcome
	var fault *Fault
	if n.Subject != nil {
		reached, fault = r.takeBack(n)
	} else {
		reached, fault = n.shape.act.advance(r, n)
	}
	switch {
	case r.isBroken():
		return hasStopped, nil
	case fault == nil || fault == r.unwinding:
		return reached, fault
	case n.parent != nil && isCaught(n.parent, fault.Code):
		r.unwinding = fault
		return reached, fault
	}
	r.suspend(fault)
	return hasStopped, nil
}

func (r *run) isBroken() bool { return r.err != nil }

func (r *run) isOver() bool { return r.isBroken() || r.status != "" }

// suspend stops the run where it stands, so that the shape is done again when an operator resumes the instance.
func (r *run) suspend(fault *Fault) { r.status, r.fault = Suspended, fault }

// broken ends the run without a step.
func (r *run) broken(err error) *Fault {
	if r.err == nil {
		r.err = err
	}
	return &Fault{Message: err.Error()}
}

// failed makes a fault of an error of the world, where it is one of the instance.
func (r *run) failed(err error, code, place string) *Fault {
	fault, is := errors.AsType[*Fault](err)
	if !is {
		return r.broken(err)
	}
	made := &Fault{Code: code, Path: place, Message: fault.Message, Remedy: fault.Remedy}
	if fault.Code != "" {
		made.Code = fault.Code
	}
	return made
}

// isCaught reports whether a scope around takes a fault: an atomic one to undo what it did, another one by its catch.
func isCaught(n *node, code string) bool {
	for ; n != nil; n = n.parent {
		if sc, is := n.shape.act.(*scope); is && n.Subject == nil && (n.Step == inBody || n.Step == isBrokenOff) &&
			(sc.isAtomic || sc.handles(code)) {
			return true
		}
	}
	return false
}

// pass counts a shape that begins, and stops a run that passes too many.
func (r *run) pass(s *shape) bool {
	r.passed++
	if r.given > givenMost {
		r.suspend(&Fault{
			Code: codeSize, Path: s.place, Message: fmt.Sprintf("%d bytes were sent without waiting", r.given),
			Remedy: "put a delay into the loop, or start orchestrations for parts of the work; who resumes the instance has it go on",
		})
		return false
	}
	if r.passed <= passedMost {
		return true
	}
	r.suspend(&Fault{
		Code: codeLoop, Path: s.place, Message: fmt.Sprintf("%d shapes were passed without waiting", passedMost),
		Remedy: "mend the condition of the loop, put a delay into it, or start orchestrations for parts of the work",
	})
	return false
}

// through reports a shape that has ended.
func (r *run) through(s *shape, way string) {
	r.step.Passed = append(r.step.Passed, Passed{Path: s.place, Way: way})
}
