package reference

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// brokerError is a row of parley.errors: one situation in which a number is raised or arrives.
type brokerError struct {
	Number   int
	Sqlstate string
	Message  string
	Cause    *string
	Remedy   string
	Form     string
}

// The forms in which errors come.
const (
	isRaised  = "RAISED"
	isMessage = "MESSAGE"
	isStatus  = "STATUS"
)

// of gives the errors of one form.
func of(all []brokerError, form string) []brokerError {
	var found []brokerError
	for _, e := range all {
		if e.Form == form {
			found = append(found, e)
		}
	}
	return found
}

// readErrors reads the errors of the broker, in the order of their numbers.
func readErrors(ctx context.Context, db parley.DB) ([]brokerError, error) {
	rows, err := db.Query(ctx, `
		select e.number, e.sqlstate, e.message, e.cause, e.remedy, e.form
		from parley.errors as e
		order by e.number, e.situation collate "C"`)
	if err != nil {
		return nil, fmt.Errorf("read the errors: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[brokerError])
	if err != nil {
		return nil, fmt.Errorf("read the errors: %w", err)
	}
	return found, nil
}

// raisedBy gives the public functions that say in their comments that they raise a number, by number.
func raisedBy(objects []object) map[int][]string {
	by := map[int][]string{}
	said := saidErrors(objects)
	for _, name := range slices.Sorted(maps.Keys(said)) {
		for _, number := range said[name] {
			if !slices.Contains(by[number], name) {
				by[number] = append(by[number], name)
			}
		}
	}
	return by
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

// errorsPart gives the part of a comment about errors.
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
