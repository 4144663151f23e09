package sqlrules

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
)

// The functions that answer whether a role may do something.
var rightFunctions = []string{
	"pg_has_role", "has_any_column_privilege", "has_column_privilege", "has_database_privilege", "has_function_privilege",
	"has_schema_privilege", "has_sequence_privilege", "has_table_privilege", "has_type_privilege",
	"_p_has_permission", "_p_is_administrator", "_p_is_visible", "_p_may_act_as", "_p_may_see_conversation", "_p_may_send",
	"_p_may_validate", "_p_may_view_state",
}

// callerArgument is how a function that runs with its owner's rights learns who calls it. callerOfHotPath is the same for the planner, who
// then has no function to put in line.
var (
	callerArgument  = []string{"caller", "parley", ".", "caller", "default", "parley", ".", "current_caller", "(", ")"}
	callerOfHotPath = []string{"caller", "parley", ".", "caller", "default", "current_user"}
)

// checkRights holds the rules on who is asked for: one definition of the caller, and a null that refuses.
func checkRights(f File, asking map[string]bool, report reporter) {
	for _, tokens := range sqltext.Runs(f.Tokens) {
		for i, t := range tokens {
			if t.Is("session_user") && returnsTheLogin[f.Name] == "" || t.Is("current_setting") && sqltext.At(tokens, i+2).Text == "'role'" {
				report(t.Line, "caller", "the role of the session is not who calls: use _p_caller, or _p_current_role in a view")
			}
			if t.Is("not") {
				checkRefusal(tokens, i, report)
			}
			if strings.HasPrefix(t.Text, "'") && strings.Contains(t.Text, `\`) {
				report(t.Line, "literal", `write a backslash as E'...\\...': in '...' the caller's standard_conforming_strings says what it means`)
			}
			if name, next := sqltext.Qualified(tokens, i); asking[dotted(name)] && sqltext.At(tokens, next).Is("(") {
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
func checkRefusal(tokens []sqltext.Token, i int, report reporter) {
	next := i + 1
	end := next
	if sqltext.At(tokens, next).Is("(") {
		end = sqltext.Closing(tokens, next)
	} else if _, after := sqltext.Qualified(tokens, next); sqltext.At(tokens, after).Is("(") {
		end = after
	}
	for _, t := range tokens[next:min(end, len(tokens))] {
		if t.IsName() && slices.Contains(rightFunctions, t.Name()) {
			report(t.Line, "null refuses", "test a right by %s(...) is not true, so that null refuses", t.Name())
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
func checkPassedOn(tokens []sqltext.Token, i, open int, name string, report reporter) {
	if sqltext.At(tokens, i-1).Is("function", "on") || sqltext.At(tokens, i-1).Is("as") {
		return
	}
	hasOne := true
	for k := open; k < sqltext.Closing(tokens, open); k++ {
		if sqltext.At(tokens, k).Is("caller") {
			return
		}
		hasOne = hasOne && !sqltext.At(tokens, k).Is(",")
	}
	// This form has no argument for the caller: it ends in the name of the role that runs the function.
	if hasOne && name == "parley.end_conversation" {
		return
	}
	report(sqltext.At(tokens, i).Line, "caller", "pass the caller on to %s: caller => caller", name)
}

// checkCallerArgument wants a function that runs with its owner's rights for everybody to know who calls.
func checkCallerArgument(r routine, report reporter) {
	if !r.has("security", "definer") || r.isPrivate() || asksNobody[dotted(r.name)] != "" {
		return
	}
	if !r.has(callerArgument...) && !r.has(callerOfHotPath...) {
		report(r.line, "caller", "%s runs with its owner's rights: give it the argument %s", dotted(r.name), strings.Join(callerArgument, " "))
	}
	if !slices.ContainsFunc(r.body, func(t sqltext.Token) bool { return t.Is("caller") }) {
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
		if t.Is("security_barrier") {
			return
		}
		if t.IsName() && slices.Contains(rightFunctions, t.Name()) && sqltext.At(s.Tokens, i+1).Is("(") {
			report(s.line(), "barrier", "%s filters by rights: create it with (security_barrier)", dotted(name))
			return
		}
	}
}
