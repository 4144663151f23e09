// Package csvfile reads CSV with a header line into XML or JSON, and writes it. Quotes are those of encoding/csv.
package csvfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ElementName makes a name of a column one of XML: a character that cannot stand there becomes _xHHHH_.
func ElementName(column string) string {
	var b strings.Builder
	for i, r := range column {
		isStart := r == '_' || unicode.IsLetter(r)
		if isStart && (r != '_' || !escapedAt(column[i:])) || i > 0 && (unicode.IsDigit(r) || r == '-' || r == '.') {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "_x%04X_", r)
		}
	}
	return b.String()
}

var escapedCharacter = regexp.MustCompile(`_x([0-9A-F]{4,6})_`)

func escapedAt(text string) bool {
	at := escapedCharacter.FindStringIndex(text)
	return len(at) > 0 && at[0] == 0
}

// columnName is the column of an element's name.
func columnName(element string) string {
	return escapedCharacter.ReplaceAllStringFunc(element, func(found string) string {
		n, err := strconv.ParseUint(found[2:len(found)-1], 16, 32)
		if err != nil || n > utf8.MaxRune {
			return found
		}
		return string(rune(n))
	})
}
