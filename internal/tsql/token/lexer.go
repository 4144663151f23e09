package token

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestName is the number of characters that an identifier may have.
const longestName = 128

// lexer walks over a batch once.
type lexer struct {
	text   string
	at     int
	line   int
	column int // of at, in characters
	tokens []Token
	err    *Error
}

// Split cuts a batch into its tokens; the last one is EOF. The error is nil or an *Error.
func Split(text string) ([]Token, error) {
	l := lexer{text: text, line: 1, column: 1, tokens: make([]Token, 0, len(text)/5+2)}
	for l.skipBlanks() {
		start := Token{Offset: l.at, Line: l.line, Column: l.column}
		l.scan(&start)
		if l.err != nil {
			return nil, l.err
		}
		start.End, start.LastLine = l.at, l.line
		l.tokens = append(l.tokens, start)
	}
	if l.err != nil {
		return nil, l.err
	}
	return append(l.tokens, Token{Kind: EOF, Offset: l.at, End: l.at, Line: l.line, Column: l.column, LastLine: l.line}), nil
}

// advance moves over so many bytes and counts lines and characters.
func (l *lexer) advance(bytes int) {
	for _, r := range l.text[l.at : l.at+bytes] {
		if r == '\n' {
			l.line++
			l.column = 1
		} else {
			l.column++
		}
	}
	l.at += bytes
}

func (l *lexer) fail(number int, at *Token, format string, arguments ...any) {
	l.err = &Error{Number: number, Message: fmt.Sprintf(format, arguments...), Offset: at.Offset, Line: at.Line, Column: at.Column}
}

// skipBlanks moves over blanks and comments; it says whether a token follows.
func (l *lexer) skipBlanks() bool {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case strings.HasPrefix(rest, "--"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			l.advance(end)
		case strings.HasPrefix(rest, "/*"):
			if !l.skipComment() {
				return false
			}
		default:
			r, size := utf8.DecodeRuneInString(rest)
			if !isBlank(r) {
				return true
			}
			l.advance(size)
		}
	}
	return false
}

// isBlank says that a character separates tokens: controls and the mark of Unicode files do so too.
func isBlank(r rune) bool {
	return r <= ' ' || r > 0x7f && (unicode.IsSpace(r) || r == 0xFEFF || r == 0x200B)
}

// skipComment moves over a comment with those nested in it.
func (l *lexer) skipComment() bool {
	start := Token{Offset: l.at, Line: l.line, Column: l.column}
	depth, end := 0, l.at
	for end < len(l.text) {
		switch rest := l.text[end:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			end += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			end += 2
		default:
			end++
		}
		if depth == 0 {
			l.advance(end - l.at)
			return true
		}
	}
	l.fail(113, &start, "Missing end comment mark '*/'.")
	return false
}

