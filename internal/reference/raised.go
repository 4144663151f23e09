package reference

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A raisedError is a number that functions raise, with the texts it comes with.
type raisedError struct {
	number   int
	sqlstate string
	messages []string
	raisedBy []string // public functions that say so
}

var (
	raising  = regexp.MustCompile(`parley\._p_raise\(\s*(\d+),\s*(?:format\(\s*)?'((?:[^']|'')*)'`)
	anyRaise = regexp.MustCompile(`parley\._p_raise\(`)
	holes    = regexp.MustCompile(`%[sLI]`)
)

// raisedErrors finds each error in the text of the functions. It gives the names of functions with a call of _p_raise
// that it cannot read too: then the page would be incomplete.
func raisedErrors(functions []function, objects []object) (found []raisedError, unreadable []string) {
	byNumber := map[int]*raisedError{}
	for _, f := range functions {
		if f.name == "_p_raise" {
			continue
		}
		calls := raising.FindAllStringSubmatch(f.body, -1)
		if len(calls) != len(anyRaise.FindAllString(f.body, -1)) {
			unreadable = append(unreadable, f.name)
		}
		for _, c := range calls {
			number, err := strconv.Atoi(c[1])
			if err != nil {
				unreadable = append(unreadable, f.name)
				continue
			}
			if byNumber[number] == nil {
				byNumber[number] = &raisedError{number: number, sqlstate: sqlstate(number)}
			}
			e := byNumber[number]
			message := holes.ReplaceAllString(strings.ReplaceAll(c[2], "''", "'"), "…")
			if !slices.Contains(e.messages, message) {
				e.messages = append(e.messages, message)
			}
		}
	}
	said := saidErrors(objects)
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		e := byNumber[number]
		for _, name := range slices.Sorted(maps.Keys(said)) {
			if slices.Contains(said[name], number) {
				e.raisedBy = append(e.raisedBy, name)
			}
		}
		found = append(found, *e)
	}
	return found, unreadable
}

var (
	errorNumber = regexp.MustCompile(`\b\d{3,5}\b`)
	errorsOf    = regexp.MustCompile(`(?:those of|as) ([a-z_]+)`)
)

// saidErrors gives the errors that functions list in their comments, by name.
func saidErrors(objects []object) map[string][]int {
	said := map[string][]int{}
	like := map[string][]string{} // functions whose errors are raised too
	for _, o := range objects {
		text := errorsPart(o.comment)
		for _, digits := range errorNumber.FindAllString(text, -1) {
			if number, err := strconv.Atoi(digits); err == nil {
				said[o.name] = append(said[o.name], number)
			}
		}
		for _, found := range errorsOf.FindAllStringSubmatch(text, -1) {
			like[o.name] = append(like[o.name], found[1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(like)) {
		for _, other := range like[name] {
			said[name] = append(said[name], said[other]...)
		}
	}
	return said
}

// errorsPart gives what a comment says of errors.
func errorsPart(comment string) string {
	var part strings.Builder
	inside := false
	for line := range strings.Lines(comment) {
		if _, after, ok := strings.Cut(line, "Errors:"); ok {
			inside, line = true, after
		} else if strings.HasPrefix(line, "Source:") {
			inside = false
		}
		if inside {
			part.WriteString(line)
		}
	}
	return part.String()
}

// sqlstate writes a number as parley.sqlstate_of does.
func sqlstate(number int) string {
	digits := strings.ToUpper(strconv.FormatInt(int64(number), 36))
	return "SB" + strings.Repeat("0", max(0, 3-len(digits))) + digits
}
