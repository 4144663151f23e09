package function

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/apd/v3"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// formats has FORMAT, with the culture en-US alone.
var formats = []Function{
	{Name: "FORMAT", Parameters: "at?t", Result: always(value.Sized(value.NVarChar, value.MaxUnicode)), Call: format},
}

// format is FORMAT: a number or a date by a format of .NET. A format that is none gives NULL; another culture is error 9818.
func format(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	if len(a) > 2 && !strings.EqualFold(a[2].Raw(), "en-US") {
		return value.Value{}, fault.New(9818, a[2].Raw())
	}
	v, pattern := a[0].Inside(), a[1].Raw()
	var text string
	var ok bool
	switch k := v.Kind(); {
	case k == value.Time:
		text, ok = formatSpan(v, pattern)
	case k.IsTemporal():
		text, ok = formatDate(v, pattern)
	case k.IsNumber() && k != value.Bit:
		text, ok = formatNumber(v, pattern)
	default:
		return value.Value{}, fault.New(8116, k, 1, "format")
	}
	if !ok {
		return value.Null(result), nil
	}
	return value.TextOf(result, text), nil
}

// standardDates are the patterns that one letter stands for.
var standardDates = map[string]string{
	"d": "M/d/yyyy", "D": "dddd, MMMM d, yyyy", "t": "h:mm tt", "T": "h:mm:ss tt", "f": "dddd, MMMM d, yyyy h:mm tt",
	"F": "dddd, MMMM d, yyyy h:mm:ss tt", "g": "M/d/yyyy h:mm tt", "G": "M/d/yyyy h:mm:ss tt", "m": "MMMM d", "M": "MMMM d",
	"y": "MMMM yyyy", "Y": "MMMM yyyy", "s": "yyyy-MM-ddTHH:mm:ss", "u": "yyyy-MM-dd HH:mm:ssZ", "o": "yyyy-MM-ddTHH:mm:ss.fffffff",
	"O": "yyyy-MM-ddTHH:mm:ss.fffffff", "r": "ddd, dd MMM yyyy HH:mm:ss 'GMT'", "R": "ddd, dd MMM yyyy HH:mm:ss 'GMT'",
}

func formatDate(v value.Value, pattern string) (string, bool) {
	if len(pattern) == 1 {
		standard, known := standardDates[pattern]
		if !known {
			return "", false
		}
		pattern = standard
	} else if len(pattern) == 2 && pattern[0] == '%' {
		pattern = pattern[1:]
	}
	t := v.ShownMoment().Time()
	return eachPart(pattern, func(letter byte, count int) (string, bool) { return partOfDate(t, letter, count), true })
}

// eachPart goes through a pattern: runs of letters are parts, text in quotes and behind a backslash stays.
func eachPart(pattern string, part func(letter byte, count int) (string, bool)) (string, bool) {
	var b strings.Builder
	for at := 0; at < len(pattern); {
		switch c := pattern[at]; c {
		case '\\':
			if at+1 >= len(pattern) {
				return "", false
			}
			b.WriteByte(pattern[at+1])
			at += 2
		case '\'', '"':
			end := strings.IndexByte(pattern[at+1:], c)
			if end < 0 {
				return "", false
			}
			b.WriteString(pattern[at+1 : at+1+end])
			at += end + 2
		default:
			count := 1
			for at+count < len(pattern) && pattern[at+count] == c {
				count++
			}
			text, ok := part(c, count)
			if !ok {
				return "", false
			}
			b.WriteString(text)
			at += count
		}
	}
	return b.String(), true
}

// padded writes a number with at least as many digits.
func padded(n, digits int) string { return fmt.Sprintf("%0*d", digits, n) }

func partOfDate(t time.Time, letter byte, count int) string {
	switch letter {
	case 'd':
		return [...]string{strconv.Itoa(t.Day()), padded(t.Day(), 2), t.Format("Mon"), t.Format("Monday")}[min(count, 4)-1]
	case 'M':
		return [...]string{strconv.Itoa(int(t.Month())), padded(int(t.Month()), 2), t.Format("Jan"), t.Format("January")}[min(count, 4)-1]
	case 'y':
		if count <= 2 {
			return padded(t.Year()%100, count)
		}
		return padded(t.Year(), count)
	case 'h':
		return padded((t.Hour()+11)%12+1, min(count, 2))
	case 'H':
		return padded(t.Hour(), min(count, 2))
	case 'm':
		return padded(t.Minute(), min(count, 2))
	case 's':
		return padded(t.Second(), min(count, 2))
	case 'f':
		return padded(t.Nanosecond()/100, 7)[:min(count, 7)]
	case 'F':
		return strings.TrimRight(padded(t.Nanosecond()/100, 7)[:min(count, 7)], "0")
	case 't':
		return t.Format("PM")[:min(count, 2)]
	case 'z':
		_, offset := t.Zone()
		sign := "+"
		if offset < 0 {
			sign, offset = "-", -offset
		}
		if count > 2 {
			return sign + padded(offset/3600, 2) + ":" + padded(offset/60%60, 2)
		}
		return sign + padded(offset/3600, count)
	case 'K':
		return strings.Repeat(t.Format("-07:00"), count)
	case 'g':
		return "A.D."
	default:
		return strings.Repeat(string(letter), count)
	}
}

