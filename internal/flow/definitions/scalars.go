package definitions

import (
	"regexp"
	"strings"
	"sync"
)

var (
	// number is a number as JSON writes it. One with a longer exponent is none that a setting could have.
	// To compile it takes milliseconds, and most commands of the program never need it.
	number = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^-?(0|[1-9][0-9]{0,999})(\.[0-9]{1,999})?([eE][-+]?[0-9]{1,3})?$`)
	})
	// otherNumber is a number to some version of YAML, and not to JSON.
	otherNumber = regexp.MustCompile(`^[-+]?(` +
		`0[0-9_]+|0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|` +
		`[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|\.[0-9_]+([eE][-+]?[0-9]+)?|` +
		`\.(inf|Inf|INF)|\.(nan|NaN|NAN)|` +
		`[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?` +
		`)$`)
)

// ambiguous are booleans to some programs that read YAML, and texts to others.
var ambiguous = map[string]bool{"yes": true, "no": true, "on": true, "off": true, "y": true, "n": true}

// readPlain gives the value that a text without quotes stands for. A remedy refuses a text that versions of YAML read differently: it has
// to be written so that all read the same.
func readPlain(text string) (k kind, canonical, remedy string) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return isNull, "", ""
	case "true", "True", "TRUE":
		return isBoolean, "true", ""
	case "false", "False", "FALSE":
		return isBoolean, "false", ""
	}
	switch {
	case number().MatchString(text):
		return isNumber, text, ""
	case ambiguous[strings.ToLower(text)]:
		return isText, text, "write true or false, or put it into quotes where it is a text"
	case otherNumber.MatchString(text):
		return isText, text, "write a decimal number without zeros in front, or put it into quotes where it is a text"
	}
	return isText, text, ""
}
