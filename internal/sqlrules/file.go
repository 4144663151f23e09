package sqlrules

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
	"github.com/parley-broker/parley/sql"
)

// A File is one file of the schema, as text, as tokens and as statements.
type File struct {
	Name       string
	Text       string
	Tokens     []sqltext.Token
	Statements []Statement
}

// A Statement is one command of a file, without its comments and its semicolon.
type Statement struct {
	Tokens []sqltext.Token
	Closed bool // whether a semicolon ended it
}

// line gives the line on which the statement begins.
func (s Statement) line() int { return sqltext.At(s.Tokens, 0).Line }

// begins reports whether the statement starts with these words.
func (s Statement) begins(words ...string) bool {
	for i, word := range words {
		if !sqltext.At(s.Tokens, i).Is(word) {
			return false
		}
	}
	return true
}

// A Violation is one place where a file breaks a rule.
type Violation struct {
	File string
	Line int
	Rule string
	Text string
}

// String gives the violation in the form that editors jump to.
func (v Violation) String() string {
	return fmt.Sprintf("sql/%s:%d: %s: %s", v.File, v.Line, v.Rule, v.Text)
}

// Parse cuts one file.
func Parse(name, text string) File {
	tokens := sqltext.Lex(text)
	return File{Name: name, Text: text, Tokens: tokens, Statements: split(sqltext.Code(tokens))}
}

// Read parses every file of the schema, in the order in which they are applied.
func Read(files fs.FS) ([]File, error) {
	names, err := sql.Manifest(files)
	if err != nil {
		return nil, err
	}
	parsed := make([]File, 0, len(names))
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read a file of the schema: %w", err)
		}
		parsed = append(parsed, Parse(name, string(text)))
	}
	return parsed, nil
}

// split cuts tokens at the semicolons that end commands: not inside parentheses, nor inside the body of a
// function in standard form (begin atomic ... end).
func split(tokens []sqltext.Token) []Statement {
	var statements []Statement
	var current []sqltext.Token
	parentheses, blocks := 0, 0
	for i, t := range tokens {
		switch {
		case t.Is("("):
			parentheses++
		case t.Is(")"):
			parentheses--
		case t.Is("begin") && sqltext.At(tokens, i+1).Is("atomic"), t.Is("case") && blocks > 0:
			blocks++
		case t.Is("end") && blocks > 0:
			blocks--
		case t.Is(";") && parentheses <= 0 && blocks == 0:
			if len(current) > 0 {
				statements = append(statements, Statement{Tokens: current, Closed: true})
			}
			current, parentheses = nil, 0
			continue
		}
		current = append(current, t)
	}
	if len(current) > 0 {
		statements = append(statements, Statement{Tokens: current})
	}
	return statements
}

// Check gives every place where the files break a rule, in reading order.
func Check(files []File) []Violation {
	var found []Violation
	raising := raisingFunctions(files)
	asking := askingFunctions(files)
	for _, f := range files {
		var inFile []Violation
		report := func(line int, rule, format string, args ...any) {
			inFile = append(inFile, Violation{File: f.Name, Line: line, Rule: rule, Text: fmt.Sprintf(format, args...)})
		}
		checkText(f, report)
		checkTokens(f, report)
		checkObjects(f, report)
		checkColumns(f, report)
		checkMoves(f, report)
		checkFunctions(f, raising, report)
		checkQueries(f, report)
		checkRights(f, asking, report)
		checkLetters(f, report)
		checkWing(f, report)
		checkReplicaIdentities(f, report)
		slices.SortStableFunc(inFile, func(a, b Violation) int { return a.Line - b.Line })
		found = append(found, inFile...)
	}
	found = append(found, checkErrors(files)...)
	found = append(found, checkPlaces(files)...)
	found = append(found, checkKinds(files)...)
	return append(found, checkLayers(files)...)
}

// reporter takes one violation of a rule.
type reporter func(line int, rule, format string, args ...any)

// dotted writes a name of several parts as SQL does.
func dotted(parts []string) string { return strings.Join(parts, ".") }
