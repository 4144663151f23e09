package biztalk

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// operators are those of filters, by the numbers that files have for them.
var operators = map[string]string{"0": "=", "1": "<", "2": "<=", "3": ">", "4": ">=", "5": "<>", "6": "exists"}

// valueMost is how long the value of a predicate may be, in bytes.
const valueMost = 8192

var (
	integer = regexp.MustCompile(`^[-+]?[0-9]{1,200}$`)
	decimal = regexp.MustCompile(`^[-+]?([0-9]{1,200}([.][0-9]{0,200})?|[.][0-9]{1,200})$`)
)

// filter translates the filter of a port. A group with a predicate that cannot be said is left out as a whole, because it would take more
// without the predicate; isWhole is false then.
func (t *translation) filter(port *node, kind, name string) (groups []any, isWhole bool) {
	at := port.child("Filter")
	if at == nil {
		return nil, true
	}
	root := at
	if len(at.children) == 0 {
		if strings.TrimSpace(at.text) == "" {
			return nil, true
		}
		within, err := at.parseWithin()
		if err != nil {
			t.omitStopping(at, kind, name, "the filter", "it is no XML: "+err.Error(), "write the filter by hand")
			return nil, false
		}
		root = within
	}
	isWhole = true
	for _, group := range root.all("Group") {
		predicates, problem := t.predicates(group, kind, name)
		switch {
		case problem != "":
			isWhole = false
			t.omitStopping(group, kind, name, "a group of its filter", problem,
				"write the group by hand: without the predicate it would take more")
		case len(predicates) > 0:
			groups = append(groups, predicates)
		}
	}
	return groups, isWhole
}

// A predicate is one of definitions.
type predicate struct {
	Property string  `json:"property"`
	Operator string  `json:"operator"`
	Value    *string `json:"value,omitempty"`
}

func (t *translation) predicates(group *node, kind, name string) (predicates []any, problem string) {
	for _, statement := range group.all("Statement") {
		class, written := statement.attrs["Property"], statement.attrs["Value"]
		operator, isKnown := operators[strings.TrimSpace(statement.attrs["Operator"])]
		if !isKnown {
			return nil, fmt.Sprintf("operator %q of property %s has no meaning here", statement.attrs["Operator"], class)
		}
		if class == "" || strings.ContainsAny(class, "#\n\r\t") || len(class) > nameMost || token.MatchString(class) {
			return nil, fmt.Sprintf("%q is not the name of a property", class)
		}
		property := t.property(use{statement, kind, name}, class)
		if unpromoted[property] {
			return nil, "no message is routed by " + property
		}
		if operator == "exists" {
			predicates = append(predicates, predicate{Property: property, Operator: operator})
			continue
		}
		if property == "ReceivePortName" || property == "ErrorReport.ReceivePortName" {
			written = t.nameNow(kindReceivePort, written)
		}
		if property == "ErrorReport.SendPortName" {
			written = t.nameNow(kindSendPort, written)
		}
		if problem := checkOperand(t.typeOf(property), operator, written); problem != "" {
			return nil, fmt.Sprintf("property %s is compared with %q, %s", class, cut(written, 100), problem)
		}
		written = t.text(statement, kind, name, written)
		predicates = append(predicates, predicate{property, operator, &written})
	}
	return predicates, ""
}

// nameNow gives the name of an object that could not keep its own.
func (t *translation) nameNow(kind, written string) string {
	if name, isRenamed := t.renamed[kind][written]; isRenamed {
		return name
	}
	return written
}

// checkOperand says why a value cannot be compared with a property of a type, or nothing.
func checkOperand(typ, operator, value string) string {
	if len(value) > valueMost {
		return "which is longer than 8192 bytes"
	}
	if operator == "=" || operator == "<>" {
		return ""
	}
	switch typ {
	case "integer":
		if !integer.MatchString(value) && !decimal.MatchString(value) {
			return "which is no number"
		}
	case "number":
		if !decimal.MatchString(value) {
			return "which is no number"
		}
	case "timestamp":
		if _, err := time.Parse(time.RFC3339Nano, value); err != nil {
			return "which is no time with an offset"
		}
	}
	return ""
}
