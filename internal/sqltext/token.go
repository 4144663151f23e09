package sqltext

import "strings"

// Kind reports what a token is.
type Kind int

// The kinds of tokens.
const (
	Word    Kind = iota // keyword or unquoted identifier
	Quoted              // "identifier"
	Text                // string constant in any spelling
	Body                // dollar-quoted code, see Token.Inside
	Number              // numeric constant or parameter such as $1
	Symbol              // operator or punctuation
	Comment             // from -- to the end of the line, or /* */
)

// A Token is one lexical unit of SQL or PL/pgSQL.
type Token struct {
	Kind   Kind
	Text   string  // as written
	Line   int     // of its first character, from 1
	Column int     // in bytes, from 1
	Inside []Token // what a Body holds

	offset int  // of its first character in the text
	isOpen bool // it is never closed
}

// Is reports whether the token is an unquoted word, or a symbol, that reads like one of these.
func (t Token) Is(texts ...string) bool {
	if t.Kind != Word && t.Kind != Symbol {
		return false
	}
	for _, text := range texts {
		if strings.EqualFold(t.Text, text) {
			return true
		}
	}
	return false
}

// IsName reports whether the token can stand as a part of a name.
func (t Token) IsName() bool { return t.Kind == Word || t.Kind == Quoted }

// Name gives an identifier as the server would store it.
func (t Token) Name() string {
	if t.Kind == Quoted {
		return strings.ReplaceAll(strings.Trim(t.Text, `"`), `""`, `"`)
	}
	return strings.ToLower(t.Text)
}

// At gives the token at an index, or an empty one outside of the list.
func At(tokens []Token, i int) Token {
	if i < 0 || i >= len(tokens) {
		return Token{}
	}
	return tokens[i]
}

// Code leaves out comments.
func Code(tokens []Token) []Token {
	out := make([]Token, 0, len(tokens))
	for _, t := range tokens {
		if t.Kind != Comment {
			out = append(out, t)
		}
	}
	return out
}

// Runs gives the token list itself and that of every body inside it, outermost first, without comments.
func Runs(tokens []Token) [][]Token {
	all := [][]Token{Code(tokens)}
	for _, t := range tokens {
		if t.Kind == Body {
			all = append(all, Runs(t.Inside)...)
		}
	}
	return all
}

// Closing gives the index of the parenthesis that closes the one at index open, or len(tokens).
func Closing(tokens []Token, open int) int {
	depth := 0
	for i := open; i < len(tokens); i++ {
		switch {
		case tokens[i].Is("("):
			depth++
		case tokens[i].Is(")"):
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return len(tokens)
}

// Opening gives the index of the parenthesis that the one at index closed closes, or -1.
func Opening(tokens []Token, closed int) int {
	depth := 0
	for i := closed; i >= 0; i-- {
		switch {
		case tokens[i].Is(")"):
			depth++
		case tokens[i].Is("("):
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// Qualified reads a name of one or more parts and gives it with the index after it; an empty name when there is none.
func Qualified(tokens []Token, i int) (parts []string, next int) {
	for At(tokens, i).IsName() {
		parts = append(parts, tokens[i].Name())
		if !At(tokens, i+1).Is(".") || !At(tokens, i+2).IsName() {
			return parts, i + 1
		}
		i += 2
	}
	return parts, i
}
