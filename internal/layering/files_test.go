package layering

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const fileLinesMax = 400

// generated is how Go marks files that a program has written.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// Names that say nothing about what is inside.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "models"}

func TestPackagesAreNamedForWhatTheyDo(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		name := strings.TrimSuffix(f.packageName, "_test")
		for _, part := range append(strings.Split(f.pkg, "/"), name) {
			if slices.Contains(emptyNames, part) {
				t.Errorf("%s: %q tells nothing; name the package for what it does", f.path, part)
			}
		}
	}
}

func TestGoFilesHoldOneIdea(t *testing.T) {
	t.Parallel()
	for _, name := range paths(t, ".go") {
		text := read(t, name)
		if generated.MatchString(text) {
			continue
		}
		if n := strings.Count(text, "\n"); n > fileLinesMax {
			t.Errorf("%s has %d lines, at most %d: split it by idea", name, n, fileLinesMax)
		}
	}
}

func TestTextFilesAreClean(t *testing.T) {
	t.Parallel()
	for _, name := range paths(t, ".md", ".sql", ".yml", ".yaml", ".txtar") {
		text := read(t, name)
		if !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n") {
			t.Errorf("%s: end the file with one newline", name)
		}
		for i, line := range strings.Split(text, "\n") {
			if strings.ContainsAny(line, "\t\r") {
				t.Errorf("%s:%d: indent with blanks, end lines with a newline alone", name, i+1)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("%s:%d: trailing blanks", name, i+1)
			}
		}
	}
}

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksInTheDocumentationLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, page := range paths(t, ".md") {
		for _, found := range markdownLink.FindAllStringSubmatch(read(t, page), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, ":") { // another place
				continue
			}
			file := page
			if target != "" {
				file = path.Join(path.Dir(page), target)
			}
			info, err := os.Stat(filepath.Join(root(t), filepath.FromSlash(file)))
			if err != nil {
				t.Errorf("%s links to %s, which does not exist", page, found[1])
				continue
			}
			if anchor != "" && !info.IsDir() && !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s links to %s, but %s has no such heading", page, found[1], file)
			}
		}
	}
}

var (
	markdownHeading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	notInAnchor     = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors gives the names under which the headings of a page can be linked to.
func anchors(text string) []string {
	var all []string
	for _, found := range markdownHeading.FindAllStringSubmatch(text, -1) {
		name := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(found[1])), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}
