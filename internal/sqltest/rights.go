package sqltest

import (
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/sql"
)

// Everything is all that the schema's tables hold, and the names of all relations.
func (s Session) Everything() string {
	s.Helper()
	lines := Values[string](s, `
		select c.oid::regclass::text
		from pg_class as c
		where c.relnamespace::regnamespace::text = any ($1) and c.relkind in ('r', 'S', 'v')
		order by 1`, sql.Wings()[0].Schemas())
	for _, table := range Values[string](s, `
		select c.oid::regclass::text from pg_class as c where c.relnamespace = 'parley'::regnamespace and c.relkind = 'r' order by 1`) {
		for _, row := range Values[string](s, "select t::text from "+table+" as t order by 1") {
			lines = append(lines, table+" "+row)
		}
	}
	return strings.Join(lines, "\n")
}

// Right is a permission on an object, as parley.grant takes it.
type Right struct{ Permission, Class, Object string }

// RightTo makes a right; object is "" where the permission is for all of a class.
func RightTo(permission, class, object string) Right {
	return Right{Permission: permission, Class: class, Object: object}
}

// Grant grants a right to a role.
func (s Session) Grant(r Right, grantee string) {
	s.Helper()
	s.Exec("select parley.grant($1, $2, nullif($3, ''), $4)", r.Permission, r.Class, r.Object, grantee)
}

// Revoke takes a right away from a role.
func (s Session) Revoke(r Right, grantee string) {
	s.Helper()
	s.Exec("select parley.revoke($1, $2, nullif($3, ''), $4)", r.Permission, r.Class, r.Object, grantee)
}

// Try runs a statement and undoes it.
func (s Session) Try(statement string) error {
	s.Helper()
	s.Exec("begin")
	_, err := s.DB.Exec(s.Context(), statement)
	s.Exec("rollback")
	return err
}

// RequireAllowed requires that a statement works, and undoes it.
func (s Session) RequireAllowed(statement string) {
	s.Helper()
	if err := s.Try(statement); err != nil {
		s.Errorf("%s: %s", Clip(statement), Describe(err))
	}
}

// RequireDenied requires that a statement is refused for want of a right.
func (s Session) RequireDenied(statement string) {
	s.Helper()
	err := s.Try(statement)
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.Code != SQLState(229) {
		s.Errorf("%s: got %v, want a refusal", Clip(statement), err)
	}
}

// Difference gives the lines that one text has and the other has not.
func Difference(before, after string) string {
	old, now := strings.Split(before, "\n"), strings.Split(after, "\n")
	var lines []string
	for _, line := range old {
		if !slices.Contains(now, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range now {
		if !slices.Contains(old, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return strings.Join(lines, "\n")
}
