package sqlrules

import (
	"slices"

	"github.com/parley-broker/parley/internal/sqltext"
)

// checkReplicaIdentities holds the rule that each table has a replica identity. With a publication for all tables, which tools of change
// capture make, PostgreSQL refuses to delete from a table that has none. A primary key is one; where the hot path has no use for such an
// index, FULL costs nothing unless wal_level is logical.
func checkReplicaIdentities(f File, report reporter) {
	for i, s := range f.Statements {
		kind, name := created(s)
		if kind != "table" || hasPrimaryKey(s) {
			continue
		}
		isGiven := slices.ContainsFunc(f.Statements[i+1:], func(later Statement) bool {
			if !later.begins("alter", "table") {
				return false
			}
			altered, next := sqltext.Qualified(later.Tokens, 2)
			return slices.Equal(altered, name) && sqltext.At(later.Tokens, next).Is("replica") && sqltext.At(later.Tokens, next+1).Is("identity")
		})
		if !isGiven {
			report(s.line(), "replica identity", "give %s a primary key, or alter table ... replica identity after it", dotted(name))
		}
	}
}

func hasPrimaryKey(s Statement) bool {
	for i := range s.Tokens {
		if sqltext.At(s.Tokens, i).Is("primary") && sqltext.At(s.Tokens, i+1).Is("key") {
			return true
		}
	}
	return false
}
