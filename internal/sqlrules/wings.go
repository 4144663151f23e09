package sqlrules

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
	"github.com/parley-broker/parley/sql"
)

// shared are the private objects of the broker that the other systems use, with the reason.
var shared = map[string]string{
	"parley._p_place": rolesAreNumbered, "parley._p_role_number": rolesAreNumbered, "parley._p_numbered_role": rolesAreNumbered,
	"parley._p_named_role": rolesAreNumbered, "parley._p_numbers_of": rolesAreNumbered, "parley._p_number_of": rolesAreNumbered,
	"parley._p_number_at_once": rolesAreNumbered, "parley._p_role_with": rolesAreNumbered, "parley._p_name_with": rolesAreNumbered,
	"parley._p_follow_roles": rolesAreNumbered,
}

const rolesAreNumbered = "all systems know roles by the same numbers, and nobody else may give them"

// wingOf gives the wing to which a file belongs; the broker for a file that the rules' own tests make up.
func wingOf(file string) sql.Wing {
	for _, w := range sql.Wings() {
		if w.Has(file) {
			return w
		}
	}
	return sql.Wings()[0]
}

// schemasFor gives the schemas in which a file may create.
func schemasFor(file string) []string { return wingOf(file).Schemas() }

// checkWing holds the rule that a wing uses its own schemas and the interface of those that sql/wings lets it call, and never names a
// private object of another wing.
func checkWing(f File, report reporter) {
	own := wingOf(f.Name)
	for _, tokens := range sqltext.Runs(f.Tokens) {
		for i := 0; i < len(tokens); {
			parts, next := sqltext.Qualified(tokens, i)
			if len(parts) > 1 && sqltext.At(tokens, i-1).Text != "." {
				if text := refusedUse(own, parts); text != "" {
					report(tokens[i].Line, "private object", "%s %s", dotted(parts[:2]), text)
				}
			}
			i = max(next, i+1)
		}
	}
}

// refusedUse reports why a wing may not use a name, if so.
func refusedUse(own sql.Wing, name []string) string {
	for _, w := range sql.Wings() {
		switch {
		case w.Name == own.Name || !slices.Contains(w.Schemas(), name[0]):
		case !slices.Contains(own.Calls, w.Name):
			return "belongs to the wing " + w.Name + ", which sql/wings does not let the wing " + own.Name + " call"
		case strings.HasPrefix(name[1], privatePrefix) && shared[dotted(name[:2])] == "":
			return "belongs to another schema: call one of its functions or read one of its views"
		}
	}
	return ""
}
