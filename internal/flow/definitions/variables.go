package definitions

import (
	"regexp"
	"slices"
	"strings"
)

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// reference is a variable in a text; with one $ more in front it stands for itself.
	reference = regexp.MustCompile(`\$?\$\{([^}]*)\}`)
)

// Variables are the values of variables, by their names.
type variables struct {
	values map[string]*value
	isUsed map[string]bool
}

// take adds the variables of an object. Those that are there are replaced where isOver says so, and otherwise given twice.
func (s *variables) take(object *value, isOver bool, faults *faultList) {
	if object.kind != isObject {
		if object.kind != isNull {
			faults.add(object.place, "give an object of names and values", "variables are %s", describe(object))
		}
		return
	}
	for _, m := range object.members {
		before := s.values[m.name]
		switch {
		case !variableName.MatchString(m.name):
			faults.add(m.place, "use letters, digits and _, and begin with no digit", "a variable cannot be called %q", m.name)
		case m.value.kind == isList || m.value.kind == isObject:
			faults.add(m.value.place, "give a text, a number, true or false", "variable %s is %s", m.name, describe(m.value))
		case before != nil && !isOver:
			faults.add(m.place, "leave one of the two out", "variable %s is given twice, first at %s", m.name, before.place)
		default:
			s.values[m.name] = m.value
		}
	}
}

// put replaces the variables in the texts of a value.
func (s *variables) put(v *value, faults *faultList) {
	switch v.kind {
	case isNull, isBoolean, isNumber: // They hold no variables.
	case isText:
		s.putText(v, faults)
	case isList:
		for _, item := range v.items {
			s.put(item, faults)
		}
	case isObject:
		for _, m := range v.members {
			if reference.MatchString(m.name) {
				faults.add(m.place, "write the name itself", "the name %q holds a variable: variables stand in values", m.name)
			}
			s.put(m.value, faults)
		}
	}
}

func (s *variables) putText(v *value, faults *faultList) {
	found := reference.FindStringSubmatch(v.text)
	if found == nil {
		return
	}
	// A variable alone, without quotes, keeps the kind that its value has.
	if v.isPlain && found[0] == v.text && !strings.HasPrefix(v.text, "$$") {
		if given := s.find(found[1], v.place, faults); given != nil {
			v.kind, v.text = given.kind, given.text
		}
		return
	}
	v.text = reference.ReplaceAllStringFunc(v.text, func(found string) string {
		if strings.HasPrefix(found, "$$") {
			return found[1:]
		}
		if given := s.find(found[2:len(found)-1], v.place, faults); given != nil {
			return given.text
		}
		return found
	})
}

func (s *variables) find(name string, place Place, faults *faultList) *value {
	s.isUsed[name] = true
	given, isThere := s.values[name]
	const remedy = "give it a value in the section variables, in environments/NAME.yaml with --environment NAME, or by --set NAME=VALUE; " +
		"for the text itself write $${"
	switch {
	case !isThere:
		faults.add(place, remedy, "there is no variable %q", name)
		return nil
	case given.kind == isNull:
		faults.add(place, remedy, "variable %s has no value here (%s)", name, given.place)
		return nil
	}
	return given
}

// set adds a variable of the command line.
func (s *variables) set(name, text string, faults *faultList) {
	place := Place{File: "--set " + name}
	if !variableName.MatchString(name) {
		faults.add(place, "use letters, digits and _, and begin with no digit", "a variable cannot be called %q", name)
		return
	}
	v := &value{kind: isText, text: text, place: place}
	if k, canonical, remedy := readPlain(text); remedy == "" && k != isNull {
		v.kind, v.text = k, canonical
	}
	s.values[name] = v
}

// requireUsed refuses variables of the command line that stand nowhere: their names are probably mistyped.
func (s *variables) requireUsed(names []string, faults *faultList) {
	for _, name := range slices.Sorted(slices.Values(names)) {
		if variableName.MatchString(name) && !s.isUsed[name] {
			faults.add(Place{File: "--set " + name}, "leave it out, or write ${"+name+"} where it is meant",
				"no definition uses variable %s", name)
		}
	}
}

func describe(v *value) string {
	switch v.kind {
	case isNull:
		return "null"
	case isList:
		return "an array"
	case isObject:
		return "an object"
	case isText:
		return "a text"
	default: // isBoolean, isNumber
		return v.text
	}
}
