package sqlrules

import "strings"

// brokerSchema is the schema of the broker, on which the other systems stand.
const brokerSchema = "parley"

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
			if len(parts) > 1 && parts[0] != own && strings.HasPrefix(parts[1], privatePrefix) {
				report(tokens[i].Line, "private object",
					"%s belongs to another schema: call one of its functions or read one of its views", dotted(parts[:2]))
			}
			i = max(next, i+1)
		}
	}
}
