package process

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

func (a *call) advance(r *run, n *node) (outcome, *Fault) {
	if len(n.Kids) == 0 {
		body := r.begin(a.body, n)
		for name, e := range a.parameters {
			value, fault := r.evaluate(n, e)
			if fault != nil {
				return waits, fault
			}
			if value, fault = r.converted(value, a.body.names.variables[name].typ, n.shape.place); fault != nil {
				return waits, fault
			}
			body.Frames[0].Values[name] = encodeValue(value)
		}
		n.Kids = []*node{body}
	}
	body := n.Kids[0]
	reached, fault := r.advance(body)
	if fault != nil || reached != hasEnded {
		return reached, fault
	}
	for _, one := range a.results {
		value, err := r.decodeValue(body.frameOf(a.body).value(one.theirs))
		if err != nil {
			return waits, r.broken(err)
		}
		if value, fault = r.converted(value, one.to.typ, n.shape.place); fault != nil {
			return waits, fault
		}
		r.store(n, one.to, value)
	}
	r.through(n.shape, "")
	return hasEnded, nil
}

func (a *start) advance(r *run, n *node) (outcome, *Fault) {
	parameters := map[string]json.RawMessage{}
	for name, e := range a.parameters {
		value, fault := r.evaluate(n, e)
		if fault != nil {
			return waits, fault
		}
		parameters[name] = encodeValue(value)
		if bytes.Contains(parameters[name], []byte(`"`+messageKey+`"`)) || bytes.Contains(parameters[name], []byte(`"`+partKey+`"`)) {
			parameters[name] = jsonOf(value)
		}
	}
	written, err := json.Marshal(parameters)
	if err != nil {
		return waits, r.broken(fmt.Errorf("write the parameters of %s: %w", a.name, err))
	}
	r.step.Starts = append(r.step.Starts, Start{Orchestration: a.name, Parameters: written})
	r.given += len(written)
	r.through(n.shape, "")
	return hasEnded, nil
}

// Steps of the node of an activity.
const isAsked = 1

func (a *activity) advance(r *run, n *node) (outcome, *Fault) {
	if n.Step == 0 {
		if fault := a.ask(r, n); fault != nil {
			return waits, fault
		}
	}
	if r.event.Kind != ActivityDone || r.isTaken || r.event.Activity != n.ID {
		return waits, nil
	}
	r.isTaken = true
	if r.event.Error != "" {
		n.Step, n.ID = 0, "" // who resumes the instance has it asked again
		return waits, &Fault{
			Code: codeActivity, Path: n.shape.place, Message: a.name + ": " + r.event.Error,
			Remedy: "mend what the worker needs and resume the instance, or catch the fault",
		}
	}
	if a.result != nil {
		written := r.event.Result
		if len(written) == 0 {
			written = json.RawMessage("null")
		}
		given, err := readJSON(written)
		if err != nil {
			n.Step, n.ID = 0, ""
			return waits, &Fault{
				Code: codeActivity, Path: n.shape.place, Message: a.name + ": the answer is no JSON",
				Remedy: "mend the worker",
			}
		}
		value, fault := r.converted(plainValue(given), a.result.typ, n.shape.place)
		if fault != nil {
			n.Step, n.ID = 0, ""
			return waits, fault
		}
		r.store(n, *a.result, value)
	}
	r.through(n.shape, "")
	return hasEnded, nil
}

func (a *activity) ask(r *run, n *node) *Fault {
	input, fault := r.build(n, a.input)
	if fault != nil {
		return fault
	}
	asked := Activity{Name: a.name, Queue: a.queue, Input: jsonOf(input), Attempts: a.attempts}
	if a.timeout != nil {
		after, fault := r.lengthOf(n, a.timeout)
		if fault != nil {
			return fault
		}
		asked.TimeOut = max(after, time.Millisecond)
	}
	n.ID, n.Step = r.world.NewID(), isAsked
	asked.ID = n.ID
	r.step.Activities = append(r.step.Activities, asked)
	r.given += len(asked.Input)
	return nil
}

func (a *query) advance(r *run, n *node) (outcome, *Fault) {
	arguments := make([]any, len(a.arguments))
	for i, e := range a.arguments {
		value, fault := r.evaluate(n, e)
		if fault != nil {
			return waits, fault
		}
		arguments[i] = native(value)
	}
	rows, err := r.world.Query(r.ctx, a.sql, arguments)
	if err != nil {
		return waits, r.failed(err, codeQuery, n.shape.place)
	}
	if a.rows != nil {
		if rows == nil {
			rows = []map[string]any{}
		}
		r.store(n, *a.rows, plainValue(rows))
	}
	r.through(n.shape, strconv.Itoa(len(rows))+" rows")
	return hasEnded, nil
}

// advance collects messages; Step is how many there are.
func (a *aggregate) advance(r *run, n *node) (outcome, *Fault) {
	for {
		if a.isWhole(n) {
			r.through(n.shape, strconv.Itoa(n.Step)+" messages")
			return hasEnded, nil
		}
		if n.At != nil && r.fires(n.ID) {
			r.through(n.shape, strconv.Itoa(n.Step)+" messages in time")
			return hasEnded, nil
		}
		reached, fault := r.only(n, n.shape.children[0])
		if fault != nil || reached != hasEnded {
			return reached, fault
		}
		n.Kids = nil
		if fault := a.collect(r, n); fault != nil {
			return waits, fault
		}
	}
}

// complete marks that the condition held for the last message; it is no count that can be reached.
const complete = collectedMost + 1

func (a *aggregate) isWhole(n *node) bool {
	return n.Step >= complete || a.count > 0 && n.Step >= a.count || n.Step == collectedMost
}

func (a *aggregate) collect(r *run, n *node) *Fault {
	f, m := n.frameOf(a.into.owner), n.frameOf(a.receive.message.owner).message(a.receive.message.name)
	if f == nil || m == nil {
		return r.broken(errForeignState)
	}
	f.Values[a.into.name] = appended(f.value(a.into.name), encodeValue(&partValue{r: r, message: m}))
	n.Step++
	if n.Step == 1 && a.after != nil {
		if fault := r.setTimer(n, a.after); fault != nil {
			return fault
		}
	}
	if a.condition != nil {
		holds, fault := r.truth(n, a.condition)
		if fault != nil {
			return fault
		}
		if holds {
			n.Step = complete
		}
	}
	return nil
}

// appended adds an element to a list without reading it.
func appended(list, element json.RawMessage) json.RawMessage {
	list = bytes.TrimSpace(list)
	if len(list) < 2 || list[len(list)-1] != ']' {
		list = json.RawMessage("[]")
	}
	longer := make([]byte, 0, len(list)+len(element)+1)
	longer = append(longer, list[:len(list)-1]...)
	if len(bytes.TrimSpace(longer)) > 1 {
		longer = append(longer, ',')
	}
	return append(append(longer, element...), ']')
}
