package authenticity

import (
	"strings"

	"github.com/parley-broker/parley/internal/mail/message"
)

// resultsField is the name of the field.
const resultsField = "Authentication-Results"

// WithoutResults takes out of a header the results that claim to be ours: nobody else may write under our name (RFC 8601, section 5).
func WithoutResults(h message.Header, identity string) message.Header {
	return h.Without(func(f message.Field) bool {
		if !f.Is(resultsField) {
			return false
		}
		claimed, _, _ := strings.Cut(withoutComments(f.Value()), ";")
		words := strings.FieldsFunc(claimed, func(r rune) bool { return r <= ' ' || r == 0x7f })
		return len(words) == 0 || strings.EqualFold(strings.Trim(words[0], `"`), identity)
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
