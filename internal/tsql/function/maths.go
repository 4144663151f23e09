package function

import (
	"math"
	"math/rand/v2"

	"github.com/cockroachdb/apd/v3"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// maths are the functions of numbers.
var maths = []Function{
	{Name: "ABS", Parameters: "n", Result: sameNumber, Call: abs},
	{Name: "CEILING", Parameters: "n", Result: wholeNumber, Call: rounded(apd.RoundCeiling, math.Ceil)},
	{Name: "FLOOR", Parameters: "n", Result: wholeNumber, Call: rounded(apd.RoundFloor, math.Floor)},
	{Name: "SIGN", Parameters: "n", Result: sameNumber, Call: sign},
	{Name: "ROUND", Parameters: "ni?i", Result: sameNumber, Call: round},
	{Name: "POWER", Parameters: "nf", Result: powerType, Call: power},
	{Name: "ACOS", Parameters: "f", Result: always(floatType), Call: ofFloat(math.Acos)},
	{Name: "ASIN", Parameters: "f", Result: always(floatType), Call: ofFloat(math.Asin)},
	{Name: "ATAN", Parameters: "f", Result: always(floatType), Call: ofFloat(math.Atan)},
	{Name: "COS", Parameters: "f", Result: always(floatType), Call: ofFloat(math.Cos)},
	{Name: "COT", Parameters: "f", Result: always(floatType), Call: ofFloat(func(f float64) float64 { return 1 / math.Tan(f) })},
	{Name: "EXP", Parameters: "f", Result: always(floatType), Call: ofFloat(math.Exp)},
	{Name: "LOG10", Parameters: "f", Result: always(floatType), Call: ofFloat(math.Log10)},
	{Name: "SIN", Parameters: "f", Result: always(floatType), Call: ofFloat(math.Sin)},
	{Name: "SQRT", Parameters: "f", Result: always(floatType), Call: ofFloat(math.Sqrt)},
	{Name: "SQUARE", Parameters: "f", Result: always(floatType), Call: ofFloat(func(f float64) float64 { return f * f })},
	{Name: "TAN", Parameters: "f", Result: always(floatType), Call: ofFloat(math.Tan)},
	{Name: "DEGREES", Parameters: "n", Result: sameNumber, Call: scaled(180 / math.Pi)},
	{Name: "RADIANS", Parameters: "n", Result: sameNumber, Call: scaled(math.Pi / 180)},
	{Name: "ATN2", Parameters: "ff", Result: always(floatType), Call: atn2},
	{Name: "LOG", Parameters: "f?f", Result: always(floatType), Call: logarithm},
	{Name: "PI", Result: always(floatType), Call: pi},
	{Name: "RAND", Parameters: "?i", IsVolatile: true, Result: always(floatType), Call: random},
}

// exact keeps every digit of a decimal.
func exact(mode apd.Rounder) *apd.Context {
	return &apd.Context{Precision: 200, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Rounding: mode}
}

// sameNumber gives the type of the argument; small integers become int, bit and text float, smallmoney money.
func sameNumber(arguments []Argument) (value.Type, *fault.Error) {
	switch t := arguments[0].Type; t.Kind {
	case value.TinyInt, value.SmallInt, value.Unknown:
		return intType, nil
	case value.SmallMoney:
		return value.Of(value.Money), nil
	case value.Int, value.BigInt, value.Decimal, value.Money, value.Float:
		return t, nil
	case value.Real:
		return floatType, nil
	default:
		return floatType, nil
	}
}

// wholeNumber is the same without digits behind the point.
func wholeNumber(arguments []Argument) (value.Type, *fault.Error) {
	t, err := sameNumber(arguments)
	t.Scale = 0
	return t, err
}

func realValue(result value.Type, f float64) (value.Value, *fault.Error) {
	switch {
	case math.IsNaN(f):
		return value.Value{}, fault.New(3623)
	case math.IsInf(f, 0):
		return value.Value{}, fault.New(8115, "expression", result.Kind)
	}
	return value.NewFloat(f), nil
}

func ofFloat(compute func(float64) float64) func(*Context, value.Type, []value.Value) (value.Value, *fault.Error) {
	return func(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
		f := compute(a[0].Float64())
		if math.IsInf(f, -1) && a[0].Float64() == 0 {
			return value.Value{}, fault.New(3623)
		}
		return realValue(result, f)
	}
}

func scaled(factor float64) func(*Context, value.Type, []value.Value) (value.Value, *fault.Error) {
	return func(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
		f, err := c.Settings.Assign(a[0], floatType)
		if err != nil {
			return value.Value{}, err
		}
		if result.Kind == value.Decimal {
			result = value.Numeric(value.MaxPrecision, 18)
		}
		return c.Settings.Assign(value.NewFloat(f.Float64()*factor), result)
	}
}

func abs(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	order, err := c.Settings.Compare(a[0], value.NewInt(0))
	if err != nil {
		return value.Value{}, err
	}
	v, err := c.Settings.Assign(a[0], result)
	if err != nil || order >= 0 {
		return v, err
	}
	return c.Settings.Negate(v)
}

func sign(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	order, err := c.Settings.Compare(a[0], value.NewInt(0))
	if err != nil {
		return value.Value{}, err
	}
	return c.Settings.Assign(value.NewInt(order), result)
}

func rounded(mode apd.Rounder, round func(float64) float64) func(*Context, value.Type, []value.Value) (value.Value, *fault.Error) {
	return func(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
		switch v := a[0]; {
		case v.Kind() == value.Decimal:
			return quantized(mode, v.Decimal(), 0, result)
		case v.Kind().IsMoney():
			d := apd.New(v.Int64(), -4)
			var whole apd.Decimal
			_, _ = exact(mode).Quantize(&whole, d, 0)
			n, _ := whole.Int64()
			return value.NewMoney(value.Money, n*10_000), nil
		case result.Kind == value.Float:
			f, err := c.Settings.Assign(v, floatType)
			if err != nil {
				return value.Value{}, err
			}
			return value.NewFloat(round(f.Float64())), nil
		default:
			return c.Settings.Assign(v, result)
		}
	}
}

// quantized rounds a decimal to digits behind the point, fewer than none before it, and writes it with the result's scale.
func quantized(mode apd.Rounder, d *apd.Decimal, digits int, result value.Type) (value.Value, *fault.Error) {
	var r apd.Decimal
	_, _ = exact(mode).Quantize(&r, d, -int32(digits))
	_, _ = exact(mode).Quantize(&r, &r, -int32(result.Scale))
	if r.NumDigits() > int64(result.Precision) && !r.IsZero() {
		return value.Value{}, fault.New(8115, "expression", result.Kind)
	}
	r.Negative = r.Negative && !r.IsZero()
	return value.NewDecimal(result, &r), nil
}

// roundTo rounds half away from zero.
func roundTo(f float64, digits int) float64 {
	power := math.Pow10(digits)
	if r := math.Round(f*power) / power; !math.IsNaN(r) && !math.IsInf(r, 0) {
		return r
	}
	return f
}

// round rounds to digits behind the point, or cuts off where the third argument is not 0.
func round(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	digits := int(max(min(a[1].Int64(), 100), -100))
	mode := apd.RoundHalfUp
	if len(a) > 2 && a[2].Int64() != 0 {
		mode = apd.RoundDown
	}
	switch v := a[0]; {
	case v.Kind() == value.Decimal:
		return quantized(mode, v.Decimal(), min(digits, int(result.Scale)), result)
	case v.Kind().IsMoney():
		d, err := c.Settings.Assign(v, value.Numeric(38, 4))
		if err != nil {
			return value.Value{}, err
		}
		r, err := quantized(mode, d.Decimal(), min(digits, 4), d.Type())
		if err != nil {
			return value.Value{}, err
		}
		return c.Settings.Assign(r, result)
	case result.Kind == value.Float:
		f, err := c.Settings.Assign(v, floatType)
		if err != nil {
			return value.Value{}, err
		}
		if mode == apd.RoundDown {
			power := math.Pow10(digits)
			return value.NewFloat(math.Trunc(f.Float64()*power) / power), nil
		}
		return value.NewFloat(roundTo(f.Float64(), digits)), nil
	default:
		r, err := quantized(mode, apd.New(v.Int64(), 0), min(digits, 0), value.Numeric(value.MaxPrecision, 0))
		if err != nil {
			return value.Value{}, err
		}
		r, err = c.Settings.Assign(r, result)
		if err != nil {
			return value.Value{}, fault.New(8115, "expression", result.Kind)
		}
		return r, nil
	}
}

func powerType(arguments []Argument) (value.Type, *fault.Error) {
	t, err := sameNumber(arguments)
	if t.Kind == value.Decimal {
		t.Precision = value.MaxPrecision
	}
	return t, err
}

func power(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	base, err := c.Settings.Assign(a[0], floatType)
	if err != nil {
		return value.Value{}, err
	}
	if base.Float64() == 0 && a[1].Float64() < 0 {
		return value.Value{}, fault.New(8134)
	}
	f, err := realValue(floatType, math.Pow(base.Float64(), a[1].Float64()))
	if err != nil {
		return value.Value{}, err
	}
	return c.Settings.Assign(f, result)
}

func atn2(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	return realValue(result, math.Atan2(a[0].Float64(), a[1].Float64()))
}

func logarithm(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	f := math.Log(a[0].Float64())
	if len(a) > 1 {
		if a[1].Float64() <= 0 || a[1].Float64() == 1 {
			return value.Value{}, fault.New(3623)
		}
		f /= math.Log(a[1].Float64())
	}
	if a[0].Float64() <= 0 {
		return value.Value{}, fault.New(3623)
	}
	return realValue(result, f)
}

func pi(*Context, value.Type, []value.Value) (value.Value, *fault.Error) {
	return value.NewFloat(math.Pi), nil
}

// random gives the next number; a seed begins the same sequence again.
func random(c *Context, _ value.Type, a []value.Value) (value.Value, *fault.Error) {
	if len(a) > 0 {
		seed := uint64(a[0].Int64())
		c.Random = rand.New(rand.NewPCG(seed, seed))
	}
	if c.Random == nil {
		c.Random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	return value.NewFloat(c.Random.Float64()), nil
}
