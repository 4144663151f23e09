package validation

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/xsd"
)

// namesMost bounds how many names an error lists.
const namesMost = 10

// written is a name for people: the local part alone where it has no namespace.
func written(name xsd.Name) string {
	if name.Space == "" {
		return name.Local
	}
	return "{" + name.Space + "}" + name.Local
}

func listed(names []string, kind string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return ""
	}
	rest := ""
	if len(names) > namesMost {
		names, rest = names[:namesMost], " and others"
	}
	return kind + " " + strings.Join(names, ", ") + rest
}

func (v *Validator) rootNames() string {
	names := []string{}
	for name := range v.roots {
		names = append(names, written(name))
	}
	return listed(names, "element")
}

func attributeNames(e *xsd.Element) string {
	names := []string{}
	for _, a := range e.Attributes {
		names = append(names, written(a.Name))
	}
	return listed(names, "attribute")
}

func typeName(t *xsd.SimpleType) string {
	if t == nil {
		return ""
	}
	return "xs:" + t.Base
}

// checkValue says why a value is none of a type, or is not the one that is fixed.
func checkValue(t *xsd.SimpleType, fixed *string, value string) string {
	if why := t.Check(value); why != "" {
		return why
	}
	if fixed != nil && strings.Join(strings.Fields(value), " ") != strings.Join(strings.Fields(*fixed), " ") {
		return "the value is fixed as " + *fixed
	}
	return ""
}
