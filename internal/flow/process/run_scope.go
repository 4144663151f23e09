package process

import (
	"context"
	"encoding/json"
	"slices"
)

// Steps of the node of a scope.
const (
	inBody       = 1
	inCatch      = 2
	isTakingBack = 3 // what it did, before its fault goes on
	isBrokenOff  = 4 // by a fault that it catches: scopes that ran within it take theirs back before
)

func (a *scope) isState(_ *shape, n *node) bool {
	if n.Step > isBrokenOff || len(n.Kids) > 1 || n.Step == 0 && len(n.Kids) > 0 || n.Step > inBody && n.Fault == nil {
		return false
	}
	for _, kid := range n.Kids {
		if kid == nil {
			return false
		}
		isBody := kid.Shape == a.body.id && kid.Subject == nil
		isHandler := slices.ContainsFunc(a.catches, func(c catchBlock) bool { return c.block.id == kid.Shape })
		if n.Step == inBody && !isBody || n.Step == inCatch && !isHandler || n.Step >= isTakingBack && kid.Subject == nil {
			return false
		}
	}
	return n.Step != inCatch || len(n.Kids) == 1
}

func (a *scope) advance(r *run, n *node) (outcome, *Fault) {
	if a.isAtomic {
		return a.advanceAtomic(r, n)
	}
	if n.Step == 0 {
		if a.timeout != nil {
			if fault := r.setTimer(n, a.timeout); fault != nil {
				return waits, fault
			}
		}
		n.Step = inBody
	}
	switch n.Step {
	case inBody:
		return a.advanceBody(r, n)
	case inCatch:
		reached, fault := r.advance(n.Kids[0])
		if fault != nil {
			return a.takeInnerBack(r, n, fault)
		}
		return reached, nil
	case isBrokenOff:
		return a.continueBreakingOff(r, n)
	}
	return a.continueTakingBack(r, n)
}

func (a *scope) advanceBody(r *run, n *node) (outcome, *Fault) {
	var reached outcome
	var fault *Fault
	if a.timeout != nil && r.fires(n.ID) {
		fault = &Fault{
			Code: codeTimeout, Path: n.shape.place, Message: "the scope did not end in its time",
			Remedy: "catch the time-out, or give the scope more time",
		}
	} else {
		reached, fault = r.only(n, a.body)
	}
	if fault == nil {
		if reached == hasEnded {
			r.commit(n, a)
			r.through(n.shape, "")
		}
		return reached, nil
	}
	n.ID, n.At = "", nil
	return a.breakOff(r, n, fault)
}

// breakOff ends what runs within a scope by a fault.
func (a *scope) breakOff(r *run, n *node, fault *Fault) (outcome, *Fault) {
	if a.handlerOf(fault.Code) == nil {
		return a.takeInnerBack(r, n, fault)
	}
	r.unwinding = nil
	n.Step, n.Fault, n.Left, n.Kids = isBrokenOff, fault, append(n.Left, n.unended()...), nil
	return a.continueBreakingOff(r, n)
}

// continueBreakingOff begins the catch when the scopes that ran within have taken theirs back. A fault of a compensation takes the place of
// the one before.
func (a *scope) continueBreakingOff(r *run, n *node) (outcome, *Fault) {
	reached, fault := r.takeBackOf(n, &n.Left)
	if fault != nil {
		return a.breakOff(r, n, fault)
	}
	if reached != hasEnded {
		return reached, nil
	}
	fault = n.Fault
	handler := a.handlerOf(fault.Code)
	if handler == nil {
		return waits, r.broken(errForeignState)
	}
	n.Step = inCatch
	r.through(n.shape, handler.block.label)
	block := r.begin(handler.block, n)
	if handler.as != "" {
		known, err := json.Marshal(map[string]string{"code": fault.Code, "message": fault.Message, "path": fault.Path})
		if err != nil {
			return waits, r.broken(err)
		}
		block.Frames[0].Values[handler.as] = known
	}
	n.Kids = []*node{block}
	return a.advance(r, n)
}

// takeInnerBack begins to take back the inner scopes that have ended, before the fault goes on. Among them are those of scopes that ran.
func (a *scope) takeInnerBack(r *run, n *node, fault *Fault) (outcome, *Fault) {
	r.unwinding = nil
	n.Done = inOrder(slices.Concat(n.Done, n.Left, n.unended()))
	n.Step, n.Fault, n.Left, n.Kids, n.ID, n.At = isTakingBack, fault, nil, nil, "", nil
	return a.continueTakingBack(r, n)
}

func (a *scope) continueTakingBack(r *run, n *node) (outcome, *Fault) {
	reached, fault := r.takeBackOf(n, &n.Done)
	if fault != nil || reached != hasEnded {
		return reached, fault
	}
	r.through(n.shape, n.Fault.Code)
	passedOn := *n.Fault
	return waits, &passedOn
}

// mark is the point to which an atomic scope goes back.
type mark struct {
	publications, starts, passed int
	frames                       map[*frame]*frame
	done                         map[*node]int
}

func (r *run) mark(n *node) mark {
	m := mark{
		publications: len(r.step.Publications), starts: len(r.step.Starts), passed: len(r.step.Passed),
		frames: map[*frame]*frame{}, done: map[*node]int{},
	}
	for around := n; around != nil; around = around.parent {
		for _, f := range around.Frames {
			m.frames[f] = f.copied()
		}
		m.done[around] = len(around.Done)
	}
	return m
}

func (r *run) back(n *node, m mark) {
	r.step.Publications, r.step.Starts = r.step.Publications[:m.publications], r.step.Starts[:m.starts]
	r.step.Passed = r.step.Passed[:m.passed]
	for f, was := range m.frames {
		*f = *was
	}
	for around, length := range m.done {
		around.Done = around.Done[:length]
	}
	n.Step, n.Kids = 0, nil
}

// advanceAtomic runs a scope as one piece: it ends, or nothing of it has happened.
func (a *scope) advanceAtomic(r *run, n *node) (outcome, *Fault) {
	m := r.mark(n)
	release, back := func(context.Context) error { return nil }, func(context.Context) error { return nil }
	if a.hasQuery(a.body) {
		var err error
		if release, back, err = r.world.Savepoint(r.ctx); err != nil {
			return waits, r.broken(err)
		}
	}
	n.Step = inBody
	reached, fault := r.only(n, a.body)
	if r.isBroken() {
		return hasStopped, nil
	}
	if fault == nil && reached == hasEnded {
		if err := release(r.ctx); err != nil {
			return waits, r.broken(err)
		}
		r.commit(n, a)
		r.through(n.shape, "")
		return hasEnded, nil
	}
	if err := back(r.ctx); err != nil {
		return waits, r.broken(err)
	}
	r.back(n, m)
	if fault == nil { // the run has stopped
		return reached, nil
	}
	r.unwinding = nil
	outside := *fault
	return waits, &outside
}

func (a *scope) hasQuery(s *shape) bool {
	if _, is := s.act.(*query); is {
		return true
	}
	return slices.ContainsFunc(s.children, a.hasQuery)
}
