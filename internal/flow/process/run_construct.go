package process

import (
	"fmt"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/parley-broker/parley/internal/flow/parts"
)

// typed gives a message with a new body its type and properties, and refuses another type than the one that is declared. A body that does
// not say its type, such as one of JSON, is of the declared one.
func (r *run) typed(m Message, declared, place string) (Message, *Fault) {
	m.ID, m.Size = 0, int64(len(m.Body))
	if m.Type == "" {
		m.Type = declared
	}
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
