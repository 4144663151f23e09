package function

import (
	"math"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

var (
	intType    = value.Of(value.Int)
	bigintType = value.Of(value.BigInt)
	floatType  = value.Of(value.Float)
)

// texts are the functions that make text.
var texts = []Function{
	{Name: "CHAR", Parameters: "i", Result: always(value.Sized(value.Char, 1)), Call: charOf},
	{Name: "NCHAR", Parameters: "i", Result: always(value.Sized(value.NChar, 1)), Call: ncharOf},
	{Name: "CONCAT", Parameters: "aa*", TakesNull: true, Result: concatType, Call: concat},
	{Name: "CONCAT_WS", Parameters: "taa*", TakesNull: true, Result: concatType, Call: concatWith},
	{Name: "LOWER", Parameters: "t", Result: textLike, Call: mapped(strings.ToLower)},
	{Name: "UPPER", Parameters: "t", Result: textLike, Call: mapped(strings.ToUpper)},
	{Name: "REVERSE", Parameters: "t", Result: textLike, Call: mapped(reverse)},
	{Name: "QUOTENAME", Parameters: "t?t", Result: always(value.Sized(value.NVarChar, 258)), Call: quoteName},
	{Name: "REPLACE", Parameters: "ttt", Result: replaceType, Call: replace},
	{Name: "REPLICATE", Parameters: "ti", Result: longestText, Call: replicate},
	{Name: "SPACE", Parameters: "i", Result: always(value.Sized(value.VarChar, value.MaxBytes)), Call: space},
	{Name: "STR", Parameters: "f?ii", Result: strType, Call: str},
	{Name: "STUFF", Parameters: "xiit", TakesNull: true, Result: stuffType, Call: stuff},
	{Name: "TRANSLATE", Parameters: "ttt", Result: textLike, Call: translate},
	{Name: "STRING_ESCAPE", Parameters: "tt", Result: always(value.Type{Kind: value.NVarChar, Length: value.Max}), Call: escapeJSON},
}

func mapped(change func(string) string) func(*Context, value.Type, []value.Value) (value.Value, *fault.Error) {
	return func(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
		return value.TextOf(result, change(a[0].Raw())), nil
	}
}

func reverse(text string) string {
	units := value.UTF16(text)
	for i, j := 0, len(units)-1; i < j; i, j = i+1, j-1 {
		units[i], units[j] = units[j], units[i]
	}
	return value.FromUTF16(units)
}

func charOf(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	n := a[0].Int64()
	if n < 0 || n > 255 {
		return value.Null(result), nil
	}
	return value.TextOf(result, value.DecodeCodePage(string([]byte{byte(n)}))), nil
}

func ncharOf(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	n := a[0].Int64()
	if n < 0 || n > 0xFFFF {
		return value.Null(result), nil
	}
	return value.TextOf(result, value.FromUTF16([]uint16{uint16(n)})), nil
}

// concatType gives nvarchar where an argument is, and the sum of the lengths; numbers count as long as their text may be.
func concatType(arguments []Argument) (value.Type, *fault.Error) {
	kind, length := value.VarChar, 0
	for _, a := range arguments {
		if a.Type.Kind.IsUnicode() || a.Type.Kind == value.Variant {
			kind = value.NVarChar
		}
		switch {
		case a.Type.IsMax():
			length = math.MinInt32
		case a.Type.Kind.IsCharacter() || a.Type.Kind.IsBinary():
			length += int(a.Type.Length)
		default:
			length += max(value.DisplayWidth(a.Type), 1)
		}
	}
	if length < 0 {
		return value.Type{Kind: kind, Length: value.Max}, nil
	}
	return value.Sized(kind, max(length, 1)), nil
}

func concat(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	var b strings.Builder
	for _, v := range a {
		b.WriteString(c.Settings.Text(v))
	}
	return value.TextOf(result, b.String()), nil
}

func concatWith(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	var parts []string
	for _, v := range a[1:] {
		if !v.IsNull() {
			parts = append(parts, c.Settings.Text(v))
		}
	}
	result.Length = value.Max
	return value.TextOf(result, strings.Join(parts, c.Settings.Text(a[0]))), nil
}

// quotes has the closing character of each opening one that QUOTENAME takes.
var quotes = map[string]string{
	"[": "]", "]": "]", "'": "'", "\"": "\"", "(": ")", ")": ")", "<": ">", ">": ">", "{": "}", "}": "}", "`": "`",
}

func quoteName(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	mark := "["
	if len(a) > 1 {
		mark = value.CutUnits(a[1].Raw(), 0, 1)
	}
	closing, known := quotes[mark]
	text := a[0].Raw()
	if !known || value.UnitsOf(text) > 128 {
		return value.Null(result), nil
	}
	opening := mark
	for open, end := range quotes {
		if end == closing && open != end {
			opening = open
		}
	}
	return value.TextOf(result, opening+strings.ReplaceAll(text, closing, closing+closing)+closing), nil
}

func longestText(arguments []Argument) (value.Type, *fault.Error) {
	return longest(arguments[0].Type), nil
}

func replaceType(arguments []Argument) (value.Type, *fault.Error) {
	t := longest(arguments[0].Type)
	for _, a := range arguments[1:] {
		if a.Type.Kind.IsUnicode() && t.Kind == value.VarChar {
			t = longest(value.Type{Kind: value.NVarChar, Length: t.Length})
		}
	}
	return t, nil
}

// replace compares by the collation: without case, unless COLLATE says so.
func replace(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	text, pattern, with := a[0].Raw(), []rune(a[1].Raw()), a[2].Raw()
	if len(pattern) == 0 {
		return value.TextOf(result, text), nil
	}
	letters := []rune(text)
	var b strings.Builder
	for at := 0; at < len(letters); {
		if startsWith(letters[at:], pattern, c.IsExact) {
			b.WriteString(with)
			at += len(pattern)
			continue
		}
		b.WriteRune(letters[at])
		at++
	}
	return value.TextOf(result, b.String()), nil
}

// startsWith reports whether a text begins with another, by the collation.
func startsWith(letters, with []rune, isExact bool) bool {
	if len(letters) < len(with) {
		return false
	}
	for i, r := range with {
		if letters[i] != r && (isExact || !value.EqualLetters(letters[i], r)) {
			return false
		}
	}
	return true
}

// maxRepeated bounds what REPLICATE and SPACE make, as (max) bounds a value.
const maxRepeated = 1<<31 - 1

func replicate(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	n, text := a[1].Int64(), a[0].Raw()
	if n < 0 {
		return value.Null(result), nil
	}
	limit := int64(maxRepeated)
	if result.Length != value.Max {
		limit = int64(result.Length)
	}
	if text != "" {
		n = min(n, limit/int64(value.UnitsOf(text))+1)
	}
	if n*int64(len(text)) > maxRepeated {
		n = maxRepeated / int64(len(text))
	}
	return value.TextOf(result, strings.Repeat(text, int(n))), nil
}

func space(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	n := a[0].Int64()
	if n < 0 {
		return value.Null(result), nil
	}
	return value.TextOf(result, strings.Repeat(" ", int(min(n, value.MaxBytes)))), nil
}

func strType(arguments []Argument) (value.Type, *fault.Error) {
	length := 10
	if len(arguments) > 1 {
		if n, known := constantInt(arguments[1]); known && n > 0 {
			length = n
		} else {
			length = value.MaxBytes
		}
	}
	return value.Sized(value.VarChar, length), nil
}

// str writes a float with a fixed width; one that does not fit is written as stars.
func str(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	length, decimals := int64(10), int64(0)
	if len(a) > 1 {
		length = a[1].Int64()
	}
	if len(a) > 2 {
		decimals = min(a[2].Int64(), 16)
	}
	if length < 1 || length > value.MaxBytes || decimals < 0 {
		return value.Null(result), nil
	}
	f := a[0].Float64()
	whole := strconv.FormatFloat(roundTo(f, 0), 'f', 0, 64)
	if int64(len(whole)) > length {
		return value.TextOf(result, strings.Repeat("*", int(length))), nil
	}
	decimals = max(min(decimals, length-int64(len(whole))-1), 0)
	text := strconv.FormatFloat(roundTo(f, int(decimals)), 'f', int(decimals), 64)
	if int64(len(text)) > length {
		text = strings.Repeat("*", int(length))
	}
	return value.TextOf(result, strings.Repeat(" ", int(length)-len(text))+text), nil
}

func stuffType(arguments []Argument) (value.Type, *fault.Error) {
	if arguments[0].Type.Kind.IsBinary() {
		return value.Sized(value.VarBinary, value.MaxBytes), nil
	}
	return replaceType([]Argument{arguments[0], arguments[3]})
}

func stuff(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	if a[0].IsNull() || a[1].IsNull() || a[2].IsNull() {
		return value.Null(result), nil
	}
	text, from, length := a[0].Raw(), int(a[1].Int64()), int(a[2].Int64())
	units := value.UnitsOf(text)
	if a[0].Kind().IsBinary() {
		units = len(text)
	}
	if from < 1 || length < 0 || from > units {
		return value.Null(result), nil
	}
	end := min(units, from-1+length)
	if a[0].Kind().IsBinary() {
		bytes, _ := value.BytesIn(a[3])
		return value.BytesOf(result, text[:from-1]+bytes+text[end:]), nil
	}
	return value.TextOf(result, value.CutUnits(text, 0, from-1)+a[3].Raw()+value.CutUnits(text, end, units)), nil
}

func translate(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	from, to := []rune(a[1].Raw()), []rune(a[2].Raw())
	if len(from) != len(to) {
		return value.Value{}, fault.New(9828)
	}
	letters := []rune(a[0].Raw())
	for i, letter := range letters {
		for j, r := range from {
			if value.EqualLetters(letter, r) {
				letters[i] = to[j]
				break
			}
		}
	}
	return value.TextOf(result, string(letters)), nil
}
