package xsd

import (
	"errors"
	"regexp"
	"strings"
)

// patternEscapes has the escapes of XML Schema: their meaning inside of a class and outside.
var patternEscapes = map[byte][2]string{
	'd': {`\p{Nd}`, `\p{Nd}`},
	'D': {`\P{Nd}`, `\P{Nd}`},
	's': {` \t\n\r`, `[ \t\n\r]`},
	'S': {"", `[^ \t\n\r]`},
	'w': {`\p{L}\p{M}\p{N}\p{S}`, `[\p{L}\p{M}\p{N}\p{S}]`},
	'W': {`\p{P}\p{Z}\p{C}`, `[\p{P}\p{Z}\p{C}]`},
	'i': {`\p{L}_:`, `[\p{L}_:]`},
	'c': {`\p{L}\p{N}\p{M}._:\-`, `[\p{L}\p{N}\p{M}._:\-]`},
	'I': {"", `[^\p{L}_:]`},
	'C': {"", `[^\p{L}\p{N}\p{M}._:\-]`},
}

// compilePattern makes a pattern of XML Schema one of Go: it matches the whole value, and ^ and $ are characters.
func compilePattern(written string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`^(?:`)
	inClass := 0
	for i := 0; i < len(written); i++ {
		switch c := written[i]; {
		case c == '\\' && i+1 < len(written):
			i++
			translated, known := patternEscapes[written[i]]
			switch {
			case known && inClass > 0 && translated[0] == "":
				return nil, errors.New(`\` + string(written[i]) + " within a class")
			case known && inClass > 0:
				b.WriteString(translated[0])
			case known:
				b.WriteString(translated[1])
			default:
				b.WriteString(`\` + string(written[i]))
			}
		case c == '[':
			if inClass > 0 {
				return nil, errors.New("a class is subtracted")
			}
			inClass++
			b.WriteByte(c)
		case c == ']':
			inClass = 0
			b.WriteByte(c)
		case (c == '^' || c == '$') && inClass == 0:
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteString(`)$`)
	return regexp.Compile(b.String())
}
