package process

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/traits"
)

func (*sequence) advance(r *run, n *node) (outcome, *Fault) {
	children := n.shape.children
	for n.Step < len(children) {
		if len(n.Kids) == 0 {
			if !r.pass(children[n.Step]) {
				return hasStopped, nil
			}
			n.Kids = []*node{r.begin(children[n.Step], n)}
		}
		reached, fault := r.advance(n.Kids[0])
		if fault != nil || reached != hasEnded {
			return reached, fault
		}
		n.Step, n.Kids = n.Step+1, nil
	}
	return hasEnded, nil
}

// only advances the one child that a shape has, and begins it where it has not begun.
func (r *run) only(n *node, child *shape) (outcome, *Fault) {
	if len(n.Kids) == 0 {
		n.Kids = []*node{r.begin(child, n)}
	}
	return r.advance(n.Kids[0])
}

func (a *decide) advance(r *run, n *node) (outcome, *Fault) {
	if n.Step == 0 {
		for i, condition := range a.conditions {
			holds := condition == nil
			if !holds {
				var fault *Fault
				if holds, fault = r.truth(n, condition); fault != nil {
					return waits, fault
				}
			}
			if holds {
				n.Step = i + 1
				break
			}
		}
		if n.Step == 0 {
			r.through(n.shape, "none")
			return hasEnded, nil
		}
	}
	if n.Step > len(n.shape.children) {
		return waits, r.broken(errForeignState)
	}
	branch := n.shape.children[n.Step-1]
	if len(n.Kids) == 0 {
		r.through(n.shape, branch.label)
	}
	return r.only(n, branch)
}

func (a *while) advance(r *run, n *node) (outcome, *Fault) {
	for {
		if len(n.Kids) == 0 {
			if !r.pass(n.shape) {
				return hasStopped, nil
			}
			holds, fault := r.truth(n, a.condition)
			if fault != nil {
				return waits, fault
			}
			if !holds {
				r.through(n.shape, strconv.Itoa(n.Step)+" times")
				return hasEnded, nil
			}
		}
		reached, fault := r.only(n, n.shape.children[0])
		if fault != nil || reached != hasEnded {
			return reached, fault
		}
		n.Step, n.Kids = n.Step+1, nil
	}
}

// advance goes through a list; Step is 1 behind how many elements have begun.
func (a *forEach) advance(r *run, n *node) (outcome, *Fault) {
	if n.Step == 0 {
		if fault := a.open(r, n); fault != nil {
			return waits, fault
		}
	}
	for {
		for len(n.Kids) < a.parallel && n.Step <= len(n.List) {
			if !r.pass(n.shape) {
				return hasStopped, nil
			}
			kid := r.begin(n.shape.children[0], n)
			// An element is kept once: in the list until it begins, then by what runs with it, and no more when that has ended.
			kid.Frames[0].Values[a.item], n.List[n.Step-1] = n.List[n.Step-1], json.RawMessage("null")
			n.Step++
			n.Kids = append(n.Kids, kid)
		}
		var left []*node
		hasEndedOne := false
		for i, kid := range n.Kids {
			reached, fault := r.advance(kid)
			if fault != nil || reached == hasStopped {
				n.Kids = append(left, n.Kids[i:]...)
				return reached, fault
			}
			if reached == hasEnded {
				hasEndedOne = true
				continue
			}
			left = append(left, kid)
		}
		n.Kids = left
		if len(left) == 0 && n.Step > len(n.List) {
			r.through(n.shape, strconv.Itoa(len(n.List))+" times")
			return hasEnded, nil
		}
		if !hasEndedOne {
			return waits, nil
		}
	}
}

func (a *forEach) open(r *run, n *node) *Fault {
	value, fault := r.evaluate(n, a.list)
	if fault != nil {
		return fault
	}
	list, is := value.(traits.Lister)
	if !is {
		return r.expressionFault(a.list, fmt.Errorf("it gives a value of type %s and no list", value.Type().TypeName()))
	}
	if size, is := list.Size().(types.Int); is && size > collectedMost {
		return r.expressionFault(a.list, fmt.Errorf("it gives %d elements, and %d are the most", size, collectedMost))
	}
	n.List = []json.RawMessage{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		n.List = append(n.List, encodeValue(it.Next()))
	}
	n.Step = 1
	return nil
}

func (*parallel) advance(r *run, n *node) (outcome, *Fault) {
	if n.Step == 0 {
		n.Step = 1
		for _, branch := range n.shape.children {
			n.Kids = append(n.Kids, r.begin(branch, n))
		}
	}
	reached := hasEnded
	for i, kid := range n.Kids {
		if kid == nil {
			continue
		}
		of, fault := r.advance(kid)
		switch {
		case fault != nil || of == hasStopped:
			return of, fault
		case of == hasEnded:
			n.Kids[i] = nil
		default:
			reached = waits
		}
	}
	if reached == hasEnded {
		r.through(n.shape, "")
	}
	return reached, nil
}

