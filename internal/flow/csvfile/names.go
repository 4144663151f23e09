// Package csvfile reads CSV with a header line into XML or JSON, and writes it. Quotes are those of encoding/csv.
package csvfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// checkDelimiter refuses a delimiter that could not be told from what stands between delimiters.
func checkDelimiter(delimiter rune) error {
	if delimiter == '"' || delimiter == '\r' || delimiter == '\n' || delimiter == utf8.RuneError || !utf8.ValidRune(delimiter) {
		return &fault.Fault{
			Message: fmt.Sprintf("%q delimits no values", delimiter), Expected: "one character but a quote or a line end",
			Remedy: "name the delimiter of the file, such as ; or a tab",
		}
	}
	return nil
}

// ElementName makes a name of a column one of XML: a character that cannot stand there becomes _xHHHH_.
func ElementName(column string) string {
	var b strings.Builder
	for i, r := range column {
		if xmlscan.InName(r, i == 0) && (r != '_' || !escapedAt(column[i:])) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "_x%04X_", r)
		}
	}
	return b.String()
}

var escapedCharacter = regexp.MustCompile(`_x([0-9A-F]{4,6})_`)

// beginsEscape finds the beginning of an escaped character, whose last _ may be that of the next one.
var beginsEscape = regexp.MustCompile(`^_x[0-9A-F]{4}`)

func escapedAt(text string) bool { return beginsEscape.MatchString(text) }

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
