package function

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A Context is what functions see of the session: its settings, the time at which the statement began, its random numbers.
type Context struct {
	Settings *value.Settings
	Now      time.Time  // in the server's zone
	Random   *rand.Rand // of RAND; nil until it is needed
	IsExact  bool       // an argument has a collation for which case counts
}

// An Argument is an argument as the batch has it: its type, and its value where it is a constant.
type Argument struct {
	Type     value.Type
	Constant *value.Value
}

// A Function is a built-in function.
type Function struct {
	Name string // in upper case
	// Parameters has a letter for each: t text, x text or bytes, i int, b bigint, f float, n a number of any kind, d a date of any
	// kind, a anything, p the name of a date part. Those behind ? may be left out; * repeats the last.
	Parameters string
	TakesNull  bool // without it, NULL in any argument makes NULL
	// IsVolatile says that two calls in one statement may differ.
	IsVolatile bool
	Result     func(arguments []Argument) (value.Type, *fault.Error)
	Call       func(c *Context, result value.Type, arguments []value.Value) (value.Value, *fault.Error)
}

var byName = func() map[string]*Function {
	functions := map[string]*Function{}
	for _, group := range [][]Function{texts, cuts, descriptions, maths, clocks, dates, dateParts, systems, documents, formats} {
		for i := range group {
			functions[group[i].Name] = &group[i]
		}
	}
	return functions
}()

// Lookup gives a function by its name, in any case.
func Lookup(name string) (*Function, bool) {
	f, known := byName[strings.ToUpper(name)]
	return f, known
}

// Names gives the names of all functions.
func Names() []string {
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	return names
}

// counts gives the least and the greatest number of arguments; the greatest is -1 where there is none.
func (f *Function) counts() (least, most int) {
	required, optional, _ := strings.Cut(f.Parameters, "?")
	least, most = len(strings.TrimSuffix(required, "*")), len(required)+len(optional)
	if strings.HasSuffix(f.Parameters, "*") {
		most = -1
	}
	return least, most
}

// parameter gives the letter of an argument's place.
func (f *Function) parameter(at int) byte {
	letters := strings.ReplaceAll(strings.TrimSuffix(f.Parameters, "*"), "?", "")
	return letters[min(at, len(letters)-1)]
}

// CheckCount gives errors 174 and 189 for a wrong number of arguments.
func (f *Function) CheckCount(n int) *fault.Error {
	least, most := f.counts()
	switch {
	case n >= least && (most < 0 || n <= most):
		return nil
	case least == most || most < 0:
		return fault.New(174, strings.ToLower(f.Name), least)
	}
	return fault.New(189, strings.ToLower(f.Name), least, most)
}

// TypeOf gives the type of the result; error 8116 for an argument of a type that the function does not take.
func (f *Function) TypeOf(arguments []Argument) (value.Type, *fault.Error) {
	if err := f.CheckCount(len(arguments)); err != nil {
		return value.Type{}, err
	}
	for i, a := range arguments {
		if !f.takes(i, a.Type.Kind) {
			return value.Type{}, fault.New(8116, a.Type.Kind, i+1, strings.ToLower(f.Name))
		}
	}
	return f.Result(arguments)
}

// takes reports whether an argument may be of a kind.
func (f *Function) takes(at int, k value.Kind) bool {
	if k == value.Unknown || k == value.Variant {
		return true
	}
	switch f.parameter(at) {
	case 't':
		return !k.IsBinary() && k != value.XML && k < value.Table || k == value.Binary || k == value.VarBinary
	case 'x':
		return k != value.XML && k < value.Table
	case 'i', 'b', 'f', 'n':
		return k.IsNumber() || k.IsCharacter() && k != value.Text && k != value.NText || k == value.Binary || k == value.VarBinary
	case 'd':
		return k.IsTemporal() || k.IsNumber() || k.IsCharacter() && k != value.Text && k != value.NText
	default:
		return true
	}
}

// Evaluate converts the arguments and calls the function.
func (f *Function) Evaluate(c *Context, result value.Type, arguments []value.Value) (value.Value, *fault.Error) {
	converted := make([]value.Value, len(arguments))
	for i, a := range arguments {
		if a.IsNull() && !f.TakesNull {
			return value.Null(result), nil
		}
		v, err := f.convert(c.Settings, i, a)
		if err != nil {
			return value.Value{}, err
		}
		converted[i] = v
	}
	return f.Call(c, result, converted)
}

func (f *Function) convert(s *value.Settings, at int, a value.Value) (value.Value, *fault.Error) {
	a = a.Inside()
	k := a.Kind()
	switch f.parameter(at) {
	case 't':
		if k.IsCharacter() {
			return a, nil
		}
		return s.Cast(a, value.Sized(value.VarChar, value.MaxBytes))
	case 'x':
		if k.IsCharacter() || k.IsBinary() {
			return a, nil
		}
		return s.Cast(a, value.Sized(value.VarChar, value.MaxBytes))
	case 'i':
		return s.Assign(a, value.Of(value.Int))
	case 'b':
		return s.Assign(a, value.Of(value.BigInt))
	case 'f':
		return s.Assign(a, value.Of(value.Float))
	case 'n':
		if k.IsNumber() {
			return a, nil
		}
		return s.Assign(a, value.Of(value.Float))
	case 'd':
		return dateOf(s, a)
	default:
		return a, nil
	}
}

// dateOf gives an argument as a date: text with a zone becomes datetimeoffset, other text datetime2, numbers datetime.
func dateOf(s *value.Settings, a value.Value) (value.Value, *fault.Error) {
	switch k := a.Kind(); {
	case k.IsTemporal() || a.IsNull():
		return a, nil
	case k.IsCharacter():
		zoned, err := s.Assign(a, value.Of(value.DateTimeOffset))
		if err == nil && zoned.Moment().Offset != 0 {
			return zoned, nil
		}
		return s.Assign(a, value.Of(value.DateTime2))
	default:
		return s.Assign(a, value.Of(value.DateTime))
	}
}

// always gives a result of one type.
func always(t value.Type) func([]Argument) (value.Type, *fault.Error) {
	return func([]Argument) (value.Type, *fault.Error) { return t, nil }
}

// textLike gives the type of text that a function of text returns: the first argument's, of variable length.
func textLike(arguments []Argument) (value.Type, *fault.Error) {
	return textType(arguments[0].Type), nil
}

func textType(t value.Type) value.Type {
	switch t.Kind {
	case value.NChar, value.NVarChar:
		return value.Type{Kind: value.NVarChar, Length: t.Length}
	case value.Char, value.VarChar:
		return value.Type{Kind: value.VarChar, Length: t.Length}
	case value.NText:
		return value.Type{Kind: value.NVarChar, Length: value.Max}
	case value.Text:
		return value.Type{Kind: value.VarChar, Length: value.Max}
	default:
		return value.Sized(value.VarChar, value.MaxBytes)
	}
}

// longest gives the longest type of the same kind that is not (max), unless the argument is (max).
func longest(t value.Type) value.Type {
	t = textType(t)
	if t.Length == value.Max {
		return t
	}
	return value.Sized(t.Kind, value.MaxBytes)
}

// constantInt gives the number of a constant argument.
func constantInt(a Argument) (int, bool) {
	if a.Constant == nil || a.Constant.IsNull() || !a.Constant.Kind().IsInteger() {
		return 0, false
	}
	return int(a.Constant.Int64()), true
}
