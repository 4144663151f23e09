package sqlrules

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
)

// checkColumns holds the rule that the columns of a table stand in the statement that creates it: a reader finds all of them there.
func checkColumns(f File, report reporter) {
	for _, s := range f.Statements {
		if !s.begins("alter", "table") {
			continue
		}
		for i, t := range s.Tokens {
			if t.Is("add") && !sqltext.At(s.Tokens, i+1).Is("constraint", "check", "primary", "unique", "foreign", "exclude") {
				report(t.Line, "columns", "write the column into the statement that creates the table")
			}
		}
	}
}

// checkPlaces holds two rules: statements about an object stand in its file, and a file which a comment names is there. A file of the same
// system is named by folder and name, one of another system with the system in front.
func checkPlaces(files []File) []Violation {
	creator := creators(files)
	var found []Violation
	for _, f := range files {
		for _, s := range f.Statements {
			if !s.begins("comment", "on", "column") && !s.begins("comment", "on", "view") && !s.begins("comment", "on", "table") {
				continue
			}
			name, _ := sqltext.Qualified(s.Tokens, 3)
			if len(name) < 2 {
				continue
			}
			if file := creator[dotted(name[:2])]; file != f.Name {
				found = append(found, Violation{
					File: f.Name, Line: s.line(), Rule: "comment",
					Text: fmt.Sprintf("%s is created in %q: write this there", dotted(name[:2]), file),
				})
			}
		}
		found = append(found, missingFiles(f, files)...)
	}
	return found
}

// namedFile is a file of the schema in a comment.
var namedFile = regexp.MustCompile(`\b[a-z]+(?:/[a-z_]+)+\.sql\b`)

// missingFiles reports the files that comments of a file name, and that are not there.
func missingFiles(f File, files []File) []Violation {
	wing, _, _ := strings.Cut(f.Name, "/")
	var found []Violation
	for i, line := range strings.Split(f.Text, "\n") {
		for _, name := range namedFile.FindAllString(line, -1) {
			isNamed := func(other File) bool { return other.Name == path.Join(wing, name) || other.Name == name }
			if !slices.ContainsFunc(files, isNamed) {
				found = append(found, Violation{File: f.Name, Line: i + 1, Rule: "named file", Text: "there is no file " + name})
			}
		}
	}
	return found
}

// creators gives the file that creates each object.
func creators(files []File) map[string]string {
	creator := map[string]string{}
	for _, f := range files {
		for _, s := range f.Statements {
			if _, name := created(s); len(name) > 1 && creator[dotted(name)] == "" {
				creator[dotted(name)] = f.Name
			}
		}
	}
	return creator
}
