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
)

func (a *scope) isState(_ *shape, n *node) bool {
	if n.Step > isTakingBack || len(n.Kids) > 1 || n.Step == 0 && len(n.Kids) > 0 || n.Step > inBody && n.Fault == nil {
		return false
	}
	for _, kid := range n.Kids {
		if kid == nil {
			return false
		}
		isBody := kid.Shape == a.body.id && kid.Subject == nil
		isHandler := slices.ContainsFunc(a.catches, func(c catchBlock) bool { return c.block.id == kid.Shape })
		if n.Step == inBody && !isBody || n.Step == inCatch && !isHandler || n.Step == isTakingBack && kid.Subject == nil {
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
	r.unwinding = nil
	n.Kids, n.ID, n.At = nil, "", nil
	handler := a.handlerOf(fault.Code)
	if handler == nil {
		return a.takeInnerBack(r, n, fault)
	}
	n.Step, n.Fault = inCatch, fault
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

// takeInnerBack begins to take back the inner scopes that have ended, before the fault goes on.
func (a *scope) takeInnerBack(r *run, n *node, fault *Fault) (outcome, *Fault) {
	r.unwinding = nil
	n.Step, n.Fault, n.Kids, n.ID, n.At = isTakingBack, fault, nil, "", nil
	return a.continueTakingBack(r, n)
}

func (a *scope) continueTakingBack(r *run, n *node) (outcome, *Fault) {
	reached, fault := r.takeBackAll(n)
	if fault != nil || reached != hasEnded {
		return reached, fault
	}
	r.through(n.shape, n.Fault.Code)
	passedOn := *n.Fault
	return waits, &passedOn
}

// takeBackAll takes back the scopes that are done within a node, the last one first.
func (r *run) takeBackAll(n *node) (outcome, *Fault) {
	for {
		if len(n.Kids) == 0 {
			if len(n.Done) == 0 {
				return hasEnded, nil
			}
			// It leaves the list before it begins: it is taken back once at most.
			last := n.Done[len(n.Done)-1]
			n.Done = n.Done[:len(n.Done)-1]
			s := r.program.shapes[last.Shape]
			n.Kids = []*node{{Shape: s.id, Subject: last, Frames: last.Frames, Done: last.Inner, shape: s, parent: n}}
		}
		reached, fault := r.advance(n.Kids[0])
		if fault != nil || reached != hasEnded {
			return reached, fault
		}
		n.Kids = nil
	}
}

// takeBack takes a scope back that has ended well: by its compensation, or by that of its inner scopes.
func (r *run) takeBack(n *node) (outcome, *Fault) {
	a, is := n.shape.act.(*scope)
	if !is {
		return waits, r.broken(errForeignState)
	}
	if len(n.Kids) == 0 && !r.pass(n.shape) {
		return hasStopped, nil
	}
	var reached outcome
	var fault *Fault
	if a.compensation != nil {
		reached, fault = r.only(n, a.compensation)
	} else {
		reached, fault = r.takeBackAll(n)
	}
	if fault == nil && reached == hasEnded {
		r.through(n.shape, "compensated")
	}
	return reached, fault
}

// commit keeps a scope that has ended well, where it can still be taken back.
func (r *run) commit(n *node, a *scope) {
	if a.compensation == nil && len(n.Done) == 0 {
		return
	}
	done := &committed{Shape: n.Shape, Inner: n.Done}
	for _, f := range n.Frames {
		done.Frames = append(done.Frames, f.copied())
	}
	for around := n.parent; around != nil; around = around.parent {
		if _, is := around.shape.act.(*scope); is {
			around.Done = append(around.Done, done)
			return
		}
		// Loops and calls between the two have values of their own, which go with them.
		for _, f := range slices.Backward(around.Frames) {
			done.Frames = append([]*frame{f.copied()}, done.Frames...)
		}
	}
}

func (a *compensate) advance(r *run, n *node) (outcome, *Fault) {
	if n.Step == 0 {
		n.Step = 1
		source := n.parent
		for source != nil && source.Subject == nil && source.Step < inCatch || source != nil && !isScope(source) {
			source = source.parent
		}
		if source == nil {
			return waits, r.broken(errForeignState)
		}
		var left []*committed
		for _, done := range source.Done {
			if a.isAll || slices.Contains(a.scopes, done.Shape) {
				n.Done = append(n.Done, done)
			} else {
				left = append(left, done)
			}
		}
		source.Done = left
	}
	reached, fault := r.takeBackAll(n)
	if fault == nil && reached == hasEnded {
		r.through(n.shape, "")
	}
	return reached, fault
}

func isScope(n *node) bool {
	_, is := n.shape.act.(*scope)
	return is
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
