package sqlrules

import "strings"

// brokerSchema is the schema of the broker, on which the other systems stand.
const brokerSchema = "parley"

// shared are the private objects of the broker that the other systems use, with the reason.
var shared = map[string]string{
	"parley._p_place": rolesAreNumbered, "parley._p_role_number": rolesAreNumbered, "parley._p_numbered_role": rolesAreNumbered,
	"parley._p_named_role": rolesAreNumbered, "parley._p_numbers_of": rolesAreNumbered, "parley._p_number_of": rolesAreNumbered,
	"parley._p_number_at_once": rolesAreNumbered, "parley._p_role_with": rolesAreNumbered, "parley._p_name_with": rolesAreNumbered,
	"parley._p_follow_roles": rolesAreNumbered,
}

const rolesAreNumbered = "all systems know roles by the same numbers, and nobody else may give them"

// checkWing holds the rule that a system with a schema of its own calls functions of the broker and reads its views, and never names
// a private object of another schema.
func checkWing(f File, report reporter) {
	own := ""
	for _, s := range f.Statements {
		if _, name := created(s); len(name) > 1 {
			own = name[0]
			break
		}
	}
	if own == "" || own == brokerSchema {
		return
	}
	for _, tokens := range runs(f.Tokens) {
		for i := 0; i < len(tokens); {
			parts, next := qualified(tokens, i)
			if len(parts) > 1 && parts[0] != own && strings.HasPrefix(parts[1], privatePrefix) && shared[dotted(parts[:2])] == "" {
				report(tokens[i].Line, "private object",
					"%s belongs to another schema: call one of its functions or read one of its views", dotted(parts[:2]))
			}
			i = max(next, i+1)
		}
	}
}
