package sqlrules

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
)

// routine is a function or procedure as its create statement spells it.
type routine struct {
	kind     string
	name     []string
	line     int
	head     []sqltext.Token // from the arguments on, without the body
	body     []sqltext.Token // of the dollar-quoted or standard body, without comments
	hasBody  bool
	lines    int  // of the dollar-quoted body, without its quotes
	isBound  bool // the body is in standard form: its names were looked up when it was created
	position int  // of its statement in the file
}

func (r routine) local() string   { return r.name[len(r.name)-1] }
func (r routine) isPrivate() bool { return strings.HasPrefix(r.local(), privatePrefix) }

// has reports whether the head has these words one after the other.
func (r routine) has(words ...string) bool { return r.after(words...) >= 0 }

// after gives the index in the head that follows these words, or -1.
func (r routine) after(words ...string) int {
	for i := range r.head {
		if (Statement{Tokens: r.head[i:]}).begins(words...) {
			return i + len(words)
		}
	}
	return -1
}

var routineKinds = []string{"function", "procedure"}

// routines reads the functions and procedures that a file creates.
func routines(f File) []routine {
	var all []routine
	for position, s := range f.Statements {
		kind, name := created(s)
		if !slices.Contains(routineKinds, kind) || len(name) == 0 {
			continue
		}
		r := routine{kind: kind, name: name, line: s.line(), position: position}
		for i, t := range s.Tokens {
			if t.Kind == sqltext.Body {
				r.body, r.hasBody = sqltext.Code(t.Inside), true
				r.lines = max(strings.Count(t.Text, "\n")-1, 0)
				continue
			}
			if t.Is("begin") && sqltext.At(s.Tokens, i+1).Is("atomic") {
				r.body, r.hasBody, r.isBound = s.Tokens[i:], true, true
				break
			}
			r.head = append(r.head, t)
		}
		all = append(all, r)
	}
	return all
}

// checkFunctions holds the rules on functions and procedures.
func checkFunctions(f File, raising map[string]string, report reporter) {
	for _, r := range routines(f) {
		name := dotted(r.name)
		if !r.has("language") {
			report(r.line, "language", "say in which language %s is written", name)
		}
		if !r.hasBody {
			report(r.line, "body", "quote the body of %s with dollars, so that it can be checked", name)
		}
		if r.has("returns", "trigger") && !r.isPrivate() {
			report(r.line, "private name", "%s runs from triggers only: begin its name with %s", name, privatePrefix)
		}
		checkBodyLength(r, report)
		checkSearchPath(r, report)
		checkPlans(r, report)
		checkAdvisory(r, report)
		comment, ok := commentAfter(f, r)
		if !ok {
			report(r.line, "comment", "say what %s does with a comment on %s after it", name, r.kind)
			continue
		}
		if how := raising[r.local()]; !r.isPrivate() && how != "" && !strings.Contains(comment, "Errors:") {
			report(r.line, "errors", "%s raises (%s): list the numbers in its comment after \"Errors:\"", name, how)
		}
	}
}

// commentAfter gives the comment on a routine; it has to stand before the next routine is created, so
// that each overload has its own.
func commentAfter(f File, r routine) (string, bool) {
	for _, s := range f.Statements[r.position+1:] {
		if kind, _ := created(s); slices.Contains(routineKinds, kind) {
			return "", false
		}
		if text, ok := commentOn(s, routineKinds, r.name); ok {
			return text, true
		}
	}
	return "", false
}

// raisingFunctions names the functions that can raise, with the way to the raise: those that say so, and those
// that call a private function that can.
func raisingFunctions(files []File) map[string]string {
	var all []routine
	for _, f := range files {
		all = append(all, routines(f)...)
	}
	raising := map[string]string{}
	for grown := true; grown; {
		grown = false
		for _, r := range all {
			how := raises(r.body, raising)
			if raising[r.local()] == "" && how != "" {
				raising[r.local()] = how
				grown = true
			}
		}
	}
	return raising
}

func raises(body []sqltext.Token, raising map[string]string) string {
	for i, t := range body {
		if t.Is("raise") && !sqltext.At(body, i+1).Is("debug", "log", "info", "notice", "warning") {
			return "raise"
		}
		isCall := t.IsName() && sqltext.At(body, i+1).Is("(")
		if isCall && strings.HasPrefix(t.Name(), privatePrefix) && raising[t.Name()] != "" {
			return t.Name() + ", " + raising[t.Name()]
		}
	}
	return ""
}
