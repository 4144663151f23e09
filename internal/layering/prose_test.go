package layering

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	proseLineMax    = 120
	longRow         = 240 // characters of a row of a table, which cannot be broken
	longRowsMax     = 92  // rows that are longer; the number may only fall
	pagesOfTheIndex = "docs/README.md"
)

// prosePages are the pages that people read: those of docs/ and of the root.
func prosePages(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(paths(t, ".md"), func(name string) bool {
		return !strings.HasPrefix(name, "docs/") && path.Dir(name) != "." || strings.HasPrefix(name, "docs/reference/sql/") && path.Base(name) != "README.md"
	})
}

// lineOfPage is a line of a page; code is the mark of the block of code in which it stands.
type lineOfPage struct {
	number int
	text   string
	isCode bool
	code   string
}

func linesOfPage(text string) []lineOfPage {
	var lines []lineOfPage
	isCode, code := false, ""
	for i, line := range strings.Split(text, "\n") {
		mark, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		if isFence {
			isCode, code = !isCode, mark
		}
		lines = append(lines, lineOfPage{number: i + 1, text: line, isCode: isCode || isFence, code: code})
	}
	return lines
}

// isOutput reports whether a line belongs to what a program printed, which is shown as it is.
func (l lineOfPage) isOutput() bool {
	return l.isCode && slices.Contains([]string{"text", "json", "console", "xml"}, l.code)
}

func TestLinesOfPagesAreNotLong(t *testing.T) {
	t.Parallel()
	longRows := 0
	for _, page := range prosePages(t) {
		for _, line := range linesOfPage(read(t, page)) {
			n := utf8.RuneCountInString(line.text)
			if strings.HasPrefix(line.text, "|") {
				if n > longRow {
					longRows++
				}
			} else if n > proseLineMax && !line.isOutput() {
				t.Errorf("%s:%d has %d characters, at most %d: break it", page, line.number, n, proseLineMax)
			}
		}
	}
	if longRows > longRowsMax {
		t.Errorf("tables have %d rows of more than %d characters, at most %d: make a list of them, or shorten them", longRows, longRow, longRowsMax)
	}
}

// standIn finds sentences that begin with a word that stands for a noun, in a text without code. A question is no such sentence.
var standIn = regexp.MustCompile(`(?:^|[.!?:;] |\n[-*] |\n\d+\. |\| |\*\*)(What|Whatever|Who|Whoever|Whom|Whose|Nobody)\b[^.!?|]*[.!?|]?`)

// standIns gives the sentences of a page that begin so.
func standIns(text string) []string {
	var prose strings.Builder
	for _, line := range linesOfPage(text) {
		switch {
		case line.isCode || strings.HasPrefix(line.text, "#") || line.text == "":
			prose.WriteString("\n\n")
		case strings.HasPrefix(line.text, "|") || strings.HasPrefix(strings.TrimSpace(line.text), "- "):
			prose.WriteString("\n" + strings.TrimSpace(line.text) + " ")
		default:
			prose.WriteString(strings.TrimSpace(line.text) + " ")
		}
	}
	var found []string
	for paragraph := range strings.SplitSeq(prose.String(), "\n\n") {
		for _, sentence := range standIn.FindAllString(paragraph, -1) {
			if !strings.HasSuffix(sentence, "?") {
				found = append(found, strings.TrimLeft(sentence, ".!?:;-*| \n"))
			}
		}
	}
	return found
}

// A sentence names who acts: the daemon, the reader, the operator.
func TestSentencesOfPagesBeginWithASubject(t *testing.T) {
	t.Parallel()
	for _, page := range prosePages(t) {
		for _, sentence := range standIns(read(t, page)) {
			t.Errorf("%s: %q begins with a word in place of a noun: name what acts, then say what it does", page, sentence)
		}
	}
}

func TestSentencesWithoutASubjectAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"What has its number may be elsewhere. The daemon waits.":     1,
		"The daemon waits. Who reads next\ntakes the message.":        1,
		"- Nobody waits for it.\n- A reader waits.":                   1,
		"| `a` | What is left |\n| `b` | the rest |":                  1,
		"A reader takes it.\n\n**Whoever may begin** a dialog sends.": 1,
		"What happens then? The reader takes it.":                     0,
		"```\nWhat is in a block is output.\n```":                     0,
		"# What a heading says\n\nThe reader says what it has taken.": 0,
	} {
		if found := standIns(text); len(found) != want {
			t.Errorf("%q: found %q, want %d", text, found, want)
		}
	}
}

// Each page is reached from the index, or from the first page of its folder, which the index names.
func TestIndexNamesEachPage(t *testing.T) {
	t.Parallel()
	index := linked(t, pagesOfTheIndex)
	for _, page := range prosePages(t) {
		first := path.Dir(page) + "/README.md"
		isNamed := index[page] || index[first] && linked(t, first)[page]
		if strings.HasPrefix(page, "docs/") && page != pagesOfTheIndex && !isNamed {
			t.Errorf("%s is not linked from %s", page, pagesOfTheIndex)
		}
	}
}

var linkedPage = regexp.MustCompile(`\]\(([a-zA-Z0-9./_-]+\.md)[#)]`)

// linked gives the pages to which a page links, by their paths.
func linked(t *testing.T, page string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, link := range linkedPage.FindAllStringSubmatch(read(t, page), -1) {
		found[path.Join(path.Dir(page), link[1])] = true
	}
	return found
}
