package verbs

import (
	"strings"

	mailstore "github.com/parley-broker/parley/internal/store/mail"
	"github.com/parley-broker/parley/internal/verb"
)

// mailComparisons are the signs of --where, as the database names what they mean. Longer ones come before those that they contain.
var mailComparisons = []struct{ sign, name string }{{"!=", "not"}, {"=", "equals"}, {"~", "contains"}, {">", "greater"}, {"<", "less"}}

const mailWhereUsage = "any column of the list, compared by = != ~ (contains) > or <, such as 'size>100000'; may be given several times"

const mailSortUsage = "sort by any column of the list, with :desc behind it for what is last first"

// addMailConditions adds conditions such as size>100000 to a filter. Which properties there are, and of which type, the database knows.
func addMailConditions(filter mailstore.Filter, conditions []string) error {
	for _, condition := range conditions {
		at := strings.IndexAny(condition, "!=~><")
		if at < 1 {
			return verb.Usagef("--where %q: write a property, a comparison and a value, such as size>100000", condition)
		}
		property, rest := strings.TrimSpace(condition[:at]), condition[at:]
		for _, comparison := range mailComparisons {
			value, is := strings.CutPrefix(rest, comparison.sign)
			if !is {
				continue
			}
			wanted, isNew := filter[property].(map[string]any)
			if filter[property] != nil && !isNew {
				return verb.Usagef("--where %q: there is another flag for %s, which was given", condition, property)
			}
			if wanted == nil {
				wanted = map[string]any{}
				filter[property] = wanted
			}
			if _, isTwice := wanted[comparison.name]; isTwice {
				return verb.Usagef("--where %q: %s is compared so already", condition, property)
			}
			wanted[comparison.name] = strings.TrimSpace(value)
			rest = ""
			break
		}
		if rest != "" {
			return verb.Usagef("--where %q: comparisons are = != ~ > and <", condition)
		}
	}
	return nil
}
