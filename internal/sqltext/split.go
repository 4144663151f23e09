package sqltext

import (
	"fmt"
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
	s := scanner{text: script}
	for s.pos < len(s.text) {
		if err := s.step(); err != nil {
			return nil, err
		}
	}
	s.finish()
	return s.statements, nil
}

// scanner walks over a script byte by byte; every byte it decides on is ASCII, so UTF-8 passes through untouched.
type scanner struct {
	text       string
	pos        int
	start      int // of the current statement, valid while begun
	begun      bool
	depth      int      // of parentheses
	blocks     int      // of BEGIN ATOMIC and the CASE inside it
	words      []string // the first words of the statement, lower case
	statements []Statement
}

// leadingWords is how many words decide whether a statement may have a BEGIN ATOMIC body: CREATE OR REPLACE FUNCTION.
const leadingWords = 4

func (s *scanner) step() error {
	c := s.text[s.pos]
	switch {
	case strings.HasPrefix(s.text[s.pos:], "--"):
		s.skipLine()
		return nil
	case strings.HasPrefix(s.text[s.pos:], "/*"):
		return s.skipBlockComment()
	case isSpace(c):
		s.pos++
		return nil
	case c == ';' && s.depth == 0 && s.blocks == 0:
		s.finish()
		s.pos++
		return nil
	}
	s.begin()
	switch {
	case c == '\'':
		return s.skipQuoted('\'', false)
	case c == '"':
		return s.skipQuoted('"', false)
	case c == '$':
		return s.skipDollar()
	case isWordStart(c):
		return s.word()
	case c == '(':
		s.depth++
	case c == ')' && s.depth > 0:
		s.depth--
	case isDigit(c):
		s.skipNumber()
		return nil
	}
	s.pos++
	return nil
}

func (s *scanner) begin() {
	if !s.begun {
		s.begun, s.start, s.words = true, s.pos, s.words[:0]
		s.depth, s.blocks = 0, 0
	}
}

func (s *scanner) finish() {
	if !s.begun {
		return
	}
	text := strings.TrimRight(s.text[s.start:s.pos], " \t\r\n\f")
	s.statements = append(s.statements, Statement{Text: text, Line: s.line(s.start)})
	s.begun = false
}

func (s *scanner) line(pos int) int { return 1 + strings.Count(s.text[:pos], "\n") }

func (s *scanner) skipLine() {
	if end := strings.IndexByte(s.text[s.pos:], '\n'); end >= 0 {
		s.pos += end + 1
		return
	}
	s.pos = len(s.text)
}

func (s *scanner) skipBlockComment() error {
	open := s.pos
	for depth := 0; s.pos < len(s.text); {
		switch {
		case strings.HasPrefix(s.text[s.pos:], "/*"):
			depth++
			s.pos += 2
		case strings.HasPrefix(s.text[s.pos:], "*/"):
			depth--
			s.pos += 2
		default:
			s.pos++
		}
		if depth == 0 {
			return nil
		}
	}
	return fmt.Errorf("line %d: comment is never closed", s.line(open))
}

// skipQuoted passes a literal or a quoted name; a doubled quote inside it reads as two adjoining literals, which ends
// at the same place. Only E” literals give the backslash a meaning.
func (s *scanner) skipQuoted(quote byte, escapes bool) error {
	open := s.pos
	for s.pos++; s.pos < len(s.text); s.pos++ {
		switch {
		case escapes && s.text[s.pos] == '\\':
			s.pos++
		case escapes && strings.HasPrefix(s.text[s.pos:], "''"):
			s.pos++
		case s.text[s.pos] == quote:
			s.pos++
			return nil
		}
	}
	return fmt.Errorf("line %d: quote %c is never closed", s.line(open), quote)
}

// skipDollar passes a dollar-quoted literal, or a lone dollar sign such as that of a parameter.
func (s *scanner) skipDollar() error {
	end := s.pos + 1
	for end < len(s.text) && isWord(s.text[end]) && (end > s.pos+1 || !isDigit(s.text[end])) {
		end++
	}
	if end >= len(s.text) || s.text[end] != '$' {
		s.pos++
		return nil
	}
	tag := s.text[s.pos : end+1]
	body := strings.Index(s.text[end+1:], tag)
	if body < 0 {
		return fmt.Errorf("line %d: quote %s is never closed", s.line(s.pos), tag)
	}
	s.pos = end + 1 + body + len(tag)
	return nil
}

func (s *scanner) skipNumber() {
	for s.pos < len(s.text) && (isWord(s.text[s.pos]) || s.text[s.pos] == '.') {
		s.pos++
	}
}

// word passes a name or key word and counts the blocks of BEGIN ATOMIC bodies, as psql does.
func (s *scanner) word() error {
	start := s.pos
	for s.pos < len(s.text) && (isWord(s.text[s.pos]) || s.text[s.pos] == '$') {
		s.pos++
	}
	word := strings.ToLower(s.text[start:s.pos])
	if word == "e" && s.pos < len(s.text) && s.text[s.pos] == '\'' {
		return s.skipQuoted('\'', true)
	}
	if len(s.words) < leadingWords {
		s.words = append(s.words, word)
	}
	if s.depth > 0 || !s.createsRoutine() {
		return nil
	}
	switch {
	case word == "begin", word == "case" && s.blocks > 0:
		s.blocks++
	case word == "end" && s.blocks > 0:
		s.blocks--
	}
	return nil
}

func (s *scanner) createsRoutine() bool {
	if len(s.words) == 0 || s.words[0] != "create" {
		return false
	}
	for _, word := range s.words[1:] {
		if word == "function" || word == "procedure" {
			return true
		}
	}
	return false
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func isWord(c byte) bool { return isWordStart(c) || isDigit(c) }
