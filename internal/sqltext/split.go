package sqltext

import (
	"fmt"
	"slices"
	"strings"
)

// Statement is one statement of a script.
type Statement struct {
	// Text begins with the first word and ends before the semicolon; comments inside it are kept.
	Text string
	// Line is the line of the first word in the script, counted from 1.
	Line int
}

// Split cuts a script into its statements, in order. Comments and blanks between statements are dropped, and so are
// empty statements. The last statement needs no semicolon. A quote or comment that is never closed is an error that
// names the line where it opens.
func Split(script string) ([]Statement, error) {
	l := lexer{rest: script, line: 1, column: 1}
	s := splitter{script: script}
	for _, token := range l.run() {
		if token.isOpen {
			return nil, fmt.Errorf("line %d: %s is never closed", token.Line, token.opened())
		}
		if token.Kind != Comment {
			s.step(token)
		} else if s.begun != nil {
			s.end = token.offset + len(token.Text)
		}
	}
	s.finish()
	return s.statements, nil
}

// opened names the beginning of a token that is never closed.
func (t Token) opened() string {
	if t.Kind == Comment {
		return "comment"
	}
	if tag := dollarQuote.FindString(t.Text); tag != "" {
		return "quote " + tag
	}
	return "quote " + t.Text[strings.IndexAny(t.Text, `'"`):][:1]
}

// splitter collects the tokens of a statement.
type splitter struct {
	script     string
	begun      *Token   // the first of the statement; nil between two
	end        int      // of the last
	depth      int      // of parentheses
	blocks     int      // of BEGIN ATOMIC and the CASE inside it
	words      []string // the first words of the statement, lower case
	statements []Statement
}

// leadingWords is how many words decide whether a statement may have a BEGIN ATOMIC body: CREATE OR REPLACE FUNCTION.
const leadingWords = 4

func (s *splitter) step(token Token) {
	if token.Is(";") && s.depth == 0 && s.blocks == 0 {
		s.finish()
		return
	}
	if s.begun == nil {
		s.begun, s.words, s.depth, s.blocks = &token, s.words[:0], 0, 0
	}
	s.end = token.offset + len(token.Text)
	switch {
	case token.Is("("):
		s.depth++
	case token.Is(")") && s.depth > 0:
		s.depth--
	case token.Kind == Word:
		s.word(strings.ToLower(token.Text))
	}
}

// word counts the blocks of BEGIN ATOMIC bodies, as psql does.
func (s *splitter) word(word string) {
	if len(s.words) < leadingWords {
		s.words = append(s.words, word)
	}
	createsRoutine := s.words[0] == "create" && (slices.Contains(s.words, "function") || slices.Contains(s.words, "procedure"))
	switch {
	case s.depth > 0 || !createsRoutine:
	case word == "begin", word == "case" && s.blocks > 0:
		s.blocks++
	case word == "end" && s.blocks > 0:
		s.blocks--
	}
}

func (s *splitter) finish() {
	if s.begun != nil {
		s.statements = append(s.statements, Statement{Text: s.script[s.begun.offset:s.end], Line: s.begun.Line})
		s.begun = nil
	}
}
