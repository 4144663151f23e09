package message

import (
	"slices"
	"strings"
)

// ResultsField is the field in which a server writes what it has verified of the origin of a message.
const ResultsField = "Authentication-Results"

// WithoutResults takes out of a header the results that claim to be ours: nobody else may write under one of our names, by whatever way a
// message comes (RFC 8601, section 5).
func (h Header) WithoutResults(names ...string) Header {
	return h.Without(func(f Field) bool {
		if !f.Is(ResultsField) {
			return false
		}
		claimed, _, _ := strings.Cut(withoutComments(f.Value()), ";")
		words := strings.FieldsFunc(claimed, func(r rune) bool { return r <= ' ' || r == 0x7f })
		return len(words) == 0 || slices.ContainsFunc(names, func(name string) bool {
			return strings.EqualFold(strings.Trim(words[0], `"`), name)
		})
	})
}

// withoutComments takes comments in parentheses out of a value.
func withoutComments(value string) string {
	var out strings.Builder
	depth := 0
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\' && i+1 < len(value):
			i++
			if depth == 0 {
				out.WriteByte(value[i])
			}
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth == 0:
			out.WriteByte(c)
		}
	}
	return out.String()
}
