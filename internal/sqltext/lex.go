package sqltext

import (
	"regexp"
	"strings"
)

// Lex cuts SQL into tokens. It accepts every text: what is not closed runs to the end.
func Lex(sql string) []Token {
	l := lexer{rest: sql, line: 1, column: 1, readsBodies: true}
	return l.run()
}

// lexer walks over a text byte by byte; every byte it decides on is ASCII, so UTF-8 passes through untouched.
type lexer struct {
	rest         string
	offset       int
	line, column int
	readsBodies  bool // cuts dollar-quoted code into tokens too
	tokens       []Token
}

func (l *lexer) run() []Token {
	for l.rest != "" {
		l.next()
	}
	return l.tokens
}

var (
	dollarQuote = regexp.MustCompile(`^\$([A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*)?\$`)
	// A dot that begins ".." is the range of a PL/pgSQL loop, not a decimal point.
	numberPattern   = regexp.MustCompile(`^(0[xXoObB][0-9A-Fa-f_]+|[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?)`)
	formatPattern   = regexp.MustCompile(`^%([0-9]+\$)?-?[0-9]*[sIL]\b`)
	operatorPattern = regexp.MustCompile("^[-+*/<>=~!@#%^&|`?]+")
)

func (l *lexer) next() {
	c := l.rest[0]
	switch {
	case isSpace(c):
		l.advance(l.length(isSpace))
	case strings.HasPrefix(l.rest, "--"):
		l.emit(l.length(func(c byte) bool { return c != '\n' }), Comment)
	case strings.HasPrefix(l.rest, "/*"):
		l.blockComment()
	case c == '\'':
		l.quoted(0, Text, false)
	case c == '"':
		l.quoted(0, Quoted, false)
	case c == '$':
		l.dollar()
	case isWordStart(c):
		l.word()
	case isDigit(c):
		l.emit(len(numberPattern.FindString(l.rest)), Number)
	default:
		l.emit(l.symbol(), Symbol)
	}
}

// length counts the bytes at the front that are of a kind.
func (l *lexer) length(is func(byte) bool) int {
	n := 0
	for n < len(l.rest) && is(l.rest[n]) {
		n++
	}
	return n
}

func (l *lexer) emit(length int, kind Kind) {
	l.tokens = append(l.tokens, Token{Kind: kind, Text: l.rest[:length], Line: l.line, Column: l.column, offset: l.offset})
	l.advance(length)
}

// open marks the last token as one that is never closed.
func (l *lexer) open() { l.tokens[len(l.tokens)-1].isOpen = true }

func (l *lexer) advance(length int) {
	passed := l.rest[:length]
	l.rest = l.rest[length:]
	l.offset += length
	if last := strings.LastIndexByte(passed, '\n'); last >= 0 {
		l.line += strings.Count(passed, "\n")
		l.column = len(passed) - last
		return
	}
	l.column += length
}

// blockComment takes a comment in /* */, which nests.
func (l *lexer) blockComment() {
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
	if depth > 0 {
		l.open()
	}
}

// quoted takes a constant or a name in quotes, behind a prefix; a doubled quote stands for one. Only in E” constants does the backslash
// have a meaning.
func (l *lexer) quoted(prefix int, kind Kind, escapes bool) {
	quote := l.rest[prefix]
	for i := prefix + 1; i < len(l.rest); i++ {
		switch {
		case escapes && l.rest[i] == '\\':
			i++
		case l.rest[i] != quote:
		case i+1 < len(l.rest) && l.rest[i+1] == quote:
			i++
		default:
			l.emit(i+1, kind)
			return
		}
	}
	l.emit(len(l.rest), kind)
	l.open()
}

// word takes a word, or the constant or name in quotes whose prefix it is.
func (l *lexer) word() {
	length := l.length(func(c byte) bool { return isWord(c) || c == '$' })
	rest := l.rest[length:]
	switch prefix := strings.ToLower(l.rest[:length]); {
	case strings.HasPrefix(rest, "'") && (prefix == "e" || prefix == "b" || prefix == "x" || prefix == "n"):
		l.quoted(length, Text, prefix == "e")
	case prefix == "u" && strings.HasPrefix(rest, "&'"):
		l.quoted(length+1, Text, false)
	case prefix == "u" && strings.HasPrefix(rest, `&"`):
		l.quoted(length+1, Quoted, false)
	default:
		l.emit(length, Word)
	}
}

// dollar takes a parameter, or a dollar-quoted constant: code behind AS, DO and EXECUTE, a string anywhere else.
func (l *lexer) dollar() {
	tag := dollarQuote.FindString(l.rest)
	if tag == "" {
		digits := 1
		for digits < len(l.rest) && isDigit(l.rest[digits]) {
			digits++
		}
		kind := Number
		if digits == 1 {
			kind = Symbol
		}
		l.emit(digits, kind)
		return
	}
	length, inner := len(l.rest), l.rest[len(tag):]
	end := strings.Index(inner, tag)
	if end >= 0 {
		inner, length = inner[:end], end+2*len(tag)
	}
	inside := lexer{rest: inner, line: l.line, column: l.column + len(tag), readsBodies: true}
	if l.readsBodies && l.expectsCode() {
		l.emit(length, Body)
		l.tokens[len(l.tokens)-1].Inside = inside.run()
	} else {
		l.emit(length, Text)
	}
	if end < 0 {
		l.open()
	}
}

func (l *lexer) expectsCode() bool {
	var before []Token // the last three that are no comments, from the last on
	for i := len(l.tokens) - 1; i >= 0 && len(before) < 3; i-- {
		if l.tokens[i].Kind != Comment {
			before = append(before, l.tokens[i])
		}
	}
	if At(before, 0).Is("as", "do", "execute") {
		return true
	}
	// do language plpgsql $$
	return At(before, 1).Is("language") && At(before, 2).Is("do")
}

// symbol gives the length of the longest operator by the server's rules: it stops before a comment, and it ends in + or - only when it
// holds a character that no standard operator has. Pairs of PL/pgSQL and the places of format() are symbols of their own.
func (l *lexer) symbol() int {
	for _, pair := range []string{":=", "::", "=>", ".."} {
		if strings.HasPrefix(l.rest, pair) {
			return len(pair)
		}
	}
	if place := formatPattern.FindString(l.rest); place != "" {
		return len(place)
	}
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
	return max(len(found), 1)
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func isWord(c byte) bool { return isWordStart(c) || isDigit(c) }
