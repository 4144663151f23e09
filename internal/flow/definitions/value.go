package definitions

import (
	"encoding/json"
	"slices"
	"strconv"
)

// kind is one of the kinds of values that JSON has.
type kind int

const (
	isNull kind = iota
	isBoolean
	isNumber
	isText
	isList
	isObject
)

// value is a value with its place.
type value struct {
	kind    kind
	text    string // of a boolean, a number or a text
	isPlain bool   // a text without quotes, which a variable may give another kind
	place   Place
	items   []*value
	members []member
	index   map[string]int // of members by their names
}

// member is a key of an object with its value. The place is that of the key.
type member struct {
	name  string
	place Place
	value *value
}

func (v *value) member(name string) *member {
	if i, isThere := v.index[name]; isThere {
		return &v.members[i]
	}
	return nil
}

// add adds a member whose name is new.
func (v *value) add(m member) {
	if v.index == nil {
		v.index = map[string]int{}
	}
	v.index[m.name] = len(v.members)
	v.members = append(v.members, m)
}

// remove takes a member out.
func (v *value) remove(name string) {
	v.members = slices.DeleteFunc(v.members, func(m member) bool { return m.name == name })
	v.index = nil
	for i, m := range v.members {
		if v.index == nil {
			v.index = map[string]int{}
		}
		v.index[m.name] = i
	}
}

// MarshalJSON writes a number as it was written, so that no digit is lost.
func (v *value) MarshalJSON() ([]byte, error) {
	switch v.kind {
	case isNull:
		return []byte("null"), nil
	case isBoolean, isNumber:
		return []byte(v.text), nil
	case isText:
		return json.Marshal(v.text)
	case isList:
		return json.Marshal(append([]*value{}, v.items...))
	default: // isObject
		return v.marshalMembers()
	}
}

func (v *value) marshalMembers() ([]byte, error) {
	written := []byte{'{'}
	for i, m := range v.members {
		if i > 0 {
			written = append(written, ',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		content, err := m.value.MarshalJSON()
		if err != nil {
			return nil, err
		}
		written = append(append(append(written, name...), ':'), content...)
	}
	return append(written, '}'), nil
}

// at gives what a path leads to; nil where that is not there.
func (v *value) at(path []string) *value {
	for _, step := range path {
		if v.kind == isList {
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(v.items) {
				return nil
			}
			v = v.items[n]
			continue
		}
		m := v.member(step)
		if m == nil {
			return nil
		}
		v = m.value
	}
	return v
}

// locate gives the place of what a path leads to, or of the last thing on the way that is there.
func (v *value) locate(path []string) Place {
	place := v.place
	for _, step := range path {
		if v.kind == isList {
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(v.items) {
				return place
			}
			v = v.items[n]
			place = v.place
			continue
		}
		m := v.member(step)
		if m == nil {
			return place
		}
		v, place = m.value, m.place
	}
	return place
}
