package process

import (
	"fmt"
	"maps"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/parley-broker/parley/internal/flow/match"
)

// Steps of the node of a receive.
const isReceived = 1

func (a *receive) advance(r *run, n *node) (outcome, *Fault) {
	if n.Step == 0 {
		isFor := a.isActivating && r.event.Kind == Activated && r.event.Receive == n.shape.place
		if !isFor {
			wait, fault := r.waitOf(n.shape, n)
			if fault != nil && !a.isActivating {
				return waits, fault
			}
			isFor = fault == nil && r.event.Kind == Received && r.event.Wait == wait.ID
		}
		if !isFor || r.isTaken || r.event.Message == nil {
			return waits, nil
		}
		r.isTaken, n.Step = true, isReceived
		r.assign(n, a.message, r.event.Message)
	}
	if fault := r.initialise(n, a.initialise, n.frameOf(a.message.owner).message(a.message.name), a.isActivating); fault != nil {
		return waits, fault
	}
	r.through(n.shape, "")
	return hasEnded, nil
}

func (r *run) assign(n *node, to reference, m *Message) {
	if f := n.frameOf(to.owner); f != nil {
		f.Messages[to.name] = m
	}
}

// content gives a message that has content.
func (r *run) content(n *node, of reference) (*Message, *Fault) {
	m := n.frameOf(of.owner).message(of.name)
	if m == nil {
		return nil, &Fault{
			Code: codeExpression, Path: n.shape.place, Message: fmt.Sprintf("message %s has no content yet", of.name),
			Remedy: "receive or construct it before",
		}
	}
	return m, nil
}

// valueOfProperty gives the canonical text of a promoted property of a message.
func (r *run) valueOfProperty(m *Message, property string) (string, bool) {
	value, isThere := m.Promoted[property]
	if !isThere || value == nil {
		if property == "MessageType" && m.Type != "" {
			return m.Type, true
		}
		return "", false
	}
	return match.Canonical(textOf(plainValue(value)), r.program.properties[property]), true
}

// initialise takes the values of correlation sets from a message. A set that has them already has to have the same ones, where that may be:
// of a parallel convoy, whose first message gave them.
func (r *run) initialise(n *node, sets []setReference, m *Message, mayRepeat bool) *Fault {
	for _, s := range sets {
		f := n.frameOf(s.owner)
		if f == nil || m == nil {
			return r.broken(errForeignState)
		}
		values := map[string]string{}
		for _, property := range s.properties {
			value, isThere := r.valueOfProperty(m, property)
			if !isThere {
				return &Fault{
					Code: codeCorrelation, Path: n.shape.place, Message: fmt.Sprintf("the message has no promoted property %s of set %s",
						property, s.name),
					Remedy: "promote it in its message type, or give it by properties",
				}
			}
			values[property] = value
		}
		if before, isThere := f.Sets[s.name]; isThere && (!mayRepeat || !maps.Equal(before, values)) {
			return &Fault{
				Code: codeCorrelation, Path: n.shape.place, Message: fmt.Sprintf("correlation set %s has its values already", s.name),
				Remedy: "declare the set in a scope of its own, such as one within the loop",
			}
		}
		f.Sets[s.name] = values
	}
	return nil
}

func (r *run) setValues(n *node, s setReference, place string) (map[string]string, *Fault) {
	if f := n.frameOf(s.owner); f != nil && f.Sets[s.name] != nil {
		return f.Sets[s.name], nil
	}
	return nil, &Fault{
		Code: codeCorrelation, Path: place, Message: fmt.Sprintf("correlation set %s has no values yet", s.name),
		Remedy: "initialise it by a receive or send before",
	}
}

func (a *send) advance(r *run, n *node) (outcome, *Fault) {
	m, fault := r.content(n, a.message)
	if fault != nil {
		return waits, fault
	}
	promoted := map[string]any{}
	for _, s := range a.follow {
		values, fault := r.setValues(n, s, n.shape.place)
		if fault != nil {
			return waits, fault
		}
		for property, value := range values {
			promoted[property] = value
		}
	}
	if a.answers != nil {
		token, fault := r.tokenOf(n, *a.answers)
		if fault != nil {
			return waits, fault
		}
		promoted[TokenProperty] = token
	}
	sent, fault := r.promote(n, *m, a.properties, promoted)
	if fault != nil {
		return waits, fault
	}
	known := &sent
	if asks(a.initialise) {
		sent, known = r.withToken(sent)
	} else if _, isOwn := promoted[TokenProperty]; !isOwn {
		sent = withoutToken(sent)
	}
	if fault := r.initialise(n, a.initialise, known, false); fault != nil {
		return waits, fault
	}
	r.step.Publications = append(r.step.Publications, Publication{Message: sent, Port: a.port, SendPort: a.sendPort})
	r.given += len(sent.Body)
	r.through(n.shape, "")
	return hasEnded, nil
}

// promote gives a message with more promoted properties.
func (r *run) promote(n *node, m Message, by map[string]*expression, with map[string]any) (Message, *Fault) {
	if len(by) == 0 && len(with) == 0 {
		return m, nil
	}
	promoted := maps.Clone(m.Promoted)
	if promoted == nil {
		promoted = map[string]any{}
	}
	maps.Copy(promoted, with)
	for _, name := range slices.Sorted(maps.Keys(by)) {
		value, fault := r.evaluate(n, by[name])
		if fault != nil {
			return m, fault
		}
		if value == types.NullValue {
			delete(promoted, name)
			continue
		}
		promoted[name] = match.Canonical(textOf(value), r.program.properties[name])
	}
	m.Promoted = promoted
	return m, nil
}

func (a *set) advance(r *run, n *node) (outcome, *Fault) {
	values := make([]ref.Val, len(a.variables))
	for i, one := range a.variables {
		value, fault := r.evaluate(n, one.value)
		if fault != nil {
			return waits, fault
		}
		if values[i], fault = r.converted(value, one.to.typ, n.shape.place); fault != nil {
			return waits, fault
		}
	}
	changed := map[reference][]partAssignment{}
	typ := map[reference]string{}
	for _, p := range a.parts {
		changed[p.message], typ[p.message] = append(changed[p.message], p.partAssignment), p.typ
	}
	made := map[reference]*Message{}
	for to, assignments := range changed {
		m, fault := r.content(n, to)
		if fault != nil {
			return waits, fault
		}
		body, err := r.body(m)
		if err != nil {
			return waits, r.bodyFault(err, n.shape.place)
		}
		if body, fault = r.setParts(n, body, assignments); fault != nil {
			return waits, fault
		}
		another, fault := r.typed(Message{Body: body, Content: m.Content, Written: m.Written}, typ[to], n.shape.place)
		if fault != nil {
			return waits, fault
		}
		made[to] = &another
	}
	for to, m := range made {
		r.assign(n, to, m)
	}
	for i, one := range a.variables {
		r.store(n, one.to, values[i])
	}
	r.through(n.shape, "")
	return hasEnded, nil
}

// converted makes of a value one of the type of a variable.
func (r *run) converted(value ref.Val, typ, place string) (ref.Val, *Fault) {
	converted, err := valueOfType(value, typ)
	if err != nil {
		return nil, &Fault{Code: codeExpression, Path: place, Message: err.Error(), Remedy: "convert it, or declare the variable as any"}
	}
	return converted, nil
}

func (r *run) store(n *node, to variableReference, value ref.Val) {
	if f := n.frameOf(to.owner); f != nil {
		f.Values[to.name] = encodeValue(value)
	}
}
