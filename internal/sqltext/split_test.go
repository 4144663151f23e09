package sqltext

import (
	"slices"
	"strings"
	"testing"
)

func TestSplitEndsAStatementAtASemicolonThatNothingHides(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		script string
		want   []string
	}{
		{"nothing", " \n-- only a comment\n ; ;", nil},
		{"last semicolon may be missing", "select 1; select 2", []string{"select 1", "select 2"}},
		{"line comment", "select 1 -- a; b\n, 2; select 3", []string{"select 1 -- a; b\n, 2", "select 3"}},
		{"nested comment", "/* a /* ; */ ; */ select 1;", []string{"select 1"}},
		{"literal", "select ';', 'it''s;'; select 2", []string{"select ';', 'it''s;'", "select 2"}},
		{"backslash is plain in a standard literal", `select '\'; select 2`, []string{`select '\'`, "select 2"}},
		{"backslash escapes in an E literal", `select E'\';'; select 2`, []string{`select E'\';'`, "select 2"}},
		{"doubled quote in an E literal", `select e'a'';\''; select 2`, []string{`select e'a'';\''`, "select 2"}},
		{"quoted name", `select 1 as "a;""b;"; select 2`, []string{`select 1 as "a;""b;"`, "select 2"}},
		{"dollar quotes", "do $$ a; b $$; do $x$ $$; $x$;", []string{"do $$ a; b $$", "do $x$ $$; $x$"}},
		{"dollar in a name or parameter", "select a$b$; select $1; select 2", []string{"select a$b$", "select $1", "select 2"}},
		{"parentheses", "create rule r as on insert to t do (select 1; select 2); x", []string{"create rule r as on insert to t do (select 1; select 2)", "x"}},
		{
			"atomic body",
			"create function f() returns int begin atomic select case when true then 1 end; select 2; end; select 3",
			[]string{"create function f() returns int begin atomic select case when true then 1 end; select 2; end", "select 3"},
		},
		{"begin as a statement", "begin; select 1; end; select 2", []string{"begin", "select 1", "end", "select 2"}},
		{"characters beyond ASCII", "select 'é;'; select ü", []string{"select 'é;'", "select ü"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			statements, err := Split(test.script)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, statement := range statements {
				got = append(got, statement.Text)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSplitReturnsTheLineOfTheFirstWord(t *testing.T) {
	t.Parallel()
	statements, err := Split("-- head\nselect 1;\n\n/* two\nlines */ select\n2;")
	if err != nil {
		t.Fatal(err)
	}
	if statements[0].Line != 2 || statements[1].Line != 5 {
		t.Errorf("got lines %d and %d, want 2 and 5", statements[0].Line, statements[1].Line)
	}
}

func TestSplitNamesTheLineOfAQuoteThatIsNeverClosed(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"select 1;\n'a", "select 1;\n\"a", "select 1;\n$x$ a $$", "select 1;\n/* a /* */", "select 1;\nE'a\\'"} {
		if _, err := Split(script); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%q: got error %v, want one that begins with line 2", script, err)
		}
	}
}

func FuzzSplitLosesNoStatementText(f *testing.F) {
	f.Add("select 1; select ';' /* ; */; do $a$ ; $a$")
	f.Add("create function f() begin atomic select 1; end; x")
	f.Fuzz(func(t *testing.T, script string) {
		statements, err := Split(script)
		if err != nil {
			return
		}
		rest := script
		for _, statement := range statements {
			_, after, found := strings.Cut(rest, statement.Text)
			if statement.Text == "" || !found {
				t.Fatalf("statement %q is empty or not in order in %q", statement.Text, script)
			}
			rest = after
		}
	})
}
