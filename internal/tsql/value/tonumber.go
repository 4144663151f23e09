package value

import (
	"math"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// blanks are the characters that a number may stand between.
const blanks = " \t\r\n\v\f\u00a0"

// ranges has the least and the greatest number of each kind of whole numbers.
var ranges = map[Kind][2]int64{
	TinyInt: {0, 255}, SmallInt: {math.MinInt16, math.MaxInt16}, Int: {math.MinInt32, math.MaxInt32},
	BigInt: {math.MinInt64, math.MaxInt64}, SmallMoney: {math.MinInt32, math.MaxInt32}, Money: {math.MinInt64, math.MaxInt64},
}

// Fits reports whether a whole number is in the range of a kind.
func Fits(n int64, k Kind) bool {
	r, known := ranges[k]
	return !known || n >= r[0] && n <= r[1]
}

func toBit(v Value, to Type) (Value, *fault.Error) {
	switch k := v.Kind(); {
	case k.IsCharacter():
		text := strings.Trim(v.s, blanks)
		switch {
		case strings.EqualFold(text, "true"):
			return NewBit(true), nil
		case strings.EqualFold(text, "false"), text == "":
			return NewBit(false), nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Value{}, conversionFailed(v, to)
		}
		return NewBit(n != 0), nil
	case k == Decimal:
		return NewBit(v.Decimal().Sign() != 0), nil
	case k.IsApproximate():
		return NewBit(v.Float64() != 0), nil
	case k.IsTemporal():
		return NewBit(v.i != 0), nil
	default:
		return NewBit(v.i != 0), nil
	}
}

func conversionFailed(v Value, to Type) *fault.Error {
	return fault.New(245, v.Kind(), v.s, to.Kind)
}

// toInteger converts to a whole number: decimal and float lose their fraction, money and datetime are rounded.
func toInteger(v Value, to Type) (Value, *fault.Error) {
	switch k := v.Kind(); {
	case k.IsCharacter():
		return readInteger(v, to)
	case k == Decimal:
		var whole apd.Decimal
		_, _ = truncating.Quantize(&whole, v.Decimal(), 0)
		n, err := whole.Int64()
		if err != nil || !Fits(n, to.Kind) {
			return Value{}, fault.New(8115, Decimal, to.Kind)
		}
		return Value{typ: to, set: true, i: n}, nil
	case k.IsApproximate():
		f := math.Trunc(v.Float64())
		if f < -1<<63 || f >= 1<<63 || !Fits(int64(f), to.Kind) {
			if to.Kind == BigInt {
				return Value{}, fault.New(8115, "expression", to.Kind)
			}
			return Value{}, fault.New(232, to.Kind, strconv.FormatFloat(v.Float64(), 'f', 6, 64))
		}
		return Value{typ: to, set: true, i: int64(f)}, nil
	case k.IsMoney():
		return wholeIn(v, to, roundDiv(v.i, 10_000))
	case k == DateTime:
		return wholeIn(v, to, floorDiv(v.i+unitsPerDay/2, unitsPerDay))
	case k == SmallDateTime:
		return wholeIn(v, to, floorDiv(v.i+minutesPerDay/2, minutesPerDay))
	default:
		return wholeIn(v, to, v.i)
	}
}

// roundDiv divides and rounds half away from zero.
func roundDiv(n, by int64) int64 {
	if n < 0 {
		return -((-n + by/2) / by)
	}
	return (n + by/2) / by
}

func wholeIn(v Value, to Type, n int64) (Value, *fault.Error) {
	if Fits(n, to.Kind) {
		return Value{typ: to, set: true, i: n}, nil
	}
	if to.Kind == TinyInt || to.Kind == SmallInt {
		if v.Kind().IsInteger() {
			return Value{}, fault.New(220, to.Kind, n)
		}
	}
	return Value{}, fault.New(8115, "expression", to.Kind)
}

// storedNames has what error 244 calls the small kinds of whole numbers.
var storedNames = map[Kind]string{TinyInt: "INT1", SmallInt: "INT2"}

// readInteger reads digits behind a sign; nothing and a sign alone are 0.
func readInteger(v Value, to Type) (Value, *fault.Error) {
	text := strings.Trim(v.s, blanks)
	digits := strings.TrimLeft(strings.TrimLeft(text, "+-"), " ")
	if len(text)-len(strings.TrimLeft(text, "+-")) > 1 || strings.Trim(digits, "0123456789") != "" {
		if to.Kind == BigInt {
			return Value{}, fault.New(8114, v.Kind(), to.Kind)
		}
		return Value{}, conversionFailed(v, to)
	}
	if digits == "" {
		return Value{typ: to, set: true}, nil
	}
	if strings.HasPrefix(text, "-") {
		digits = "-" + digits
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err == nil && Fits(n, to.Kind) {
		return Value{typ: to, set: true, i: n}, nil
	}
	switch to.Kind {
	case BigInt:
		return Value{}, fault.New(8115, "expression", to.Kind)
	case Int:
		return Value{}, fault.New(248, v.Kind(), v.s)
	default:
		return Value{}, fault.New(244, v.Kind(), v.s, storedNames[to.Kind])
	}
}

func toFloat(v Value, to Type) (Value, *fault.Error) {
	var f float64
	switch k := v.Kind(); {
	case k.IsCharacter():
		text := strings.Trim(v.s, blanks)
		if text == "" {
			break
		}
		read, err := strconv.ParseFloat(strings.Map(exponentMark, text), 64)
		if strings.Trim(text, "0123456789+-.eEdD") != "" || err != nil && !math.IsInf(read, 0) {
			return Value{}, fault.New(8114, v.Kind(), to.Kind)
		}
		f = read
	case k == Decimal:
		f, _ = v.Decimal().Float64()
	case k.IsApproximate():
		f = v.Float64()
	case k.IsMoney():
		f = float64(v.i) / 10_000
	case k == DateTime:
		f = float64(v.i) / unitsPerDay
	case k == SmallDateTime:
		f = float64(v.i) / minutesPerDay
	default:
		f = float64(v.i)
	}
	return floatIn(f, to)
}

// exponentMark reads the D of an exponent as E.
func exponentMark(r rune) rune {
	if r == 'd' || r == 'D' {
		return 'e'
	}
	return r
}

func floatIn(f float64, to Type) (Value, *fault.Error) {
	switch {
	case math.IsInf(f, 0), math.IsNaN(f):
		return Value{}, fault.New(8115, "expression", to.Kind)
	case to.Kind == Float:
		return NewFloat(f), nil
	case math.Abs(f) > math.MaxFloat32:
		return Value{}, fault.New(232, to.Kind, strconv.FormatFloat(f, 'f', 6, 64))
	}
	return NewReal(float32(f)), nil
}

// currencies are the signs that may stand before an amount.
const currencies = "$£¤¥€₡₣₤₦₧₨₩₪₫₭₮₱₹₺₽"

func toMoney(v Value, to Type) (Value, *fault.Error) {
	switch k := v.Kind(); {
	case k.IsCharacter():
		return readMoney(v, to)
	case k == Decimal:
		return moneyIn(v, to, v.Decimal())
	case k.IsApproximate():
		d, _, err := apd.NewFromString(strconv.FormatFloat(v.Float64(), 'f', 10, 64))
		if err != nil {
			return Value{}, fault.New(8115, "expression", to.Kind)
		}
		return moneyIn(v, to, d)
	case k.IsMoney():
		if !Fits(v.i, to.Kind) {
			return Value{}, fault.New(8115, "expression", to.Kind)
		}
		return v.retyped(to), nil
	case k.IsOldTemporal():
		f, err := toFloat(v, Of(Float))
		if err != nil {
			return Value{}, err
		}
		return toMoney(f, to)
	default:
		if v.i > math.MaxInt64/10_000 || v.i < math.MinInt64/10_000 || !Fits(v.i*10_000, to.Kind) {
			return Value{}, fault.New(8115, "expression", to.Kind)
		}
		return Value{typ: to, set: true, i: v.i * 10_000}, nil
	}
}

func moneyIn(v Value, to Type, d *apd.Decimal) (Value, *fault.Error) {
	var scaled apd.Decimal
	_, _ = rounding.Quantize(&scaled, d, -4)
	scaled.Exponent = 0
	n, err := scaled.Int64()
	if err != nil || !Fits(n, to.Kind) {
		return Value{}, fault.New(8115, v.Kind(), to.Kind)
	}
	return Value{typ: to, set: true, i: n}, nil
}

// readMoney reads an amount: a sign and a currency in any order, digits with commas, and a fraction.
func readMoney(v Value, to Type) (Value, *fault.Error) {
	syntax, overflow := 235, 236
	if to.Kind == SmallMoney {
		syntax, overflow = 293, 294
	}
	text := strings.Trim(v.s, blanks)
	isNegative := false
	if strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") {
		isNegative, text = true, text[1:len(text)-1]
	}
	for range 2 {
		text = strings.TrimLeft(strings.TrimLeft(text, blanks), currencies)
		if rest, found := strings.CutPrefix(text, "-"); found {
			isNegative, text = !isNegative, rest
		} else {
			text = strings.TrimPrefix(text, "+")
		}
	}
	text = strings.ReplaceAll(strings.Trim(text, blanks), ",", "")
	if text == "" || text == "." {
		return Value{typ: to, set: true}, nil
	}
	d, ok := readDecimal(text)
	if !ok || text[0] == '-' || text[0] == '+' {
		return Value{}, fault.New(syntax)
	}
	d.Negative = isNegative
	result, err := moneyIn(v, to, d)
	if err != nil {
		return Value{}, fault.New(overflow)
	}
	return result, nil
}
