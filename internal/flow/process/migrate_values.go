package process

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// firstFrame has the first values of what a shape declares. Its number is 0: nothing waits by a set of it.
func firstFrame(owner *shape) *frame {
	f := &frame{Owner: owner.id, Messages: map[string]*Message{}, Values: map[string]json.RawMessage{}, Sets: map[string]map[string]string{}}
	for name, v := range owner.names.variables {
		f.Values[name] = v.value
	}
	return f
}

// frame gives the values of one version to the names of another. A name that is not declared any more is forgotten, and one that is new has
// its first value.
func (m *migration) frame(f *frame, owner *shape) (*frame, *Fault) {
	was, is := m.from.shapes[f.Owner], owner.names
	made := firstFrame(owner)
	made.ID = f.ID
	for _, name := range slices.Sorted(maps.Keys(f.Messages)) {
		typ, isDeclared := is.messages[name]
		message := f.Messages[name]
		if !isDeclared {
			continue
		}
		if typ != "" && message.Type != typ {
			return nil, &Fault{
				Code: codeVersion, Path: was.place,
				Message: fmt.Sprintf("message %s has type %q, and is declared as %q now", name, message.Type, typ),
				Remedy:  "declare a message of another name, or have such instances end with their version",
			}
		}
		made.Messages[name] = message
	}
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		then, wasDeclared := was.names.variables[name]
		if given := givenName(was); !wasDeclared || name == given { // the element of a loop, or a fault that was caught
			if now := givenName(owner); name == given && now != "" {
				made.Values[now] = f.Values[name]
			}
			continue
		}
		v, isDeclared := is.variables[name]
		switch {
		case !isDeclared:
			continue
		case v.typ == then.typ:
			made.Values[name] = f.Values[name]
			continue
		}
		value, err := (*run)(nil).decodeValue(f.Values[name])
		if err == nil {
			value, err = valueOfType(value, v.typ)
		}
		if err != nil {
			return nil, &Fault{
				Code: codeVersion, Path: was.place, Message: fmt.Sprintf("variable %s cannot be a %s: %v", name, v.typ, err),
				Remedy: "declare a variable of another name, or have such instances end with their version",
			}
		}
		made.Values[name] = encodeValue(value)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Sets)) {
		properties, isDeclared := is.correlations[name]
		if !isDeclared {
			continue
		}
		if !slices.Equal(slices.Sorted(maps.Keys(f.Sets[name])), slices.Sorted(slices.Values(properties))) {
			return nil, &Fault{
				Code: codeVersion, Path: was.place, Message: fmt.Sprintf("correlation set %s has values of other properties", name),
				Remedy: "declare a set of another name, or have such instances end with their version",
			}
		}
		made.Sets[name] = f.Sets[name]
	}
	return made, nil
}

// givenName is how a shape calls what it is given: the element of a loop, or the fault of a catch; empty where it is given nothing.
func givenName(owner *shape) string {
	if owner.parent == nil {
		return ""
	}
	switch a := owner.parent.act.(type) {
	case *forEach:
		return a.item
	case *scope:
		for _, handler := range a.catches {
			if handler.block == owner {
				return handler.as
			}
		}
	}
	return ""
}
