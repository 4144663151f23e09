package match

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Texts that can be read as a value of a type, as sql/flow/definitions/values.sql has it.
var (
	plainNumber      = regexp.MustCompile(`^[-+]?([0-9]{1,200}([.][0-9]{0,200})?|[.][0-9]{1,200})$`)
	exponentNumber   = regexp.MustCompile(`^[-+]?([0-9]{1,100}([.][0-9]{0,100})?|[.][0-9]{1,100})[eE][-+]?[0-9]{1,2}$`)
	canonicalNumber  = regexp.MustCompile(`^-?[0-9]{1,200}([.][0-9]{1,200})?$`)
	canonicalInteger = regexp.MustCompile(`^-?[0-9]{1,18}$`)
	canonicalTime    = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6}Z$`)
	offsetDay        = regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2})(Z|[-+][0-9]{2}:?[0-9]{2})$`)
	pastMicroseconds = regexp.MustCompile(`([.][0-9]{6})[0-9]{1,20}(Z|[-+])`)
	offsetTime       = regexp.MustCompile(`^([1-9][0-9]{3}-[01][0-9]-[0-3][0-9])[T ]` +
		`((?:[01][0-9]|2[0-3]):[0-5][0-9])(:[0-5][0-9](?:[.][0-9]{1,6})?)?` +
		`(Z|[-+](?:0[0-9]|1[0-4]):?[0-5][0-9])$`)
)

// blanks may stand around a value of each type but text: XML says nothing by them.
const blanks = " \t\r\n"

// Canonical gives the text by which a value of a property is compared. A value that cannot be read as the type is compared as it is.
func Canonical(value, of string) string {
	switch of {
	case "integer", "number":
		return number(value)
	case "boolean":
		switch strings.Trim(lower(value), blanks) {
		case "true", "1":
			return "true"
		case "false", "0":
			return "false"
		}
	case "timestamp":
		return timestamp(value)
	}
	return value
}

// lower makes ASCII letters small, and no others: none of those is in the words that are asked for.
func lower(value string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, value)
}

// number writes a number without exponent, superfluous zeros and plus.
func number(value string) string {
	trimmed := strings.Trim(value, blanks)
	if !plainNumber.MatchString(trimmed) && !exponentNumber.MatchString(trimmed) {
		return value
	}
	mantissa, exponent := strings.ToLower(trimmed), 0
	if before, after, ok := strings.Cut(mantissa, "e"); ok {
		mantissa = before
		exponent, _ = strconv.Atoi(after) // two digits
	}
	sign := ""
	if mantissa[0] == '-' || mantissa[0] == '+' {
		sign = strings.TrimPrefix(mantissa[:1], "+")
		mantissa = mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, point := whole+fraction, len(whole)+exponent
	if point < 0 {
		digits, point = strings.Repeat("0", -point)+digits, 0
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	whole = strings.TrimLeft(digits[:point], "0")
	fraction = strings.TrimRight(digits[point:], "0")
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		return sign + whole + "." + fraction
	}
	if whole == "0" {
		return whole
	}
	return sign + whole
}

// timestamp writes a time that has an offset in UTC, with six digits of a second. A day with an offset begins at its midnight.
func timestamp(value string) string {
	trimmed := offsetDay.ReplaceAllString(strings.Trim(value, blanks), "${1}T00:00:00$2")
	parts := offsetTime.FindStringSubmatch(pastMicroseconds.ReplaceAllString(trimmed, "$1$2"))
	if parts == nil {
		return value
	}
	seconds, offset := parts[3], strings.ReplaceAll(parts[4], ":", "")
	if seconds == "" {
		seconds = ":00"
	}
	if offset == "Z" {
		offset = "+0000"
	}
	at, err := time.Parse("2006-01-02T15:04:05-0700", parts[1]+"T"+parts[2]+seconds+offset)
	if err != nil {
		return value
	}
	canonical := at.UTC().Format("2006-01-02T15:04:05.000000Z")
	if !canonicalTime.MatchString(canonical) {
		return value
	}
	return canonical
}

// isSatisfied reports whether the canonical text of a property satisfies the predicate.
func (p *Predicate) isSatisfied(value string) bool {
	switch p.Operator {
	case "exists":
		return true
	case "=":
		return value == p.Value
	case "<>":
		return value != p.Value
	case "in":
		return slices.Contains(p.Values, value)
	case "prefix":
		return strings.HasPrefix(value, p.Value)
	case "&":
		return haveCommonBits(value, p.Value)
	}
	order, ok := compare(value, p.Value, p.Type)
	if !ok {
		return false
	}
	switch p.Operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	}
	return false
}

func haveCommonBits(value, operand string) bool {
	if !canonicalInteger.MatchString(value) || !canonicalInteger.MatchString(operand) {
		return false
	}
	a, _ := strconv.ParseInt(value, 10, 64)
	b, _ := strconv.ParseInt(operand, 10, 64)
	return a&b != 0
}

// compare compares canonical texts by the type of a property; false when one of them is not of the type.
func compare(value, operand, of string) (int, bool) {
	switch of {
	case "integer", "number":
		if !canonicalNumber.MatchString(value) || !canonicalNumber.MatchString(operand) {
			return 0, false
		}
		return compareNumbers(value, operand), true
	case "timestamp":
		if !canonicalTime.MatchString(value) || !canonicalTime.MatchString(operand) {
			return 0, false
		}
	}
	return cmp.Compare(value, operand), true
}

// compareNumbers compares two numbers in canonical form.
func compareNumbers(a, b string) int {
	a, aIsNegative := strings.CutPrefix(a, "-")
	b, bIsNegative := strings.CutPrefix(b, "-")
	switch {
	case aIsNegative && !bIsNegative:
		return -1
	case bIsNegative && !aIsNegative:
		return 1
	case aIsNegative:
		a, b = b, a
	}
	aWhole, aFraction, _ := strings.Cut(a, ".")
	bWhole, bFraction, _ := strings.Cut(b, ".")
	return cmp.Or(cmp.Compare(len(aWhole), len(bWhole)), cmp.Compare(aWhole, bWhole), cmp.Compare(aFraction, bFraction))
}
