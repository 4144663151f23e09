package sqlrules

import (
	"regexp"
	"strings"
)

// Lex cuts SQL into tokens. It accepts every text: what is not closed runs to the end.
func Lex(sql string) []Token {
	return lexAt(sql, 1, 1)
}

type lexer struct {
	rest         string
	line, column int
	tokens       []Token
}

func lexAt(sql string, line, column int) []Token {
	l := &lexer{rest: sql, line: line, column: column}
	for l.rest != "" {
		l.next()
	}
	return l.tokens
}

var (
	blankPattern     = regexp.MustCompile(`^\s+`)
	lineComment      = regexp.MustCompile(`^--[^\n]*`)
	dollarQuote      = regexp.MustCompile(`^\$([A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*)?\$`)
	parameterPattern = regexp.MustCompile(`^\$[0-9]+`)
	// A dot that begins ".." is the range of a PL/pgSQL loop, not a decimal point.
	numberPattern   = regexp.MustCompile(`^(0[xXoObB][0-9A-Fa-f_]+|[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?)`)
	wordPattern     = regexp.MustCompile(`^[A-Za-z_\x80-\xff][A-Za-z0-9_$\x80-\xff]*`)
	plainString     = regexp.MustCompile(`^([bBxXnN]|[uU]&)?'([^']|'')*('|$)`)
	escapeString    = regexp.MustCompile(`^[eE]'([^'\\]|''|\\(?s:.))*('|$)`)
	quotedPattern   = regexp.MustCompile(`^([uU]&)?"([^"]|"")*("|$)`)
	formatPattern   = regexp.MustCompile(`^%([0-9]+\$)?-?[0-9]*[sIL]\b`)
	operatorPattern = regexp.MustCompile("^[-+*/<>=~!@#%^&|`?]+")
	pairPattern     = regexp.MustCompile(`^(:=|::|=>|\.\.)`)
)

func (l *lexer) next() {
	switch {
	case l.skip(blankPattern):
	case l.take(lineComment, Comment), l.blockComment(), l.dollar():
	case l.take(escapeString, Text), l.take(plainString, Text), l.take(quotedPattern, Quoted):
	case l.take(wordPattern, Word), l.take(parameterPattern, Number), l.take(numberPattern, Number):
	case l.take(pairPattern, Symbol), l.take(formatPattern, Symbol), l.operator():
	default:
		l.emit(1, Symbol)
	}
}

func (l *lexer) skip(pattern *regexp.Regexp) bool {
	blank := pattern.FindString(l.rest)
	l.advance(len(blank))
	return blank != ""
}

func (l *lexer) take(pattern *regexp.Regexp, kind Kind) bool {
	found := pattern.FindString(l.rest)
	if found != "" {
		l.emit(len(found), kind)
	}
	return found != ""
}

func (l *lexer) emit(length int, kind Kind) {
	l.tokens = append(l.tokens, Token{Kind: kind, Text: l.rest[:length], Line: l.line, Column: l.column})
	l.advance(length)
}

func (l *lexer) advance(length int) {
	passed := l.rest[:length]
	l.rest = l.rest[length:]
	if last := strings.LastIndexByte(passed, '\n'); last >= 0 {
		l.line += strings.Count(passed, "\n")
		l.column = len(passed) - last
		return
	}
	l.column += length
}

// blockComment takes a comment in /* */, which nests.
func (l *lexer) blockComment() bool {
	if !strings.HasPrefix(l.rest, "/*") {
		return false
	}
	depth, i := 0, 0
	for i < len(l.rest) {
		switch {
		case strings.HasPrefix(l.rest[i:], "/*"):
			depth++
			i += 2
		case strings.HasPrefix(l.rest[i:], "*/"):
			depth--
			i += 2
		default:
			i++
		}
		if depth == 0 {
			break
		}
	}
	l.emit(i, Comment)
	return true
}

// dollar takes a dollar-quoted constant: code behind AS, DO and EXECUTE, a string anywhere else.
func (l *lexer) dollar() bool {
	tag := dollarQuote.FindString(l.rest)
	if tag == "" {
		return false
	}
	length := len(l.rest)
	inner := l.rest[len(tag):]
	if end := strings.Index(inner, tag); end >= 0 {
		inner = inner[:end]
		length = end + 2*len(tag)
	}
	if !l.expectsCode() {
		l.emit(length, Text)
		return true
	}
	inside := lexAt(inner, l.line, l.column+len(tag))
	l.emit(length, Body)
	l.tokens[len(l.tokens)-1].Inside = inside
	return true
}

func (l *lexer) expectsCode() bool {
	before := code(l.tokens)
	last := len(before) - 1
	if at(before, last).is("as", "do", "execute") {
		return true
	}
	// do language plpgsql $$
	return at(before, last-1).is("language") && at(before, last-2).is("do")
}

// operator takes the longest operator by the server's rules: it stops before a comment, and it ends in
// + or - only when it holds a character that no standard operator has.
func (l *lexer) operator() bool {
	found := operatorPattern.FindString(l.rest)
	for _, comment := range []string{"--", "/*"} {
		if i := strings.Index(found, comment); i >= 0 {
			found = found[:i]
		}
	}
	if !strings.ContainsAny(found, "~!@#%^&|`?") {
		for len(found) > 1 && strings.ContainsAny(found[len(found)-1:], "+-") {
			found = found[:len(found)-1]
		}
	}
	if found == "" {
		return false
	}
	l.emit(len(found), Symbol)
	return true
}
