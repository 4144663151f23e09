package sqlrules

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
)

// The prefix of what is no part of the interface.
const privatePrefix = "_p_"

// Kinds of objects that are never part of the interface, and kinds that owe the reader a comment.
var (
	alwaysPrivate = []string{"table", "sequence", "index", "trigger", "materialized view"}
	commented     = []string{"table", "view", "materialized view", "type", "domain"}
)

// created reads the kind and the name of what a statement creates; an empty kind when it creates nothing.
func created(s Statement) (kind string, name []string) {
	if !s.begins("create") {
		return "", nil
	}
	i := 1
	for sqltext.At(s.Tokens, i).Is("or", "replace", "unique", "unlogged", "constraint", "recursive") {
		i++
	}
	kind = sqltext.At(s.Tokens, i).Name()
	i++
	if kind == "materialized" {
		kind += " " + sqltext.At(s.Tokens, i).Name()
		i++
	}
	for sqltext.At(s.Tokens, i).Is("concurrently", "if", "not", "exists") {
		i++
	}
	if sqltext.At(s.Tokens, i).Is("on") { // an index without a name is called after its table
		return kind, nil
	}
	name, _ = sqltext.Qualified(s.Tokens, i)
	return kind, name
}

// checkObjects holds the rules on what is created and what it is called.
func checkObjects(f File, report reporter) {
	for i, s := range f.Statements {
		kind, name := created(s)
		if kind == "" || kind == "schema" || len(name) == 0 {
			continue
		}
		local := name[len(name)-1]
		switch {
		case kind == "index" || kind == "trigger": // live in the schema of their table
		case len(name) != 2 || !slices.Contains(schemasFor(f.Name), name[0]):
			report(s.line(), "schema", "create %s %s inside a schema of the file's wing, by its full name", kind, dotted(name))
		}
		if slices.Contains(alwaysPrivate, kind) && !strings.HasPrefix(local, privatePrefix) {
			report(s.line(), "private name", "%s %s is no part of the interface: begin its name with %s", kind, dotted(name), privatePrefix)
		}
		if slices.Contains(commented, kind) && !commentFollows(f.Statements[i+1:], []string{kind}, name) {
			report(s.line(), "comment", "say what %s %s is with a comment on %s after it", kind, dotted(name), kind)
		}
	}
}

// commentFollows reports whether the statements hold a comment on the object before they create the next
// thing of that kind.
func commentFollows(next []Statement, kinds, name []string) bool {
	for _, s := range next {
		if kind, _ := created(s); slices.Contains(kinds, kind) {
			return false
		}
		if _, ok := commentOn(s, kinds, name); ok {
			return true
		}
	}
	return false
}

// commentOn gives the text of the comment when the statement is a comment on that object.
func commentOn(s Statement, kinds, name []string) (text string, ok bool) {
	i := 3
	kind := sqltext.At(s.Tokens, 2).Name()
	if kind == "materialized" {
		kind += " " + sqltext.At(s.Tokens, i).Name()
		i++
	}
	if !s.begins("comment", "on") || !slices.Contains(kinds, kind) {
		return "", false
	}
	if found, _ := sqltext.Qualified(s.Tokens, i); !slices.Equal(found, name) {
		return "", false
	}
	return sqltext.At(s.Tokens, len(s.Tokens)-1).Text, true
}
