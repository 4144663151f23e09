package pages

import (
	"regexp"
	"strings"
)

// A block is SQL of a page, with the result that the page states, or a letter.
type block struct {
	line   int // the first, from 1
	sql    string
	output string
	letter string // what is typed to send one
}

// readBlocks finds the blocks of a page: fences marked sql, each with the fence marked text that follows it, if one does, and those of
// a console in which a letter is sent.
func readBlocks(page string) []block {
	var blocks []block
	var lines []string
	kind, previous := "", ""
	for i, line := range strings.Split(page, "\n") {
		mark, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && kind == "":
			kind, lines = mark+" ", nil
			if mark == "sql" {
				blocks = append(blocks, block{line: i + 2})
			}
		case isFence:
			last := len(blocks) - 1
			if kind == "sql " {
				blocks[last].sql = strings.Join(lines, "\n")
			}
			if kind == "console " && sending.MatchString(strings.Join(lines, "\n")) {
				blocks = append(blocks, block{line: i + 1 - len(lines), letter: strings.Join(lines, "\n")})
			}
			if kind == "text " && previous == "sql " {
				blocks[last].output = strings.Join(lines, "\n")
			}
			previous, kind = kind, ""
		case kind != "":
			lines = append(lines, line)
		case line != "":
			previous = ""
		}
	}
	return blocks
}

var (
	anyUUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyTime = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}(:[0-9.]+)?([+-][0-9]{2})?`)
	blanks  = regexp.MustCompile(` +`)
	rules   = regexp.MustCompile(`-[-+]*-`)
)

// essential leaves of an output what is the same each time.
func essential(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		line = anyUUID.ReplaceAllString(line, "UUID")
		line = anyTime.ReplaceAllString(line, "TIME")
		line = rules.ReplaceAllString(line, "---")
		lines = append(lines, strings.TrimSpace(blanks.ReplaceAllString(line, " ")))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
