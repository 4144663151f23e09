package sqlrules

import "strings"

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
}

const pgUpgradeRefuses = "pg_upgrade refuses a database with a column of this type: keep the name of what is meant, and find it by that"

// checkMoves holds the rule that what is stored can move: it asks for the types of the columns of tables, of composite types and domains, which a
// table can contain, and of columns that are added later.
func checkMoves(f File, report reporter) {
	for _, s := range f.Statements {
		kind, _ := created(s)
		isStored := kind == "table" || kind == "type" || kind == "domain" || s.begins("alter", "table")
		for i, t := range s.Tokens {
			reason := ""
			if isStored && t.isName() && isType(s.Tokens, i) {
				reason = unmovable[strings.ToLower(t.name())]
			}
			if reason != "" {
				report(t.Line, "movable column", "%s: %s", t.name(), reason)
			}
		}
	}
}

// isType reports whether the name at i stands where the type of a column or a domain does: behind its name or "as", and is no cast in a default.
func isType(tokens []Token, i int) bool {
	for at(tokens, i-1).is(".") {
		i -= 2
	}
	return at(tokens, i-1).isName() && !at(tokens, i-1).is("default")
}
