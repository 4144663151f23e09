// Package token cuts a batch of T-SQL into tokens: the rules of constants, identifiers, comments and operators.
package token

// Kind tells constants, names, variables and operators apart.
type Kind uint8

// The kinds of tokens.
const (
	EOF            Kind = iota
	Word                // an identifier without quotes, or a keyword
	Bracketed           // [identifier]
	DoubleQuoted        // "identifier", or a string where QUOTED_IDENTIFIER is OFF
	Variable            // @name
	SystemVariable      // @@name
	Pseudo              // $action, $identity
	Integer             // 12
	Decimal             // 1.5
	Float               // 1e5
	Money               // $1.5
	String              // 'text'
	NationalString      // N'text'
	Binary              // 0x0A
	Operator            // everything else
)

// Token is one token of a batch. Comments and blanks are none.
type Token struct {
	Kind     Kind
	Reserved bool   // a Word that is a keyword and no name
	Text     string // of strings and quoted identifiers the value, of Binary the digits, of Money the number
	Upper    string // of Word, Pseudo and SystemVariable in upper case, of Operator the text
	Offset   int    // of the first byte, from 0
	End      int    // of the byte behind the last
	Line     int    // from 1
	Column   int    // in characters, from 1
	LastLine int    // in which the token ends
}

// Is says that the token is this keyword or operator, without quotes.
func (t *Token) Is(upper string) bool {
	return t.Upper == upper && (t.Kind == Word || t.Kind == Operator)
}

// IsName says that the token can stand for the name of an object.
func (t *Token) IsName() bool {
	return t.Kind == Word && !t.Reserved || t.Kind == Bracketed || t.Kind == DoubleQuoted
}

// Error is a text that has no tokens: an open string or comment, an identifier that is too long.
type Error struct {
	Number  int // of SQL Server: 102, 103, 105, 113
	Message string
	Offset  int
	Line    int
	Column  int
}

func (e *Error) Error() string { return e.Message }
