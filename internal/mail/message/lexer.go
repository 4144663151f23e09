package message

import "strings"

// token is a piece of a structured field (RFC 5322 section 3.2): an atom, a quoted string, a comment, an address literal, or one of the
// characters that have a meaning, whose kind is the character.
type token struct {
	kind    byte
	text    string // without quotes, parentheses and backslashes; a literal has its brackets
	isApart bool   // a blank or a comment stands in front
}

const (
	atom          byte = 'a'
	quotedString  byte = '"'
	comment       byte = '('
	domainLiteral byte = '['
)

// specials are the characters that end an atom.
const specials = `()<>[]:;@\,."`

// lex takes a field apart. isWhole is false where a quoted string or a comment has no end: then quotes, or parentheses, have no meaning
// from there on. An encoded word is an atom, whatever characters it has.
func lex(value string) (tokens []token, isWhole bool) {
	isWhole, isApart := true, false
	hasQuotes, hasComments := true, true
	add := func(kind byte, text string) {
		tokens = append(tokens, token{kind: kind, text: text, isApart: isApart})
		isApart = false
	}
	for i := 0; i < len(value); {
		c := value[i]
		switch {
		case isBlank(c):
			isApart = true
			i++
		case c == '"' && hasQuotes:
			text, length := enclosed(value[i:], '"', '"')
			if hasQuotes = length > 0; !hasQuotes {
				isWhole = false
				continue
			}
			add(quotedString, text)
			i += length
		case c == '(' && hasComments:
			text, length := enclosed(value[i:], '(', ')')
			if hasComments = length > 0; !hasComments {
				isWhole = false
				continue
			}
			add(comment, text)
			i, isApart = i+length, true
		case c == '[':
			if end := strings.IndexAny(value[i+1:], "[]<>,\" \t"); end >= 0 && value[i+1+end] == ']' {
				add(domainLiteral, value[i:i+end+2])
				i += end + 2
				continue
			}
			add(c, "[")
			i++
		case c == '"': // it has no end
			i++
		case strings.IndexByte(specials, c) >= 0:
			add(c, string(c))
			i++
		default:
			length := atomLength(value[i:])
			add(atom, value[i:i+length])
			i += length
		}
	}
	return tokens, isWhole
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// atomLength gives how much of a text is an atom or an encoded word; at least 1.
func atomLength(text string) int {
	if strings.HasPrefix(text, "=?") {
		if _, length := wordAt(text); length > 0 && !strings.ContainsAny(text[:length], " \t\r\n") {
			return length
		}
	}
	for i := range len(text) {
		if isBlank(text[i]) || strings.IndexByte(specials, text[i]) >= 0 {
			return max(i, 1)
		}
	}
	return len(text)
}

// enclosed gives the text between a first and a last character, without the backslashes that quote, and the length of all; 0 where it has
// no end. Where the two characters differ, what is enclosed may enclose others.
func enclosed(text string, first, last byte) (inner string, length int) {
	var out strings.Builder
	depth := 1
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			c = text[i]
		case c == last:
			depth--
			if depth == 0 {
				return out.String(), i + 1
			}
		case c == first:
			depth++
		}
		out.WriteByte(c)
	}
	return "", 0
}

// isAny reports whether a token is of one of some kinds.
func isAny(tokens []token, kinds string) bool {
	for _, one := range tokens {
		if strings.IndexByte(kinds, one.kind) >= 0 {
			return true
		}
	}
	return false
}

// joined gives tokens as text, with a blank where blanks were.
func joined(tokens []token) string {
	var out strings.Builder
	for i, one := range tokens {
		if i > 0 && one.isApart {
			out.WriteByte(' ')
		}
		out.WriteString(one.text)
	}
	return out.String()
}
