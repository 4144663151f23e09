package function

import (
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// descriptions are the functions that give a number about a text.
var descriptions = []Function{
	{Name: "ASCII", Parameters: "t", Result: always(intType), Call: ascii},
	{Name: "UNICODE", Parameters: "t", Result: always(intType), Call: unicodeOf},
	{Name: "LEN", Parameters: "x", Result: lengthType, Call: length},
	{Name: "DATALENGTH", Parameters: "a", Result: lengthType, Call: dataLength},
	{Name: "CHARINDEX", Parameters: "tt?b", Result: secondLengthType, Call: charIndex},
	{Name: "PATINDEX", Parameters: "tt", Result: secondLengthType, Call: patIndex},
	{Name: "SOUNDEX", Parameters: "t", Result: always(value.Sized(value.VarChar, 4)), Call: mapped(soundex)},
	{Name: "DIFFERENCE", Parameters: "tt", Result: always(intType), Call: difference},
	{Name: "ISNUMERIC", Parameters: "a", TakesNull: true, Result: always(intType), Call: isNumeric},
}

func number(result value.Type, n int) (value.Value, *fault.Error) {
	return value.Integer(result.Kind, int64(n)), nil
}

func ascii(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	bytes := value.EncodeCodePage(value.CutUnits(a[0].Raw(), 0, 1))
	if bytes == "" {
		return value.Null(result), nil
	}
	return number(result, int(bytes[0]))
}

func unicodeOf(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	units := value.UTF16(value.CutUnits(a[0].Raw(), 0, 1))
	if len(units) == 0 {
		return value.Null(result), nil
	}
	return number(result, int(units[0]))
}

// lengthType is bigint for (max) and int for all else.
func lengthType(arguments []Argument) (value.Type, *fault.Error) {
	if arguments[0].Type.Length == value.Max {
		return bigintType, nil
	}
	return intType, nil
}

func secondLengthType(arguments []Argument) (value.Type, *fault.Error) {
	return lengthType(arguments[1:])
}

func length(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	if a[0].Kind().IsBinary() {
		return number(result, len(a[0].Raw()))
	}
	return number(result, value.UnitsOf(strings.TrimRight(a[0].Raw(), " ")))
}

func dataLength(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	return number(result, StoredBytes(a[0].Inside()))
}

// StoredBytes gives the bytes that a value takes, as DATALENGTH counts them.
func StoredBytes(v value.Value) int {
	switch k := v.Kind(); k {
	case value.Decimal:
		switch p := v.Type().Precision; {
		case p <= 9:
			return 5
		case p <= 19:
			return 9
		case p <= 28:
			return 13
		}
		return 17
	case value.Time, value.DateTime2, value.DateTimeOffset, value.XML:
		bytes, _ := value.BytesIn(v)
		if k == value.XML {
			return len(bytes)
		}
		return len(bytes) - 1
	default:
		bytes, _ := value.BytesIn(v)
		return len(bytes)
	}
}

func charIndex(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	sought, text := []rune(a[0].Raw()), a[1].Raw()
	from := 1
	if len(a) > 2 {
		from = int(max(a[2].Int64(), 1))
	}
	units := value.UnitsOf(text)
	if len(sought) == 0 || from > units {
		return number(result, 0)
	}
	letters := []rune(value.CutUnits(text, from-1, units))
	for i := range letters {
		if startsWith(letters[i:], sought, c.IsExact) {
			return number(result, from)
		}
		from++
		if letters[i] > 0xFFFF && utf8.ValidRune(letters[i]) {
			from++
		}
	}
	return number(result, 0)
}

func patIndex(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	return number(result, value.CompilePattern(a[0].Raw(), 0).ByCase(c.IsExact).Index(a[1].Raw()))
}

// soundexDigits has the digit of each letter from A on; vowels have 0, and H, W and Y do not separate equal digits.
const soundexDigits = "01230120022455012623010202"

func soundex(text string) string {
	text = strings.ToUpper(text)
	if text == "" || text[0] < 'A' || text[0] > 'Z' {
		return "0000"
	}
	code := []byte{text[0]}
	last := soundexDigits[text[0]-'A']
	for i := 1; i < len(text) && len(code) < 4; i++ {
		c := text[i]
		if c < 'A' || c > 'Z' {
			break
		}
		digit := soundexDigits[c-'A']
		if digit != '0' && digit != last {
			code = append(code, digit)
		}
		if c != 'H' && c != 'W' {
			last = digit
		}
	}
	return (string(code) + "000")[:4]
}

func difference(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	first, second := soundex(a[0].Raw()), soundex(a[1].Raw())
	same := 0
	for i := range 4 {
		if first[i] == second[i] {
			same++
		}
	}
	return number(result, same)
}

// isNumeric reports whether text can become a number of any kind, money included.
func isNumeric(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	v := a[0].Inside()
	switch k := v.Kind(); {
	case v.IsNull():
		return number(result, 0)
	case k.IsNumber():
		return number(result, 1)
	case k.IsCharacter():
		if strings.Trim(v.Raw(), " ") == "" {
			return number(result, 0)
		}
		for _, to := range []value.Type{value.Of(value.Money), floatType} {
			if _, err := c.Settings.Cast(v, to); err == nil {
				return number(result, 1)
			}
		}
	}
	return number(result, 0)
}