// formatSpan writes a time, which is a span in .NET: points and colons must be quoted.
func formatSpan(v value.Value, pattern string) (string, bool) {
	t := v.ShownMoment().Time()
	switch pattern {
	case "c", "t", "T":
		text := t.Format("15:04:05")
		if t.Nanosecond() > 0 {
			text += "." + padded(t.Nanosecond()/100, 7)
		}
		return text, true
	case "g":
		text := strconv.Itoa(t.Hour()) + t.Format(":04:05")
		if t.Nanosecond() > 0 {
			text += "." + strings.TrimRight(padded(t.Nanosecond()/100, 7), "0")
		}
		return text, true
	case "G":
		return "0:" + t.Format("15:04:05") + "." + padded(t.Nanosecond()/100, 7), true
	}
	return eachPart(strings.TrimPrefix(pattern, "%"), func(letter byte, count int) (string, bool) {
		switch {
		case letter == 'd' && count <= 8:
			return padded(0, count), true
		case letter == 'h' && count <= 2:
			return padded(t.Hour(), count), true
		case (letter == 'm' || letter == 's') && count <= 2, (letter == 'f' || letter == 'F') && count <= 7:
			return partOfDate(t, letter, count), true
		}
		return "", false
	})
}

// exactly gives a number as a decimal.
func exactly(v value.Value) (*apd.Decimal, bool) {
	switch k := v.Kind(); {
	case k.IsInteger():
		return apd.New(v.Int64(), 0), true
	case k.IsMoney():
		return apd.New(v.Int64(), -4), true
	case k == value.Decimal:
		return new(apd.Decimal).Set(v.Decimal()), true
	default:
		d, err := new(apd.Decimal).SetFloat64(v.Float64())
		return d, err == nil
	}
}

// digitsOf gives the digits of a number before and behind the point, rounded half away from zero, and whether it is negative.
func digitsOf(d *apd.Decimal, digits int) (whole, fraction string, negative bool) {
	c := apd.BaseContext.WithPrecision(400)
	c.Rounding = apd.RoundHalfUp
	q := new(apd.Decimal)
	if _, err := c.Quantize(q, d, int32(-digits)); err != nil {
		return "0", strings.Repeat("0", digits), false
	}
	text := strings.TrimPrefix(q.Text('f'), "-")
	whole, fraction, _ = strings.Cut(text, ".")
	return whole, fraction, q.Negative && !q.IsZero()
}

// grouped puts commas between thousands.
func grouped(whole string) string {
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	return whole
}

func formatNumber(v value.Value, pattern string) (string, bool) {
	d, ok := exactly(v)
	if !ok {
		return "", false
	}
	letter, digits := standardNumber(pattern)
	if letter == 0 {
		return formatCustom(d, pattern)
	}
	return formatStandard(v, d, letter, digits)
}

// standardNumber reads a letter with a number of digits, -1 without one; 0 for a pattern of another kind.
func standardNumber(pattern string) (letter byte, digits int) {
	if pattern == "" {
		return 'G', -1
	}
	if len(pattern) > 3 || !strings.ContainsAny(pattern[:1], "CDEFGNPRXcdefgnprx") {
		return 0, 0
	}
	if len(pattern) == 1 {
		return pattern[0], -1
	}
	n, err := strconv.Atoi(pattern[1:])
	if err != nil || n < 0 {
		return 0, 0
	}
	return pattern[0], n
}

func formatStandard(v value.Value, d *apd.Decimal, letter byte, digits int) (string, bool) {
	isInteger := v.Kind().IsInteger()
	places := digits
	if places < 0 {
		places = 2
	}
	switch letter {
	case 'C', 'c':
		whole, fraction, negative := digitsOf(d, places)
		text := "$" + withFraction(grouped(whole), fraction)
		if negative {
			text = "(" + text + ")"
		}
		return text, true
	case 'D', 'd':
		if !isInteger {
			return "", false
		}
		whole, _, negative := digitsOf(d, 0)
		return withSign(negative, strings.Repeat("0", max(0, digits-len(whole)))+whole), true
	case 'F', 'f':
		whole, fraction, negative := digitsOf(d, places)
		return withSign(negative, withFraction(whole, fraction)), true
	case 'N', 'n':
		whole, fraction, negative := digitsOf(d, places)
		return withSign(negative, withFraction(grouped(whole), fraction)), true
	case 'P', 'p':
		d.Exponent += 2
		whole, fraction, negative := digitsOf(d, places)
		return withSign(negative, withFraction(grouped(whole), fraction)+" %"), true
	case 'X', 'x':
		if !isInteger {
			return "", false
		}
		return formatHexadecimal(v, letter, digits), true
	case 'E', 'e':
		return formatExponent(d, letter, digits)
	default: // G and R
		if digits > 0 {
			return "", false
		}
		if v.Kind().IsApproximate() {
			return strings.ToUpper(strconv.FormatFloat(v.Float64(), 'g', 15, 64)), true
		}
		return d.Text('f'), true
	}
}

func withFraction(whole, fraction string) string {
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

func withSign(isNegative bool, text string) string {
	if isNegative {
		return "-" + text
	}
	return text
}

// formatHexadecimal writes an integer in 32 bits, or in 64 where its type has as many.
func formatHexadecimal(v value.Value, letter byte, digits int) string {
	n := uint64(v.Int64())
	if v.Kind() != value.BigInt {
		n = uint64(uint32(v.Int64()))
	}
	text := strconv.FormatUint(n, 16)
	if letter == 'X' {
		text = strings.ToUpper(text)
	}
	return strings.Repeat("0", max(0, digits-len(text))) + text
}

// formatExponent writes a number with one digit before the point, and a power of ten of three digits.
func formatExponent(d *apd.Decimal, letter byte, digits int) (string, bool) {
	if digits < 0 {
		digits = 6
	}
	f, err := d.Float64()
	if err != nil {
		return "", false
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', digits, 64), "e")
	n, err := strconv.Atoi(exponent[1:])
	return mantissa + string(letter) + exponent[:1] + padded(n, 3), err == nil
}
