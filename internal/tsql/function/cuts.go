package function

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// cuts are the functions that give a part of a text.
var cuts = []Function{
	{Name: "LEFT", Parameters: "ti", Result: leftType, Call: left},
	{Name: "RIGHT", Parameters: "ti", Result: leftType, Call: right},
	{Name: "SUBSTRING", Parameters: "xi?i", Result: substringType, Call: substring},
	{Name: "LTRIM", Parameters: "t?t", Result: textLike, Call: trimmed("LEADING")},
	{Name: "RTRIM", Parameters: "t?t", Result: textLike, Call: trimmed("TRAILING")},
	{Name: "TRIM", Parameters: "t?t", Result: textLike, Call: trimmed("BOTH")},
	{Name: "TRIM LEADING", Parameters: "tt", Result: textLike, Call: trimmed("LEADING")},
	{Name: "TRIM TRAILING", Parameters: "tt", Result: textLike, Call: trimmed("TRAILING")},
	{Name: "PARSENAME", Parameters: "ti", Result: always(value.Sized(value.NVarChar, 128)), Call: partOfName},
}

func leftType(arguments []Argument) (value.Type, *fault.Error) {
	t := textType(arguments[0].Type)
	if n, known := constantInt(arguments[1]); known && n > 0 && (t.Length == value.Max || n < int(t.Length)) && n <= value.MaxUnicode {
		t.Length = int32(n)
	}
	return t, nil
}

func left(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	n := a[1].Int64()
	if n < 0 {
		return value.Value{}, fault.New(537)
	}
	return value.TextOf(result, value.CutUnits(a[0].Raw(), 0, int(n))), nil
}

func right(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	n := a[1].Int64()
	if n < 0 {
		return value.Value{}, fault.New(536, "right")
	}
	units := value.UnitsOf(a[0].Raw())
	return value.TextOf(result, value.CutUnits(a[0].Raw(), max(units-int(n), 0), units)), nil
}

func substringType(arguments []Argument) (value.Type, *fault.Error) {
	first := arguments[0].Type
	t := textType(first)
	if first.Kind.IsBinary() {
		t = value.Type{Kind: value.VarBinary, Length: first.Length}
		if first.IsMax() {
			t.Length = value.Max
		}
	}
	if len(arguments) > 2 {
		limit := value.MaxBytes
		if t.Kind.IsUnicode() {
			limit = value.MaxUnicode
		}
		if n, known := constantInt(arguments[2]); known && n > 0 && n <= limit && (t.Length == value.Max || n < int(t.Length)) {
			t.Length = int32(n)
		}
	}
	return t, nil
}

func substring(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	text, from, length := a[0].Raw(), a[1].Int64()-1, int64(1)<<31
	if len(a) > 2 {
		length = a[2].Int64()
		if length < 0 {
			return value.Value{}, fault.New(537)
		}
	}
	end := from + length
	from = max(from, 0)
	length = max(end-from, 0)
	if a[0].Kind().IsBinary() {
		from = min(from, int64(len(text)))
		return value.BytesOf(result, text[from:min(int64(len(text)), from+length)]), nil
	}
	return value.TextOf(result, value.CutUnits(text, int(min(from, 1<<31)), int(length))), nil
}

// trimmed cuts characters off one side or both: blanks, or those of the second argument.
func trimmed(side string) func(*Context, value.Type, []value.Value) (value.Value, *fault.Error) {
	return func(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
		text, set := a[0].Raw(), " "
		if len(a) > 1 {
			set = a[1].Raw()
		}
		isCut := func(r rune) bool {
			for _, other := range set {
				if value.EqualLetters(r, other) {
					return true
				}
			}
			return false
		}
		if side != "TRAILING" {
			text = strings.TrimLeftFunc(text, isCut)
		}
		if side != "LEADING" {
			text = strings.TrimRightFunc(text, isCut)
		}
		return value.TextOf(result, text), nil
	}
}

// partOfName gives a part of a name with dots, counted from the right: object, schema, database, server.
func partOfName(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	parts, ok := SplitName(a[0].Raw())
	n := int(a[1].Int64())
	if !ok || n < 1 || n > len(parts) || parts[len(parts)-n] == "" {
		return value.Null(result), nil
	}
	return value.TextOf(result, parts[len(parts)-n]), nil
}

// SplitName cuts a name with dots into its parts, without brackets and quotes; ok is false where it is no name of one to four parts.
func SplitName(name string) (parts []string, ok bool) {
	for {
		name = strings.TrimLeft(name, " ")
		var part string
		switch {
		case strings.HasPrefix(name, "["):
			part, name, ok = quoted(name[1:], "]")
		case strings.HasPrefix(name, "\""):
			part, name, ok = quoted(name[1:], "\"")
		default:
			end := strings.IndexAny(name, ".[\"")
			if end < 0 {
				end = len(name)
			}
			part, name, ok = strings.TrimRight(name[:end], " "), name[end:], true
		}
		parts = append(parts, part)
		name = strings.TrimLeft(name, " ")
		switch {
		case !ok, len(parts) > 4, part == "" && name == "":
			return nil, false
		case name == "":
			return parts, true
		case name[0] != '.':
			return nil, false
		}
		name = name[1:]
	}
}

// quoted reads up to a closing mark; two of them stand for one.
func quoted(text, mark string) (inside, rest string, ok bool) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, mark)
		b.WriteString(before)
		if !found {
			return "", "", false
		}
		if !strings.HasPrefix(after, mark) {
			return b.String(), after, true
		}
		b.WriteString(mark)
		text = after[1:]
	}
}
