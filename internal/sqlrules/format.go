package sqlrules

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/sqltext"
)

// Limits of a file: what fits a screen and one idea.
const (
	lineCharactersMax = 120
	fileLinesMax      = 400
)

var fileNamePattern = regexp.MustCompile(`^[a-z]+/[a-z]+/[a-z][a-z_]*\.sql$`)

// checkText holds the rules on lines and bytes.
func checkText(f File, report reporter) {
	if !fileNamePattern.MatchString(f.Name) {
		report(1, "file name", "call the file by its wing, its folder and its concept, such as parley/send/send.sql")
	}
	if !strings.HasPrefix(f.Text, "--") {
		report(1, "head", "begin the file with a comment: purpose, invariants, locks in order, cost")
	}
	if !utf8.ValidString(f.Text) {
		report(1, "encoding", "the file is not UTF-8")
	}
	lines := strings.Split(f.Text, "\n")
	if last := len(lines) - 1; lines[last] != "" || last > 0 && lines[last-1] == "" {
		report(len(lines), "file end", "end the file with one newline")
	} else {
		lines = lines[:last]
	}
	if len(lines) > fileLinesMax {
		report(len(lines), "file length", "%d lines, at most %d: split it by idea", len(lines), fileLinesMax)
	}
	for i, line := range lines {
		if strings.ContainsAny(line, "\t\r") {
			report(i+1, "blanks", "indent with blanks, end lines with a newline alone")
		}
		if strings.TrimRight(line, " ") != line {
			report(i+1, "blanks", "trailing blanks")
		}
		if n := utf8.RuneCountInString(line); n > lineCharactersMax {
			report(i+1, "line length", "%d characters, at most %d", n, lineCharactersMax)
		}
	}
}

// checkTokens holds the rules on spelling and spacing outside of comments and strings.
func checkTokens(f File, report reporter) {
	if n := len(f.Statements); n > 0 && !f.Statements[n-1].Closed {
		report(f.Statements[n-1].line(), "semicolon", "end the last statement with a semicolon")
	}
	lines := strings.Split(f.Text, "\n")
	var walk func(tokens []sqltext.Token)
	walk = func(tokens []sqltext.Token) {
		for i, t := range tokens {
			switch {
			case t.Kind == sqltext.Word && strings.ToLower(t.Text) != t.Text:
				report(t.Line, "lower case", "write %q in lower case", t.Text)
			case t.Is(",", ";") && spaceBefore(lines, t):
				report(t.Line, "spacing", "no blank before %q", t.Text)
			case t.Is(",") && i+1 < len(tokens) && touches(t, tokens[i+1]):
				report(t.Line, "spacing", "a blank after a comma")
			}
			if firstOfLine(lines, t) && (t.Column-1)%2 != 0 {
				report(t.Line, "indentation", "indent by two blanks a level")
			}
			walk(t.Inside)
		}
	}
	walk(f.Tokens)
}

func spaceBefore(lines []string, t sqltext.Token) bool {
	before := lines[t.Line-1][:t.Column-1]
	return before == "" || strings.HasSuffix(before, " ")
}

func touches(t, next sqltext.Token) bool {
	return next.Line == t.Line && next.Column == t.Column+len(t.Text)
}

func firstOfLine(lines []string, t sqltext.Token) bool {
	return strings.Trim(lines[t.Line-1][:t.Column-1], " ") == ""
}
