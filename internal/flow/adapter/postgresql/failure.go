package postgresql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/pgdb"
)

// definitionClasses are those of errors that every message would meet: rights, names, connections, a server that is read-only or goes down.
var definitionClasses = []string{"08", "25", "28", "3D", "3F", "42", "53", "57", "58"}

// judge says what follows an error of the database.
func (s *sender) judge(err error) error {
	if _, ok := errors.AsType[*adapter.Failure](err); ok {
		return err
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return &adapter.Failure{Code: "send.unreachable", Err: err, Unreachable: !errors.Is(err, context.Canceled)}
	}
	s.nameColumn(refused)
	cause := describe(refused, s.at.remedy(refused, s.Role, s.settings.SearchPath))
	class := refused.Code[:min(2, len(refused.Code))]
	if !slices.Contains(s.settings.Retried, class) && !slices.Contains(s.settings.Retried, refused.Code) {
		return refusal(cause)
	}
	// A statement that took too long, and one that was cancelled, say nothing about the others.
	isOfAll := slices.Contains(definitionClasses, class) && refused.Code != "57014"
	return &adapter.Failure{Code: "send.transport", Err: cause, Unreachable: isOfAll}
}

// refusal is a failure that no repeat mends.
func refusal(err error) error {
	return &adapter.Failure{Code: "send.refused", Err: err, Permanent: true}
}

// describe gives an error of the database without its DETAIL, which shows values of rows to those who may not read bodies.
func describe(err *pgconn.PgError, remedy string) error {
	text := err.Message
	for _, named := range []struct{ what, name string }{
		{"table", strings.Trim(err.SchemaName+"."+err.TableName, ".")}, {"column", err.ColumnName}, {"constraint", err.ConstraintName},
	} {
		if named.name != "" && !strings.Contains(text, named.name) {
			text += fmt.Sprintf(", %s %s", named.what, named.name)
		}
	}
	if err.Hint != "" {
		text += ". " + err.Hint
	}
	text = fmt.Sprintf("the database refused it: %s (SQLSTATE %s)", pgdb.Storable(text), err.Code)
	if remedy != "" {
		text += ". " + remedy
	}
	return errors.New(text)
}

// remedy says what to do about an error that the statement of a definition has met in a place, for a host of a role; "" for others.
func (p place) remedy(err *pgconn.PgError, role, searchPath string) string {
	switch err.Code {
	case "42501":
		if !p.isLocal {
			role = p.user
		}
		return "Grant the right to the role " + strconv.Quote(role) + ", as which statements run here."
	case "42P01", "42883", "3F000":
		return "Write the name with its schema: the search_path of statements is " + searchPath + "."
	}
	if strings.HasPrefix(err.Code, "22") {
		return "Where values have another form than their column, write statement and parameters, such as " +
			"replace(nullif($1::text, ''), ',', '.')::numeric."
	}
	return ""
}

// ofParameter finds which parameter of a statement the server could not read.
var ofParameter = regexp.MustCompile(`parameter \$(\d+)`)

// nameColumn gives an error about a value its column, where the server has named the number of the parameter only.
func (s *sender) nameColumn(err *pgconn.PgError) {
	found := ofParameter.FindStringSubmatch(err.Where)
	if found == nil || err.ColumnName != "" || s.settings.Table == "" {
		return
	}
	columns := slices.Sorted(maps.Keys(s.settings.Columns))
	if n, parsed := strconv.Atoi(found[1]); parsed == nil && n >= 1 && n <= len(columns) {
		err.ColumnName = columns[n-1]
	}
}

// remedied adds to an error of a statement what to do about it.
func (r *receiver) remedied(err error) error {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		if remedy := r.at.remedy(refused, r.Role, r.settings.SearchPath); remedy != "" {
			return fmt.Errorf("%w. %s", err, remedy)
		}
	}
	return err
}
