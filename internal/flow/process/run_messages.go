package process

import (
	"fmt"
	"maps"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/flow/parts"
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
		promoted[tokenProperty] = token
	}
	sent, fault := r.promote(n, *m, a.properties, promoted)
	if fault != nil {
		return waits, fault
	}
	known := &sent
	if asks(a.initialise) {
		sent, known = r.withToken(sent)
	}
	if fault := r.initialise(n, a.initialise, known, false); fault != nil {
		return waits, fault
	}
	r.step.Publications = append(r.step.Publications, Publication{Message: sent, Port: a.port, SendPort: a.sendPort})
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

// typed gives a message with a new body its type and properties, and refuses another type than the one that is declared.
func (r *run) typed(m Message, declared, place string) (Message, *Fault) {
	m.ID, m.Size = 0, int64(len(m.Body))
	typed, err := r.world.Type(r.ctx, m)
	if err != nil {
		return m, r.failed(err, codeType, place)
	}
	if declared != "" && typed.Type != declared {
		return m, &Fault{
			Code: codeType, Path: place, Message: fmt.Sprintf("the message is of type %q, and declared as %q", typed.Type, declared),
			Remedy: "construct one of that type, or declare it as any",
		}
	}
	return typed, nil
}

func (a *construct) advance(r *run, n *node) (outcome, *Fault) {
	m, fault := a.content(r, n)
	if fault != nil {
		return waits, fault
	}
	if m, fault = r.promote(n, m, a.properties, nil); fault != nil {
		return waits, fault
	}
	r.assign(n, a.message, &m)
	r.through(n.shape, "")
	return hasEnded, nil
}

func (a *construct) content(r *run, n *node) (Message, *Fault) {
	m := Message{}
	switch {
	case a.from != nil:
		from, fault := r.content(n, *a.from)
		if fault != nil {
			return m, fault
		}
		if len(a.set) == 0 && (a.typ == "" || a.typ == from.Type) {
			return *from, nil // it stays the same message of the box
		}
		body, err := r.body(from)
		if err != nil {
			return m, r.bodyFault(err, n.shape.place)
		}
		m.Body, m.Content = body, from.Content
	case a.template != nil:
		text, fault := r.fill(n, a.template)
		if fault != nil {
			return m, fault
		}
		m.Body = []byte(text)
		m.Content = map[form]string{formXML: "application/xml", formJSON: "application/json", formText: "text/plain"}[a.template.form]
	default:
		value, fault := r.build(n, a.value)
		if fault != nil {
			return m, fault
		}
		m.Body, m.Content = jsonOf(value), "application/json"
	}
	body, fault := r.setParts(n, m.Body, a.set)
	if fault != nil {
		return m, fault
	}
	m.Body = body
	return r.typed(m, a.typ, n.shape.place)
}

func (r *run) bodyFault(err error, place string) *Fault {
	if world, is := err.(*worldError); is { //nolint:errorlint // it is what body gives, and wraps what the world gave
		return r.failed(world.error, codeExpression, place)
	}
	return &Fault{Code: codeExpression, Path: place, Message: err.Error(), Remedy: "send a body that can be read"}
}

// build gives a value whose texts are expressions.
func (r *run) build(n *node, s *structure) (ref.Val, *Fault) {
	switch {
	case s.expression != nil:
		return r.evaluate(n, s.expression)
	case s.isList:
		elements := []ref.Val{}
		for _, element := range s.elements {
			value, fault := r.build(n, element)
			if fault != nil {
				return nil, fault
			}
			elements = append(elements, value)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, elements), nil
	case s.members != nil:
		members := map[ref.Val]ref.Val{}
		for name, member := range s.members {
			value, fault := r.build(n, member)
			if fault != nil {
				return nil, fault
			}
			members[types.String(name)] = value
		}
		return types.NewRefValMap(types.DefaultTypeAdapter, members), nil
	}
	return types.NullValue, nil
}

// setParts gives a body with values at paths. All expressions see what was before.
func (r *run) setParts(n *node, body []byte, assignments []partAssignment) ([]byte, *Fault) {
	values := make([]parts.Value, len(assignments))
	for i, a := range assignments {
		value, fault := r.partOf(n, a)
		if fault != nil {
			return nil, fault
		}
		values[i] = value
	}
	for i, a := range assignments {
		document, err := parts.Parse(body)
		if err != nil {
			return nil, r.bodyFault(err, n.shape.place)
		}
		r.steps = stepsMax
		if body, err = document.Set(a.path, values[i], &r.steps); err != nil {
			return nil, r.bodyFault(err, n.shape.place)
		}
	}
	return body, nil
}

func (r *run) partOf(n *node, a partAssignment) (parts.Value, *Fault) {
	if a.value == nil {
		return parts.Value{IsRemoval: true}, nil
	}
	value, fault := r.evaluate(n, a.value)
	if fault != nil {
		return parts.Value{}, fault
	}
	if value == types.NullValue {
		return parts.Value{IsRemoval: true}, nil
	}
	made := parts.Value{Text: textOf(value), JSON: jsonOf(value)}
	if v, is := value.(*partValue); is {
		part, err := v.part()
		if err != nil {
			return made, r.bodyFault(err, n.shape.place)
		}
		made.Fragment = part.Fragment()
	}
	return made, nil
}

func (a *transform) advance(r *run, n *node) (outcome, *Fault) {
	inputs := make([]Message, len(a.from))
	for i, from := range a.from {
		m, fault := r.content(n, from)
		if fault != nil {
			return waits, fault
		}
		inputs[i] = *m
	}
	m, err := r.world.Transform(r.ctx, a.name, inputs)
	if err != nil {
		return waits, r.failed(err, codeTransform, n.shape.place)
	}
	m, fault := r.typed(m, a.typ, n.shape.place)
	if fault != nil {
		return waits, fault
	}
	if m, fault = r.promote(n, m, a.properties, nil); fault != nil {
		return waits, fault
	}
	r.assign(n, a.to, &m)
	r.through(n.shape, "")
	return hasEnded, nil
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
