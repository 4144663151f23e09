package reference_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/parley-broker/parley/internal/reference"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/sql"
)

var update = flag.Bool("update", false, "write docs/reference/sql/ and the list in docs/concepts/broker.md")

func TestReferenceCanBeMade(t *testing.T) {
	t.Parallel()
	pages, err := reference.Pages(t.Context(), sql.Files, parleytest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, heading := range map[string]string{"broker": "\n### parley.receive\n", "mail": "\n### parley_mail.send\n"} {
		if !strings.Contains(pages[name], heading) {
			t.Errorf("the page of %s has no heading %q", name, heading)
		}
	}
	for name, page := range pages {
		if strings.Contains(page, "\n### parley_store.") {
			t.Errorf("the page of %s shows what is for the owner alone", name)
		}
		for _, link := range regexp.MustCompile(`\]\(\.\./\.\./([a-zA-Z/-]+\.md)`).FindAllStringSubmatch(page, -1) {
			if _, err := os.Stat(document(link[1])); err != nil {
				t.Errorf("the page of %s has a dead link: %v", name, err)
			}
		}
		if *update {
			if err := os.WriteFile(document("reference/sql/"+name+".md"), []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestListOfErrorMessagesIsUpToDate(t *testing.T) {
	t.Parallel()
	written, err := os.ReadFile(document("concepts/broker.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := reference.WriteMessages(t.Context(), string(written), parleytest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page, "| -8489 | The dialog has exceeded its lifetime. | Begin a new conversation. |") {
		t.Error("the list does not say what -8489 means")
	}
	requireWritten(t, "concepts/broker.md", page)
	if _, err := reference.WriteMessages(t.Context(), "# Concepts", parleytest.Database(t)); err == nil {
		t.Error("a page without a place for the list is taken")
	}
}

func document(name string) string { return filepath.Join("..", "..", "docs", filepath.FromSlash(name)) }

// requireWritten requires a page of docs/ to be as given, or writes it.
func requireWritten(t *testing.T, name, page string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(document(name), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(document(name))
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != page {
		t.Errorf("docs/%s is out of date in line %d: run go generate ./internal/reference", name, differingLine(string(written), page))
	}
}

// differingLine gives the first line in which two texts differ, from 1.
func differingLine(a, b string) int {
	linesOfA, linesOfB := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(linesOfA), len(linesOfB)) {
		if linesOfA[i] != linesOfB[i] {
			return i + 1
		}
	}
	return min(len(linesOfA), len(linesOfB)) + 1
}

// A part that the page cannot show must stop it, not be missing from it.
func TestReferencePageRefuses(t *testing.T) {
	t.Parallel()
	const function = "create function parley.f() returns void\nlanguage plpgsql\nas $$\nbegin\n  %\nend\n$$;\n"
	const comment = "comment on function parley.f() is 'Does it.';\n"
	cases := []struct{ name, file, sql, want string }{
		{"a file without a section", "parley/send/new.sql", function + comment, "sql/parley/send/new.sql has no section"},
		{"a function without a comment", "parley/send/send.sql", function, "function parley.f has no comment"},
		{"an error that no function lists", "parley/send/send.sql", function + comment, "error 127 is raised"},
	}
	pool := parleytest.Database(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{
				"manifest": {Data: []byte(c.file + "\n")},
				c.file:     {Data: []byte("-- Head.\n\n" + c.sql)},
			}
			_, err := reference.Pages(t.Context(), files, pool)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}
