package biztalk

import (
	"bytes"
	"io"
	"strings"
	"unicode"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
)

// designerEnd ends the part of a file that designers read; the text of the orchestration stands behind it.
const designerEnd = "#endif // __DESIGNER_DATA"

// isOrchestration reports whether a file is one of an orchestration.
func isOrchestration(source Source) bool {
	return strings.HasSuffix(strings.ToLower(source.Name), ".odx")
}

// A lexeme is a name with its dots, a text, a number or a sign.
type lexeme struct {
	kind rune // n, t, 0, or the sign itself
	text string
	line int64
}

// A statement is its words up to a semicolon, or those before a block with the block.
type statement struct {
	words    []lexeme
	hasBlock bool
	block    []statement
}

func (s statement) line() int64 {
	if len(s.words) > 0 {
		return s.words[0].line
	}
	return 0
}

func (s statement) begins(words ...string) bool {
	for i, word := range words {
		if i >= len(s.words) || s.words[i].text != word {
			return false
		}
	}
	return true
}

// String writes a statement as people read it.
func (s statement) String() string { return written(s.words) }

func written(words []lexeme) string {
	var b strings.Builder
	for i, w := range words {
		isWord := func(l lexeme) bool { return l.kind == 'n' || l.kind == '0' || l.kind == 't' }
		if i > 0 {
			before := words[i-1]
			if isWord(w) && isWord(before) || strings.ContainsAny(w.text, "=+") || strings.ContainsAny(before.text, "=+,") {
				b.WriteByte(' ')
			}
		}
		if w.kind == 't' {
			b.WriteString(`"` + w.text + `"`)
			continue
		}
		b.WriteString(w.text)
	}
	return b.String()
}

// readOrchestration reads the text of an orchestration.
func readOrchestration(source Source) ([]statement, error) {
	decoded, err := text.Open(bytes.NewReader(source.Body), "", false)
	if err != nil {
		return nil, fault.InFile(err, source.Name)
	}
	body, err := io.ReadAll(decoded)
	if err != nil {
		return nil, fault.InFile(err, source.Name)
	}
	whole := string(body)
	line := int64(1)
	if at := strings.LastIndex(whole, designerEnd); at >= 0 {
		line += int64(strings.Count(whole[:at], "\n"))
		whole = whole[at:]
	}
	words := lexemes(whole, line)
	statements, rest := block(words, 0)
	if len(rest) > 0 || len(statements) == 0 {
		place := fault.Place{Line: line, Column: 1}
		if len(rest) > 0 {
			place.Line = rest[0].line
		}
		return nil, &fault.Fault{
			Message: "this is no text of an orchestration", File: source.Name, Place: place, Expected: "module NAME { service NAME { ... } }",
			Remedy: "name an .odx file as the designer writes it",
		}
	}
	return statements, nil
}

func lexemes(whole string, line int64) []lexeme {
	var all []lexeme
	runes := []rune(whole)
	for i := 0; i < len(runes); {
		r := runes[i]
		begin, at := i, line
		next := func() rune {
			if i+1 < len(runes) {
				return runes[i+1]
			}
			return 0
		}
		switch {
		case r == '\n':
			line++
			i++
		case unicode.IsSpace(r) || r == '\uFEFF':
			i++
		case r == '#' || r == '/' && next() == '/':
			i = behindLine(runes, i)
		case r == '/' && next() == '*':
			i = behindComment(runes, i)
			line += int64(strings.Count(string(runes[begin:i]), "\n"))
		case r == '"' || r == '@' && next() == '"':
			var value string
			value, i = quoted(runes, i)
			line += int64(strings.Count(value, "\n"))
			all = append(all, lexeme{'t', value, at})
		case unicode.IsDigit(r):
			i = behindNumber(runes, i)
			all = append(all, lexeme{'0', strings.TrimRight(string(runes[begin:i]), "fFdDmMlLuU"), at})
		case isName(r):
			i = behindName(runes, i)
			all = append(all, lexeme{'n', string(runes[begin:i]), at})
		default:
			sign := string(r)
			if strings.ContainsRune("=!<>", r) && next() == '=' || (r == '&' || r == '|') && next() == r {
				sign = string(runes[i : i+2])
			}
			i += len([]rune(sign))
			all = append(all, lexeme{r, sign, at})
		}
	}
	return all
}

func isName(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func behindLine(runes []rune, i int) int {
	for i < len(runes) && runes[i] != '\n' {
		i++
	}
	return i
}

func behindComment(runes []rune, i int) int {
	for i += 2; i < len(runes); i++ {
		if runes[i-1] == '*' && runes[i] == '/' {
			return i + 1
		}
	}
	return len(runes)
}

func behindNumber(runes []rune, i int) int {
	for i < len(runes) && (isName(runes[i]) || runes[i] == '.') {
		i++
	}
	return i
}

func behindName(runes []rune, i int) int {
	for i < len(runes) && (isName(runes[i]) || runes[i] == '.' && i+1 < len(runes) && isName(runes[i+1])) {
		i++
	}
	return i
}

// quoted reads a text, and gives where it ends.
func quoted(runes []rune, i int) (value string, behind int) {
	var b strings.Builder
	isVerbatim := runes[i] == '@'
	if isVerbatim {
		i++
	}
	for i++; i < len(runes); i++ {
		switch {
		case isVerbatim && runes[i] == '"' && i+1 < len(runes) && runes[i+1] == '"':
			b.WriteByte('"')
			i++
		case runes[i] == '"':
			return b.String(), i + 1
		case !isVerbatim && runes[i] == '\\' && i+1 < len(runes):
			i++
			if at := strings.IndexRune(`nrt0`, runes[i]); at >= 0 {
				b.WriteByte("\n\r\t\x00"[at])
				continue
			}
			b.WriteRune(runes[i])
		default:
			b.WriteRune(runes[i])
		}
	}
	return b.String(), i
}

// depthOfBlocks bounds how deep blocks are in each other.
const depthOfBlocks = 200

// block reads statements up to the end of their block.
func block(words []lexeme, depth int) (statements []statement, rest []lexeme) {
	for len(words) > 0 && words[0].kind != '}' {
		var s statement
		parentheses := 0
		for len(words) > 0 {
			w := words[0]
			if w.kind == '[' && parentheses == 0 && len(s.words) == 0 { // an attribute
				words = behindBrackets(words)
				continue
			}
			if parentheses == 0 && (w.kind == ';' || w.kind == '{' || w.kind == '}') {
				break
			}
			switch w.kind {
			case '(':
				parentheses++
			case ')':
				parentheses--
			}
			s.words = append(s.words, w)
			words = words[1:]
		}
		switch {
		case len(words) == 0:
		case words[0].kind == '{' && depth < depthOfBlocks:
			s.hasBlock = true
			s.block, words = block(words[1:], depth+1)
			if len(words) > 0 {
				words = words[1:]
			}
		case words[0].kind == ';' || words[0].kind == '{':
			words = words[1:]
		}
		if len(s.words) > 0 || s.hasBlock {
			statements = append(statements, s)
		}
	}
	return statements, words
}

func behindBrackets(words []lexeme) []lexeme {
	depth := 0
	for i, w := range words {
		switch w.kind {
		case '[':
			depth++
		case ']':
			depth--
			if depth == 0 {
				return words[i+1:]
			}
		}
	}
	return nil
}
