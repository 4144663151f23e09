package value

import (
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// The contexts of decimals hold twice the digits of the widest type, so that only a Quantize rounds: half away from zero, or down
// where SQL Server cuts digits off.
var (
	rounding   = decimalContext(apd.RoundHalfUp)
	truncating = decimalContext(apd.RoundDown)
)

func decimalContext(mode apd.Rounder) *apd.Context {
	return &apd.Context{Precision: 1000, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Rounding: mode}
}

// readDecimal reads a sign, digits and a fraction; an exponent is no part of a decimal.
func readDecimal(text string) (*apd.Decimal, bool) {
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 || digits == "" || digits == "." || strings.Trim(digits, "0123456789.") != "" {
		return nil, false
	}
	d, _, err := apd.NewFromString(strings.TrimSuffix(text, "."))
	if err != nil {
		return nil, false
	}
	d.Negative = d.Negative && !d.IsZero()
	return d, true
}

// fitDecimal rounds a number to a type's scale; error 8115 where it has more digits than the type.
func fitDecimal(d *apd.Decimal, to Type, from string) (Value, *fault.Error) {
	var fitted apd.Decimal
	_, _ = rounding.Quantize(&fitted, d, -int32(to.Scale))
	if fitted.NumDigits() > int64(to.Precision) && !fitted.IsZero() {
		return Value{}, fault.New(8115, from, to.Kind)
	}
	fitted.Negative = fitted.Negative && !fitted.IsZero()
	return NewDecimal(to, &fitted), nil
}

func toDecimal(v Value, to Type) (Value, *fault.Error) {
	from := v.Kind().String()
	switch k := v.Kind(); {
	case k.IsCharacter():
		d, ok := readDecimal(strings.Trim(v.s, blanks))
		if !ok {
			return Value{}, fault.New(8114, k, to.Kind)
		}
		return fitDecimal(d, to, from)
	case k == Decimal:
		return fitDecimal(v.Decimal(), to, from)
	case k.IsApproximate():
		d, _, err := apd.NewFromString(strconv.FormatFloat(v.Float64(), 'f', int(to.Scale)+1, 64))
		if err != nil {
			return Value{}, fault.New(8115, from, to.Kind)
		}
		if to.Scale > 0 { // the digits that a float has beyond the scale must not be rounded twice
			d, _, _ = apd.NewFromString(strconv.FormatFloat(v.Float64(), 'f', int(to.Scale), 64))
		}
		return fitDecimal(d, to, from)
	case k.IsMoney():
		return fitDecimal(apd.New(v.i, -4), to, from)
	case k.IsOldTemporal():
		f, err := toFloat(v, Of(Float))
		if err != nil {
			return Value{}, err
		}
		return toDecimal(f, to)
	default:
		return fitDecimal(apd.New(v.i, 0), to, from)
	}
}

// DecimalConstant gives a constant of digits with a point, or of too many digits for int: as precise as it is written.
func DecimalConstant(text string) (Value, *fault.Error) {
	d, ok := readDecimal(text)
	if !ok {
		return Value{}, fault.New(102, text)
	}
	whole, fraction, _ := strings.Cut(strings.TrimLeft(text, "+-"), ".")
	whole = strings.TrimLeft(whole, "0")
	precision := len(whole) + len(fraction)
	if precision > MaxPrecision {
		return Value{}, fault.New(1007, text)
	}
	return NewDecimal(Numeric(max(precision, 1), len(fraction)), d), nil
}

// DecimalType gives the decimal that holds every value of a kind of exact numbers.
func DecimalType(t Type) Type {
	switch t.Kind {
	case Bit:
		return Numeric(1, 0)
	case TinyInt:
		return Numeric(3, 0)
	case SmallInt:
		return Numeric(5, 0)
	case Int:
		return Numeric(10, 0)
	case BigInt:
		return Numeric(19, 0)
	case SmallMoney:
		return Numeric(10, 4)
	case Money:
		return Numeric(19, 4)
	case Decimal:
		return t
	default:
		return Numeric(MaxPrecision, MaxPrecision/2)
	}
}

// operationType gives the precision and scale of the result of an operator on two decimals.
func operationType(operator byte, a, b Type) Type {
	p1, s1, p2, s2 := int(a.Precision), int(a.Scale), int(b.Precision), int(b.Scale)
	var precision, scale int
	switch operator {
	case '*':
		precision, scale = p1+p2+1, s1+s2
	case '/':
		scale = max(6, s1+p2+1)
		precision = p1 - s1 + s2 + scale
	case '%':
		scale = max(s1, s2)
		precision = min(p1-s1, p2-s2) + scale
	default:
		scale = max(s1, s2)
		whole := max(p1-s1, p2-s2)
		precision = whole + scale + 1
		if precision > MaxPrecision {
			return Numeric(MaxPrecision, min(scale, MaxPrecision-whole))
		}
	}
	if precision <= MaxPrecision {
		return Numeric(max(precision, 1), scale)
	}
	switch whole := precision - scale; {
	case whole < 32:
		scale = min(scale, MaxPrecision-whole)
	case scale > 6:
		scale = 6
	}
	return Numeric(MaxPrecision, scale)
}

// computeDecimal computes with two decimals: quotients are cut, all else is rounded to the scale of the result.
func computeDecimal(operator byte, a, b *apd.Decimal, result Type) (Value, *fault.Error) {
	var d apd.Decimal
	mode := rounding
	switch operator {
	case '+':
		_, _ = rounding.Add(&d, a, b)
	case '-':
		_, _ = rounding.Sub(&d, a, b)
	case '*':
		_, _ = rounding.Mul(&d, a, b)
	default:
		if b.IsZero() {
			return Value{}, fault.New(8134)
		}
		if operator == '%' {
			_, _ = truncating.Rem(&d, a, b)
		} else {
			quotient(&d, a, b, int32(result.Scale))
			mode = truncating
		}
	}
	_, _ = mode.Quantize(&d, &d, -int32(result.Scale))
	if d.NumDigits() > int64(result.Precision) && !d.IsZero() {
		return Value{}, fault.New(8115, "expression", Decimal)
	}
	d.Negative = d.Negative && !d.IsZero()
	return NewDecimal(result, &d), nil
}

// quotient divides exactly and cuts the quotient at a scale.
func quotient(d, a, b *apd.Decimal, scale int32) {
	var shifted, divisor apd.BigInt
	shift := scale + a.Exponent - b.Exponent
	shifted.Set(&a.Coeff)
	divisor.Set(&b.Coeff)
	ten := apd.NewBigInt(10)
	var power apd.BigInt
	if shift >= 0 {
		power.Exp(ten, apd.NewBigInt(int64(shift)), nil)
		shifted.Mul(&shifted, &power)
	} else {
		power.Exp(ten, apd.NewBigInt(int64(-shift)), nil)
		divisor.Mul(&divisor, &power)
	}
	d.Coeff.Quo(&shifted, &divisor)
	d.Exponent, d.Negative, d.Form = -scale, a.Negative != b.Negative, apd.Finite
}
