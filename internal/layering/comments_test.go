package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltext"
)

// A comment names who acts, as a page does: the daemon, the reader, the operator. The comments of the schema's objects count too.
func TestSentencesOfCommentsBeginWithASubject(t *testing.T) {
	t.Parallel()
	for _, path := range paths(t, ".go", ".sql") {
		text := read(t, path)
		if generated.MatchString(text) {
			continue
		}
		for _, comment := range commentsOf(t, path, text) {
			for _, sentence := range standIns(comment) {
				t.Errorf("%s: %q begins with a word in place of a noun: name what acts, then say what it does", path, sentence)
			}
			if riddle := riddleOfDoc.FindString(comment); riddle != "" {
				t.Errorf("%s: %q is a riddle: name the thing itself", path, riddle)
			}
		}
	}
}

// riddleOfDoc finds the doc comment of a name that gives a clause in place of a noun.
var riddleOfDoc = regexp.MustCompile(`^\w+(\.\w+)* (is|are) (what|whatever|who|whoever|whom)\b[^.:;]*`)

// commentsOf gives the comments of a file: those in a row are one.
func commentsOf(t *testing.T, path, text string) (comments []string) {
	t.Helper()
	if strings.HasSuffix(path, ".sql") {
		return commentsOfSQL(sqltext.Lex(text))
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range parsed.Comments {
		comments = append(comments, proseOf(group))
	}
	return comments
}

// proseOf gives a comment without its code, which is indented.
func proseOf(group *ast.CommentGroup) string {
	lines := strings.Split(group.Text(), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "\t") {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

func commentsOfSQL(tokens []sqltext.Token) (comments []string) {
	last := 0 // the line of the comment before
	for i, at := range tokens {
		comments = append(comments, commentsOfSQL(at.Inside)...)
		switch {
		case at.Kind == sqltext.Comment:
			line := strings.TrimSpace(strings.TrimPrefix(at.Text, "--"))
			if last == at.Line-1 && i > 0 && tokens[i-1].Kind == sqltext.Comment {
				comments[len(comments)-1] += "\n" + line
			} else {
				comments = append(comments, line)
			}
			last = at.Line
		case at.Kind == sqltext.Text && i > 0 && tokens[i-1].Is("is"):
			comments = append(comments, strings.ReplaceAll(strings.Trim(at.Text, "'"), "''", "'"))
		}
	}
	return comments
}

func TestCommentsWithoutASubjectAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, text string
		want       int
	}{
		{"a.go", "package a\n\n// What has its number\n// may be elsewhere. The daemon waits.\nvar b int\n", 1},
		{"a.go", "package a\n\nvar b int // Whoever reads takes it.\n", 1},
		{"a.go", "package a\n\n// The daemon waits. Who reads\n// next takes the message.\n", 1},
		{"a.go", "package a\n\nvar b = `\n-- What is in a text is no comment.`\n", 0},
		{"a.go", "package a\n\n// What is code is skipped:\n//\n//\tWhat is this\nvar b int\n", 1},
		{"a.sql", "-- The daemon waits. What\n-- is left stays.\nselect 1; -- Nobody waits.\n", 2},
		{"a.sql", "comment on view a is\n'Rows. Who may read\nthem sees them.';\n", 1},
		{"a.sql", "do $$\nbegin\n  -- Whoever reads takes it.\n  null;\nend\n$$;\n", 1},
		{"a.sql", "select 'What is a text';\n-- What is it? A question.\n", 0},
	} {
		found := 0
		for _, comment := range commentsOf(t, c.path, c.text) {
			found += len(standIns(comment))
		}
		if found != c.want {
			t.Errorf("%q: found %d, want %d", c.text, found, c.want)
		}
	}
	for doc, want := range map[string]bool{
		"Outcome is what became of a delivery.":           true,
		"a.Field are what the reader has received.":       true,
		"Outcome is the end of a delivery.":               false,
		"Outcome is kept for who asks what became of it.": false,
	} {
		if riddleOfDoc.MatchString(doc) != want {
			t.Errorf("%q: want %t", doc, want)
		}
	}
}
