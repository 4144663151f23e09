package submission_test

import (
	"strings"
)

func splitLines(text string) []string { return strings.Split(text, "\r\n") }

// cutHeader gives the name and the value of a header line that is no continuation.
func cutHeader(line string) (name, value string, ok bool) {
	if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
		return "", "", false
	}
	return strings.Cut(line, ":")
}
