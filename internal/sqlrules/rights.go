package sqlrules

import (
	"slices"
	"strings"
)

// The functions that answer whether a role may do something.
var rightFunctions = []string{
	"pg_has_role", "has_any_column_privilege", "has_column_privilege", "has_database_privilege", "has_function_privilege",
	"has_schema_privilege", "has_sequence_privilege", "has_table_privilege", "has_type_privilege",
	"_p_has_permission", "_p_is_administrator", "_p_is_visible", "_p_may_act_as", "_p_may_see_conversation", "_p_may_send",
	"_p_may_validate", "_p_may_view_state",
}

// callerArgument is how a function that runs with its owner's rights learns who calls it.
var callerArgument = []string{"caller", "parley", ".", "caller", "default", "parley", ".", "current_caller", "(", ")"}

// checkRights holds the rules on who is asked for: one definition of the caller, and a null that refuses.
func checkRights(f File, asking map[string]bool, report reporter) {
	for _, tokens := range runs(f.Tokens) {
		for i, t := range tokens {
			if t.is("session_user") && returnsTheLogin[f.Name] == "" || t.is("current_setting") && at(tokens, i+2).Text == "'role'" {
				report(t.Line, "caller", "the role of the session is not who calls: use _p_caller, or _p_current_role in a view")
			}
			if t.is("not") {
				checkRefusal(tokens, i, report)
			}
			if strings.HasPrefix(t.Text, "'") && strings.Contains(t.Text, `\`) {
				report(t.Line, "literal", `write a backslash as E'...\\...': in '...' the caller's standard_conforming_strings says what it means`)
			}
			if name, next := qualified(tokens, i); asking[dotted(name)] && at(tokens, next).is("(") {
				checkPassedOn(tokens, i, next, dotted(name), report)
			}
		}
	}
	for _, r := range routines(f) {
		checkCallerArgument(r, report)
	}
	for _, s := range f.Statements {
		checkBarrier(s, report)
	}
}

// checkRefusal wants the test of a right to be "is not true": with "not" in front a null lets everybody pass.
func checkRefusal(tokens []Token, i int, report reporter) {
	next := i + 1
	end := next
	if at(tokens, next).is("(") {
		end = closing(tokens, next)
	} else if _, after := qualified(tokens, next); at(tokens, after).is("(") {
		end = after
	}
	for _, t := range tokens[next:min(end, len(tokens))] {
		if t.isName() && slices.Contains(rightFunctions, t.name()) {
			report(t.Line, "null refuses", "test a right by %s(...) is not true, so that null refuses", t.name())
		}
	}
}

// askingFunctions names the public functions that take the caller as an argument.
func askingFunctions(files []File) map[string]bool {
	asking := map[string]bool{}
	for _, f := range files {
		for _, r := range routines(f) {
			if !r.isPrivate() && r.has("caller", "parley") {
				asking[dotted(r.name)] = true
			}
		}
	}
	return asking
}

// checkPassedOn wants a function of ours that calls another in somebody's name to pass the caller on: the default of the argument
// would be the owner of the schema there.
func checkPassedOn(tokens []Token, i, open int, name string, report reporter) {
	if at(tokens, i-1).is("function", "on") || at(tokens, i-1).is("as") {
		return
	}
	hasOne := true
	for k := open; k < closing(tokens, open); k++ {
		if at(tokens, k).is("caller") {
			return
		}
		hasOne = hasOne && !at(tokens, k).is(",")
	}
	// This form has no argument for the caller: it ends in the name of the role that runs the function.
	if hasOne && name == "parley.end_conversation" {
		return
	}
	report(at(tokens, i).Line, "caller", "pass the caller on to %s: caller => caller", name)
}

// checkCallerArgument wants a function that runs with its owner's rights for everybody to know who calls.
func checkCallerArgument(r routine, report reporter) {
	if !r.has("security", "definer") || r.isPrivate() || asksNobody[dotted(r.name)] != "" {
		return
	}
	if !r.has(callerArgument...) {
		report(r.line, "caller", "%s runs with its owner's rights: give it the argument %s", dotted(r.name), strings.Join(callerArgument, " "))
	}
	if !slices.ContainsFunc(r.body, func(t Token) bool { return t.is("caller") }) {
		report(r.line, "caller", "%s never asks who calls", dotted(r.name))
	}
}

// checkBarrier wants a view that filters rows by rights to be a barrier: otherwise a cheap function of the reader's is asked first, and
// sees the rows that are filtered out.
func checkBarrier(s Statement, report reporter) {
	kind, name := created(s)
	if kind != "view" {
		return
	}
	for i, t := range s.Tokens {
		if t.is("security_barrier") {
			return
		}
		if t.isName() && slices.Contains(rightFunctions, t.name()) && at(s.Tokens, i+1).is("(") {
			report(s.line(), "barrier", "%s filters by rights: create it with (security_barrier)", dotted(name))
			return
		}
	}
}
