package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// How a name is declared in each language, and where.
var declarations = map[string]struct {
	files   []string // patterns, from the root
	pattern string   // the name for %
}{
	"Go": {[]string{"*.go"}, `(?m)^(?:func|type)(?: \([^)]*\))? %\b|^\t%(?:, \w+)* +(?:=|[\w.*(])|, % +[\w.*]`},
	"Java": {
		[]string{"clients/java/src/main/java/io/github/parleybroker/*.java"},
		`(?m)^(?:public |final |abstract )*(?:class|record|interface) %\b|^  public (?:static )?(?:abstract )?(?:class )?[\w<>?, ]*\b%(?:\(| extends)|DataSource dataSource, String %\b|Handler %\)`,
	},
	"Node": {[]string{"clients/node/index.d.ts"}, `(?m)^export (?:function|class|interface) %\b|^  %\??[ :(]|[{,] %\??:`},
	"Python": {
		[]string{"clients/python/parley/*.py"},
		`(?m)^ *(?:class|def) %\b|^% = |^        (?:self, )?(?:\w+: [^,]+, )*%: |, %: |self\.%\b`,
	},
}

var codeInCell = regexp.MustCompile("`(\\w+)`")

// The table of the words names only what the sources of each language declare, and each language has a cell for each word.
func TestTheTableOfWordsIsThatOfTheSources(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs/clients/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "## The same words\n")
	if !ok {
		t.Fatal("docs/clients/README.md has no section of words")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var columns []string
	rows := 0
	sources := map[string]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---"):
			continue
		case columns == nil:
			for _, cell := range cells {
				columns = append(columns, strings.TrimSpace(cell))
			}
			for _, column := range columns[1:] {
				sources[column] = sourceOf(t, column)
			}
			continue
		case len(cells) != len(columns):
			t.Errorf("%d cells, want %d: %s", len(cells), len(columns), line)
			continue
		}
		rows++
		for i, cell := range cells[1:] {
			language := columns[i+1]
			for _, name := range codeInCell.FindAllStringSubmatch(cell, -1) {
				pattern := strings.ReplaceAll(declarations[language].pattern, "%", name[1])
				if !regexp.MustCompile(pattern).MatchString(sources[language]) {
					t.Errorf("the sources of %s do not declare %s", language, name[1])
				}
			}
		}
	}
	if rows < 20 {
		t.Errorf("the table has %d rows", rows)
	}
}

func sourceOf(t *testing.T, language string) string {
	t.Helper()
	var text strings.Builder
	for _, pattern := range declarations[language].files {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no sources %s: %v", language, pattern, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(source)
		}
	}
	return text.String()
}

// The programs that the pages of docs/clients show are those of the READMEs, which CI runs.
func TestThePagesShowTheProgramsThatRun(t *testing.T) {
	t.Parallel()
	for name, c := range clients {
		if c.programs != nil {
			continue
		}
		readme, err := os.ReadFile(filepath.Join(root, "clients", name, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join(root, "docs/clients", name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		shown := namedBlock.FindAllString(string(page), -1)
		if len(shown) == 0 {
			t.Errorf("docs/clients/%s.md shows no program of the README", name)
		}
		for _, block := range shown {
			if !strings.Contains(string(readme), block) {
				t.Errorf("docs/clients/%s.md shows a program that is not in the README:\n%s", name, block)
			}
		}
	}
}
