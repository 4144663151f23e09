package sqlrules

import (
	"regexp"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
)

// Words with the form of a call when a parenthesis follows, but that the grammar owns.
var grammarWords = strings.Fields(`
	all and any array as by case cast coalesce collate conflict else elsif end except execute exists extract filter for format
	from greatest group grouping having if insert intersect into is join key lateral least limit loop materialized not of
	offset on operator or order over overlay partition perform position query recursive return returning row rows select set
	some substring table then trim union unique update values when where while with within
	xmlelement xmlforest xmlparse xmlserialize`)

// Types that the grammar itself puts into pg_catalog; any other name of a type is searched on the search path.
var grammarTypes = strings.Fields(`
	bigint bit boolean char character dec decimal double float int integer interval nchar numeric real record smallint time
	timestamp varchar`)

// Words that find an operator without naming it.
var operatorWords = []string{"between", "ilike", "in", "like", "natural", "nullif", "similar", "using"}

var operatorToken = regexp.MustCompile("^[-+*/<>=~!@#%^&|`?]+$")

// checkQualified holds the rule for a function that does not pin its search_path: calls, relations, types and
// operators are spelled in full. It is stricter than the search of the server: pg_catalog is not searched first
// when the caller's path names it later.
func checkQualified(r routine, report reporter) {
	q := &qualification{body: r.body, local: localNames(r.body)}
	for i := range r.body {
		if missing := q.missing(i); missing != "" {
			report(r.body[i].Line, "qualified", "%s does not pin its search_path: %s", dotted(r.name), missing)
		}
	}
}

// qualification reads one function body.
type qualification struct {
	body  []sqltext.Token
	local []string // names of common table expressions
}

// missing reports what to write in full at token i, or nothing.
func (q *qualification) missing(i int) string {
	t, previous, next := q.body[i], sqltext.At(q.body, i-1), sqltext.At(q.body, i+1)
	switch {
	case previous.Is(".") || next.Is("."):
		return ""
	case t.IsName() && q.isType(i):
		return "write the schema of type " + t.Text
	case t.IsName() && next.Is("(") && !q.isGrammar(i):
		return "write the schema of " + t.Text + "()"
	case t.IsName() && q.isRelation(i):
		return "write the schema of " + t.Text
	case t.Is(operatorWords...) && !q.isLoop(i) && !q.isDeletion(i):
		return t.Text + " looks up an operator: write operator(pg_catalog....) instead"
	case t.Is("distinct") && next.Is("from"):
		return "is distinct from looks up an operator"
	case t.Is("case") && !next.Is("when") && !previous.Is("end"):
		return "case with an operand looks up an operator: write case when"
	case operatorToken.MatchString(t.Text) && t.Kind == sqltext.Symbol && !q.isPlain(i) && !t.Is("=>"):
		return "write " + t.Text + " as operator(pg_catalog." + t.Text + ")"
	}
	return ""
}

// isType reports whether an unqualified name stands where a type is named: behind ::, or in a declaration.
func (q *qualification) isType(i int) bool {
	if slices.Contains(grammarTypes, q.body[i].Name()) || q.body[i].Is("constant") {
		return false
	}
	if sqltext.At(q.body, i-1).Is("::") {
		return true
	}
	start := i - 1
	for sqltext.At(q.body, start).Is("constant") {
		start--
	}
	return sqltext.At(q.body, start).IsName() && sqltext.At(q.body, start-1).Is(";", "declare") &&
		q.isDeclared(start) && !sqltext.At(q.body, i+1).Is("%")
}

// isDeclared reports whether the token at i is in a declare section.
func (q *qualification) isDeclared(i int) bool {
	for ; i >= 0; i-- {
		if q.body[i].Is("declare") {
			return true
		}
		if q.body[i].Is("begin") {
			return false
		}
	}
	return false
}

// isGrammar reports whether the name at i, with a parenthesis behind it, is no call: a word of the grammar, or
// a name whose columns or query follow.
func (q *qualification) isGrammar(i int) bool {
	word := q.body[i].Name()
	return slices.Contains(grammarWords, word) || slices.Contains(operatorWords, word) || slices.Contains(grammarTypes, word) ||
		slices.Contains(q.local, word) || sqltext.At(q.body, i-1).Is("as")
}