// advance waits for the first of its branches; Step is that of the one that was chosen, from 1 on.
func (*listen) advance(r *run, n *node) (outcome, *Fault) {
	if n.Step > 0 {
		return r.only(n, n.shape.children[n.Step-1])
	}
	if len(n.Kids) == 0 {
		for _, s := range n.shape.children {
			branch := r.begin(s, n)
			branch.Kids = []*node{r.begin(s.children[0], branch)}
			n.Kids = append(n.Kids, branch)
		}
	}
	for i, branch := range n.Kids {
		reached, fault := r.advance(branch.Kids[0])
		if fault != nil || reached == hasStopped {
			return reached, fault
		}
		if reached == hasEnded {
			branch.Step, branch.Kids = 1, nil
			n.Step, n.Kids = i+1, []*node{branch}
			way := branch.shape.label
			if way == "" {
				way = branch.shape.children[0].kind + " " + branch.shape.children[0].detail
			}
			r.through(n.shape, way)
			return r.advance(branch)
		}
	}
	return waits, nil
}

// fires reports whether the event is the time of a timer, and takes it.
func (r *run) fires(id string) bool {
	if r.event.Kind != TimerFired || r.isTaken || id == "" || r.event.Timer != id {
		return false
	}
	r.isTaken = true
	return true
}

// lengthOf gives an interval of 0 to intervalMax.
func (r *run) lengthOf(n *node, l *length) (time.Duration, *Fault) {
	after := l.interval
	if l.expression != nil {
		value, fault := r.evaluate(n, l.expression)
		if fault != nil {
			return 0, fault
		}
		length, is := value.(types.Duration)
		if !is {
			return 0, r.expressionFault(l.expression, fmt.Errorf("it gives a value of type %s and no duration", value.Type().TypeName()))
		}
		after = length.Duration
	}
	return min(max(after, 0), intervalMax), nil
}

// setTimer gives a node the time at which it goes on.
func (r *run) setTimer(n *node, l *length) *Fault {
	after, fault := r.lengthOf(n, l)
	if fault != nil {
		return fault
	}
	at := r.world.Now().Add(after)
	n.ID, n.At = "t"+strconv.Itoa(r.number()), &at
	return nil
}

func (a *delay) advance(r *run, n *node) (outcome, *Fault) {
	// A time that has come counts by its event alone: another event finds the instance as it was when it was routed.
	isNew := n.At == nil
	switch {
	case !isNew:
	case a.length != nil:
		if fault := r.setTimer(n, a.length); fault != nil {
			return waits, fault
		}
	default:
		value, fault := r.evaluate(n, a.until)
		if fault != nil {
			return waits, fault
		}
		at, is := value.(types.Timestamp)
		if !is {
			return waits, r.expressionFault(a.until, fmt.Errorf("it gives a value of type %s and no time", value.Type().TypeName()))
		}
		n.ID, n.At = "t"+strconv.Itoa(r.number()), &at.Time
	}
	if !r.fires(n.ID) && (!isNew || n.At.After(r.world.Now())) {
		return waits, nil
	}
	r.through(n.shape, "")
	return hasEnded, nil
}

func (a *suspend) advance(r *run, n *node) (outcome, *Fault) {
	if n.Step == 1 {
		return hasEnded, nil
	}
	reason, fault := r.fill(n, a.reason)
	if fault != nil {
		return waits, fault
	}
	n.Step = 1
	r.through(n.shape, "")
	r.suspend(&Fault{Code: "suspended", Path: n.shape.place, Message: reason, Remedy: "resume the instance, or terminate it"})
	return hasStopped, nil
}

func (a *terminate) advance(r *run, n *node) (outcome, *Fault) {
	reason, fault := r.fill(n, a.reason)
	if fault != nil {
		return waits, fault
	}
	r.through(n.shape, "")
	r.status, r.fault = Terminated, &Fault{Code: "terminated", Path: n.shape.place, Message: reason}
	return hasStopped, nil
}

func (a *throw) advance(r *run, n *node) (outcome, *Fault) {
	if a.isAgain {
		for around := n.parent; around != nil; around = around.parent {
			if around.Fault != nil && around.Step == inCatch {
				r.through(n.shape, around.Fault.Code)
				again := *around.Fault
				return waits, &again
			}
		}
		return waits, r.broken(errForeignState)
	}
	fault := &Fault{Code: a.code, Path: n.shape.place, Message: a.code}
	if a.message != nil {
		message, failed := r.fill(n, a.message)
		if failed != nil {
			return waits, failed
		}
		fault.Message = message
	}
	r.through(n.shape, a.code)
	return waits, fault
}