func (l *lexer) scan(t *Token) {
	rest := l.text[l.at:]
	first, size := utf8.DecodeRuneInString(rest)
	switch {
	case first == '\'':
		l.quoted(t, String, '\'', 0)
	case (first == 'N' || first == 'n') && strings.HasPrefix(rest[1:], "'"):
		l.quoted(t, NationalString, '\'', 1)
	case first == '"':
		l.quoted(t, DoubleQuoted, '"', 0)
	case first == '[':
		l.quoted(t, Bracketed, ']', 0)
	case first >= '0' && first <= '9', first == '.' && len(rest) > 1 && isDigit(rest[1]):
		l.number(t)
	case first == '@' || first == '_' || first == '#' || isLetter(first):
		l.word(t)
	case first == '$' && len(rest) > 1 && (rest[1] == '_' || isLetter(rune(rest[1]))):
		t.Kind = Pseudo
		l.name(t, 1)
	case first == '$', isCurrency(first):
		l.money(t, size)
	case first == utf8.RuneError && size <= 1:
		l.fail(102, t, "Incorrect syntax near '%s'.", "\uFFFD")
	default:
		l.operator(t, rest, size)
	}
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isLetter(r rune) bool {
	if r < 0x80 {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	return unicode.IsLetter(r)
}

// isCurrency says that a sign begins a constant of money. Page: data-types/money-and-smallmoney-transact-sql.
func isCurrency(r rune) bool { return r > 0x7f && unicode.Is(unicode.Sc, r) }

// quoted reads a string or an identifier in quotes; a doubled closing quote stands for one.
func (l *lexer) quoted(t *Token, kind Kind, closing byte, prefix int) {
	t.Kind = kind
	begin := l.at + prefix + 1
	end, doubled := begin, false
	for {
		length := strings.IndexByte(l.text[end:], closing)
		if length < 0 {
			start := *t
			l.fail(105, &start, "Unclosed quotation mark after the character string '%s'.", shorten(l.text[begin:]))
			return
		}
		end += length + 1
		if end >= len(l.text) || l.text[end] != closing {
			break
		}
		doubled = true
		end++
	}
	t.Text = l.text[begin : end-1]
	if doubled {
		one := string(closing)
		t.Text = strings.ReplaceAll(t.Text, one+one, one)
	}
	if t.Text == "" && kind == Bracketed {
		l.fail(1038, t, emptyName)
		return
	}
	if kind == String || kind == NationalString {
		t.Text = joinLines(t.Text)
	} else if utf8.RuneCountInString(t.Text) > longestName && kind == Bracketed {
		l.fail(103, t, "The identifier that starts with '%s' is too long. Maximum length is %d.", shorten(t.Text), longestName)
		return
	}
	l.advance(end - l.at)
}

// emptyName is the text of error 1038.
const emptyName = "An object or column name is missing or empty. For SELECT INTO statements, verify each column has a name. " +
	"For other statements, look for empty alias names. Aliases defined as \"\" or [] are not allowed. Change the alias to a valid name."

// shorten gives the part of a long text that messages show.
func shorten(text string) string {
	for i := range text {
		if i >= longestName {
			return text[:i]
		}
	}
	return text
}

// joinLines takes out a backslash before the end of a line, with that end.
// Page: language-elements/sql-server-utilities-statements-backslash.
func joinLines(text string) string {
	if !strings.Contains(text, "\\\n") && !strings.Contains(text, "\\\r\n") {
		return text
	}
	return strings.NewReplacer("\\\r\n", "", "\\\n", "").Replace(text)
}

// word reads an identifier, a keyword or a variable.
func (l *lexer) word(t *Token) {
	rest := l.text[l.at:]
	switch {
	case strings.HasPrefix(rest, "@@"):
		t.Kind = SystemVariable
		l.name(t, 2)
	case rest[0] == '@':
		t.Kind = Variable
		l.name(t, 1)
	default:
		t.Kind = Word
		l.name(t, 1)
		if keyword := words[t.Upper]; keyword != "" {
			t.Upper, t.Reserved = keyword, true
		}
	}
}

// name reads the characters of a name behind its first so many bytes.
func (l *lexer) name(t *Token, prefix int) {
	end := l.at + prefix
	if prefix == 1 {
		_, size := utf8.DecodeRuneInString(l.text[l.at:])
		end = l.at + size
	}
characters:
	for end < len(l.text) {
		b := l.text[end]
		switch {
		case b >= 0x80:
			r, size := utf8.DecodeRuneInString(l.text[end:])
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
				break characters
			}
			end += size
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', isDigit(b), b == '_', b == '@', b == '#', b == '$':
			end++
		default:
			break characters
		}
	}
	t.Text = l.text[l.at:end]
	t.Upper = strings.ToUpper(t.Text)
	if utf8.RuneCountInString(t.Text) > longestName {
		l.fail(103, t, "The identifier that starts with '%s' is too long. Maximum length is %d.", shorten(t.Text), longestName)
		return
	}
	l.advance(end - l.at)
}

// number reads a constant that begins with a digit or a point.
func (l *lexer) number(t *Token) {
	rest := l.text[l.at:]
	if len(rest) > 1 && rest[0] == '0' && (rest[1] == 'x' || rest[1] == 'X') {
		l.binary(t, rest)
		return
	}
	t.Kind = Integer
	end := digits(rest, 0)
	if end < len(rest) && rest[end] == '.' {
		t.Kind = Decimal
		end = digits(rest, end+1)
	}
	if end < len(rest) && (rest[end] == 'e' || rest[end] == 'E') {
		t.Kind = Float
		end++
		if end < len(rest) && (rest[end] == '+' || rest[end] == '-') {
			end++
		}
		end = digits(rest, end)
	}
	t.Text = rest[:end]
	l.advance(end)
}

func digits(text string, at int) int {
	for at < len(text) && isDigit(text[at]) {
		at++
	}
	return at
}

// binary reads 0x with its digits; a backslash before the end of a line continues it.
func (l *lexer) binary(t *Token, rest string) {
	t.Kind = Binary
	end := 2
	for end < len(rest) {
		b := rest[end]
		switch {
		case isDigit(b), b >= 'a' && b <= 'f', b >= 'A' && b <= 'F':
			end++
			continue
		case strings.HasPrefix(rest[end:], "\\\n"):
			end += 2
			continue
		case strings.HasPrefix(rest[end:], "\\\r\n"):
			end += 3
			continue
		}
		break
	}
	t.Text = joinLines(rest[2:end])
	l.advance(end)
}

// money reads a sign of a currency and the number behind it, which may be missing.
func (l *lexer) money(t *Token, sign int) {
	t.Kind = Money
	rest := l.text[l.at:]
	end := sign
	for end < len(rest) && (isDigit(rest[end]) || rest[end] == ',') {
		end++
	}
	for rest[end-1] == ',' {
		end--
	}
	if end < len(rest) && rest[end] == '.' {
		end = digits(rest, end+1)
	}
	t.Text = strings.ReplaceAll(rest[sign:end], ",", "")
	l.advance(end)
}

// longOperators have two or three characters. Blanks between the characters of a comparison are the parser's work.
var longOperators = []string{
	"||=", "<=", ">=", "<>", "!=", "!<", "!>", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "::", "||", "<<", ">>",
}

func (l *lexer) operator(t *Token, rest string, size int) {
	t.Kind = Operator
	t.Text = rest[:size]
	for _, long := range longOperators {
		if strings.HasPrefix(rest, long) {
			t.Text = long
			break
		}
	}
	if !strings.ContainsAny(t.Text[:1], "()+-*/%&|^~=<>!.,;:{}?\\") {
		l.fail(102, t, "Incorrect syntax near '%s'.", t.Text)
		return
	}
	t.Upper = t.Text
	l.advance(len(t.Text))
}