// isRelation reports whether an unqualified name stands where a relation is named.
func (q *qualification) isRelation(i int) bool {
	previous, before := sqltext.At(q.body, i-1), sqltext.At(q.body, i-2)
	if slices.Contains(q.local, q.body[i].Name()) || q.body[i].Is("only", "lateral", "select", "unnest") {
		return false
	}
	switch {
	case previous.Is("from"):
		return !before.Is("distinct") && !q.isArgument(i)
	case previous.Is("join"), previous.Is("into") && before.Is("insert"):
		return true
	case previous.Is("update"):
		return !before.Is("for", "do", "key")
	}
	return false
}

// isArgument reports whether the word from before i belongs to a call such as extract(epoch from x).
func (q *qualification) isArgument(i int) bool {
	depth := 0
	for i--; i >= 0; i-- {
		switch {
		case q.body[i].Is(")"):
			depth++
		case q.body[i].Is("(") && depth == 0:
			return sqltext.At(q.body, i-1).Is("extract", "substring", "trim", "overlay", "position")
		case q.body[i].Is("("):
			depth--
		case q.body[i].Is("select", ";") && depth == 0:
			return false
		}
	}
	return false
}

// isLoop reports whether the word in at i belongs to a loop, or the word using to dynamic SQL and to raise.
func (q *qualification) isLoop(i int) bool {
	if !q.body[i].Is("in", "using") {
		return false
	}
	for i--; i >= 0 && !q.body[i].Is(";", "loop", "begin", "then"); i-- {
		if q.body[i].Is("for", "foreach", "execute", "raise") {
			return true
		}
	}
	return false
}

// isDeletion reports whether the word using at i names another table of a deletion. That of a join stands before a bracket, that of an
// order before an operator; a table without its schema is reported by itself.
func (q *qualification) isDeletion(i int) bool {
	if !q.body[i].Is("using") || !sqltext.At(q.body, i+2).Is(".") {
		return false
	}
	for i--; i >= 0 && !q.body[i].Is(";", "loop", "begin", "then", "("); i-- {
		if q.body[i].Is("delete") {
			return true
		}
	}
	return false
}

// isPlain reports whether the operator characters at i are no operator: all columns, an assignment of update,
// the % of %type, a label.
func (q *qualification) isPlain(i int) bool {
	switch t := q.body[i]; {
	case t.Is("*"):
		return sqltext.At(q.body, i-1).Is("(") || isStar(q.body, i)
	case t.Is("="):
		return q.isAssignment(i)
	case t.Is("%"):
		return sqltext.At(q.body, i+1).Is("type", "rowtype")
	default:
		return t.Is("<<", ">>")
	}
}

// isAssignment reports whether the = at i gives a column its value: a column or a list of them stands before it,
// and before that a set, or a comma of the same set clause.
func (q *qualification) isAssignment(i int) bool {
	i--
	for i > 0 && sqltext.At(q.body, i).Is(")") {
		i = sqltext.Opening(q.body, i)
	}
	i--
	if !sqltext.At(q.body, i).Is("set", ",") {
		return false
	}
	depth := 0
	for ; i >= 0 && depth >= 0; i-- {
		switch {
		case q.body[i].Is(")"):
			depth++
		case q.body[i].Is("("):
			depth--
		case depth == 0 && q.body[i].Is("set"):
			return true
		case q.body[i].Is(";", "where"):
			return false
		}
	}
	return false
}

// localNames gives the names of the common table expressions of a body.
func localNames(body []sqltext.Token) []string {
	var names []string
	for i, t := range body {
		if !t.IsName() || !sqltext.At(body, i-1).Is("with", "recursive", ",") {
			continue
		}
		next := i + 1
		if sqltext.At(body, next).Is("(") {
			next = sqltext.Closing(body, next) + 1
		}
		if !sqltext.At(body, next).Is("as") {
			continue
		}
		next++
		for sqltext.At(body, next).Is("not", "materialized") {
			next++
		}
		if sqltext.At(body, next).Is("(") {
			names = append(names, t.Name())
		}
	}
	return names
}
