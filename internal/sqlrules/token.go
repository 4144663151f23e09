package sqlrules

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
}

// is reports whether the token is an unquoted word, or a symbol, that reads like one of these.
func (t Token) is(texts ...string) bool {
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

// isName reports whether the token can stand as a part of a name.
func (t Token) isName() bool { return t.Kind == Word || t.Kind == Quoted }

// name gives an identifier as the server would store it.
func (t Token) name() string {
	if t.Kind == Quoted {
		return strings.ReplaceAll(strings.Trim(t.Text, `"`), `""`, `"`)
	}
	return strings.ToLower(t.Text)
}

// at gives the token at an index, or an empty one outside of the list.
func at(tokens []Token, i int) Token {
	if i < 0 || i >= len(tokens) {
		return Token{}
	}
	return tokens[i]
}

// code leaves out comments.
func code(tokens []Token) []Token {
	out := make([]Token, 0, len(tokens))
	for _, t := range tokens {
		if t.Kind != Comment {
			out = append(out, t)
		}
	}
	return out
}

// runs gives the token list itself and that of every body inside it, outermost first, without comments.
func runs(tokens []Token) [][]Token {
	all := [][]Token{code(tokens)}
	for _, t := range tokens {
		if t.Kind == Body {
			all = append(all, runs(t.Inside)...)
		}
	}
	return all
}

// closing gives the index of the parenthesis that closes the one at index open, or len(tokens).
func closing(tokens []Token, open int) int {
	depth := 0
	for i := open; i < len(tokens); i++ {
		switch {
		case tokens[i].is("("):
			depth++
		case tokens[i].is(")"):
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return len(tokens)
}

// opening gives the index of the parenthesis that the one at index closed closes, or -1.
func opening(tokens []Token, closed int) int {
	depth := 0
	for i := closed; i >= 0; i-- {
		switch {
		case tokens[i].is(")"):
			depth++
		case tokens[i].is("("):
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// qualified reads a name of one or more parts and gives it with the index after it; an empty name when there is none.
func qualified(tokens []Token, i int) (parts []string, next int) {
	for at(tokens, i).isName() {
		parts = append(parts, tokens[i].name())
		if !at(tokens, i+1).is(".") || !at(tokens, i+2).isName() {
			return parts, i + 1
		}
		i += 2
	}
	return parts, i
}
