package sqlrules

import (
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
)

// unmovable are the types that no stored column may have, with the reason: a database moves to another server by pg_upgrade, a dump or
// logical replication, and what it stores must be the same there.
var unmovable = map[string]string{
	"regproc":       pgUpgradeRefuses,
	"regprocedure":  pgUpgradeRefuses,
	"regoper":       pgUpgradeRefuses,
	"regoperator":   pgUpgradeRefuses,
	"regnamespace":  pgUpgradeRefuses,
	"regconfig":     pgUpgradeRefuses,
	"regdictionary": pgUpgradeRefuses,
	"regcollation":  pgUpgradeRefuses,
	"aclitem":       pgUpgradeRefuses,
	"regrole":       isOfOneServer,
	"oid":           isOfOneServer,
}

const (
	pgUpgradeRefuses = "pg_upgrade refuses a database with a column of this type: keep the name of what is meant, and find it by that"
	isOfOneServer    = "an oid is another thing where a dump is restored: " +
		"a role is a parley._p_role_oid (parley/base/role_oids.sql), all else a name"
)

// ofOneServer are the columns that are to have an oid of the server, by file, with the reason.
var ofOneServer = map[string]map[string]string{
	"parley/base/schema.sql":        {"database_oid": "by which a copy of the database is noticed"},
	"parley/base/role_numbers.sql":  {"role": "it counts in its place alone"},
	"parley/base/role_oids.sql":     {"_p_role_oid": "the domain, whose columns are replaced"},
	"mail/services/kept_bodies.sql": {"target_table": "with its name: elsewhere the body is nobody's"},
}

// checkMoves holds the rule that what is stored can move: it asks for the types of the columns of tables, of domains, and of columns
// that are added later.
func checkMoves(f File, report reporter) {
	for _, s := range f.Statements {
		kind, _ := created(s)
		isStored := kind == "table" || kind == "domain" || s.begins("alter", "table")
		for i, t := range s.Tokens {
			reason := ""
			if isStored && t.IsName() && isType(s.Tokens, i) {
				reason = unmovable[strings.ToLower(t.Name())]
				if name := columnOf(s.Tokens, i); reason == isOfOneServer && ofOneServer[f.Name][name] != "" {
					reason = ""
				}
			}
			if reason != "" {
				report(t.Line, "movable column", "%s: %s", t.Name(), reason)
			}
		}
	}
}

// isType reports whether the name at i stands where the type of a column or a domain does: behind its name or "as", and is no cast in a
// default.
func isType(tokens []sqltext.Token, i int) bool {
	for sqltext.At(tokens, i-1).Is(".") {
		i -= 2
	}
	return sqltext.At(tokens, i-1).IsName() && !sqltext.At(tokens, i-1).Is("default")
}

// columnOf gives the name of the column, or of the domain, whose type stands at i.
func columnOf(tokens []sqltext.Token, i int) string {
	for sqltext.At(tokens, i-1).Is(".") {
		i -= 2
	}
	if sqltext.At(tokens, i-1).Is("as") {
		i--
	}
	return sqltext.At(tokens, i-1).Name()
}
