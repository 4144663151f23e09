package value

import (
	"math"
	"math/bits"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// Operate computes an operator of two values: + - * / % & | ^. Both are converted to the type of higher precedence first.
func (s *Settings) Operate(operator byte, a, b Value) (Value, *fault.Error) {
	to, err := OperationType(operator, a.Type(), b.Type())
	if err != nil {
		return Value{}, err
	}
	if operator == '+' && (to.Kind.IsCharacter() || to.Kind.IsBinary() && to.Kind != RowVersion) {
		return s.concatenate(a, b, to)
	}
	if a.IsNull() || b.IsNull() {
		return s.nullOf(a, b, to)
	}
	if to.Kind == Decimal {
		return s.decimals(operator, a, b, to)
	}
	left, err := s.operand(a, to)
	if err != nil {
		return Value{}, err
	}
	right, err := s.operand(b, to)
	if err != nil {
		return Value{}, err
	}
	switch k := to.Kind; {
	case k.IsInteger(), k == Bit:
		return integers(operator, left.i, right.i, to)
	case k.IsMoney():
		return moneys(operator, left.i, right.i, to)
	case k.IsApproximate():
		return floats(operator, left.Float64(), right.Float64(), to)
	default:
		return dates(operator, left, right, to)
	}
}

// nullOf gives NULL, after the other operand was converted: its errors come first.
func (s *Settings) nullOf(a, b Value, to Type) (Value, *fault.Error) {
	for _, v := range []Value{a, b} {
		if v.Kind() != to.Kind && !v.IsNull() {
			if _, err := s.operand(v, to); err != nil {
				return Value{}, err
			}
		}
	}
	return Null(to), nil
}

// operand converts one side to the type of the result.
func (s *Settings) operand(v Value, to Type) (Value, *fault.Error) {
	if v.Kind() == to.Kind {
		return v, nil
	}
	return s.Assign(v, to)
}

// OperationType gives the type of the result of an operator; errors 206, 257, 402 and 8117 where there is none.
func OperationType(operator byte, a, b Type) (Type, *fault.Error) {
	high, low := a, b
	if low.Kind > high.Kind {
		high, low = low, high
	}
	name := operatorNames[string(operator)]
	incompatible := func() *fault.Error { return fault.New(402, a.Kind, b.Kind, name) }
	invalid := func(k Kind) *fault.Error { return fault.New(8117, k, name) }
	switch k := high.Kind; {
	case k == Unknown:
		return Of(Int), nil
	case k.IsCharacter() || k.IsBinary() && k != RowVersion:
		if operator != '+' || k == Text || k == NText || k == Image {
			if isBitwise(operator) && (k == Binary || k == VarBinary) {
				return high, nil
			}
			return Type{}, invalid(k)
		}
		if low.Kind.IsBinary() && high.Kind.IsCharacter() {
			return Type{}, incompatible()
		}
		return concatenationType(a, b), nil
	case k == Variant, k == XML, k == UniqueIdentifier, k == Table, k == Cursor, k == RowVersion:
		return Type{}, invalid(k)
	case k.IsTemporal():
		return temporalOperation(operator, high, low, name)
	}
	if err := checkAllowed(low.Kind, high.Kind, false); err != nil {
		return Type{}, err
	}
	return numberOperation(operator, a, b, high, invalid, incompatible)
}

func isBitwise(operator byte) bool { return operator == '&' || operator == '|' || operator == '^' }

func numberOperation(operator byte, a, b, high Type, invalid func(Kind) *fault.Error, incompatible func() *fault.Error) (
	Type, *fault.Error,
) {
	switch k := high.Kind; {
	case k == Bit && !isBitwise(operator):
		return Type{}, invalid(k)
	case isBitwise(operator) && !k.IsInteger() && k != Bit, operator == '%' && k.IsApproximate():
		return Type{}, incompatible()
	case k == Decimal:
		left, right := numberOperand(a, high), numberOperand(b, high)
		return operationType(operator, left, right), nil
	case k.IsApproximate() && a.Kind.IsExactNumber() != b.Kind.IsExactNumber() && k == Real:
		return Of(Real), nil
	}
	return Type{Kind: high.Kind}, nil
}

// numberOperand gives the decimal that one side of an operator becomes.
func numberOperand(t, high Type) Type {
	if t.Kind.IsExactNumber() {
		return DecimalType(t)
	}
	return high // text and NULL take the type of the other side
}

// temporalOperation gives the type of sums and differences of datetime and smalldatetime; the newer kinds have none.
func temporalOperation(operator byte, high, low Type, name string) (Type, *fault.Error) {
	if !high.Kind.IsOldTemporal() {
		switch {
		case low.Kind.IsNumber():
			return Type{}, fault.New(206, high.Kind, low.Kind)
		case low.Kind.IsTemporal() && low.Kind != high.Kind:
			return Type{}, fault.New(402, high.Kind, low.Kind, name)
		}
		return Type{}, fault.New(8117, high.Kind, name)
	}
	switch {
	case operator != '+' && operator != '-' && low.Kind.IsNumber():
		return Type{}, fault.New(257, high.Kind, low.Kind)
	case operator != '+' && operator != '-':
		return Type{}, fault.New(8117, high.Kind, name)
	case low.Kind == Date || low.Kind == Time:
		return Type{}, fault.New(402, high.Kind, low.Kind, name)
	}
	return Type{Kind: high.Kind}, nil
}

func integers(operator byte, a, b int64, to Type) (Value, *fault.Error) {
	var n int64
	overflow := false
	switch operator {
	case '+':
		n = a + b
		overflow = (n > a) != (b > 0) && b != 0
	case '-':
		n = a - b
		overflow = (n < a) != (b > 0) && b != 0
	case '*':
		high, low := bits.Mul64(magnitude(a), magnitude(b))
		n = a * b
		isNegative := (a < 0) != (b < 0)
		overflow = high != 0 || low > 1<<63 || low == 1<<63 && !isNegative
	case '/', '%':
		if b == 0 {
			return Value{}, fault.New(8134)
		}
		if operator == '%' {
			return Integer(to.Kind, remainder(a, b)), nil
		}
		overflow = a == math.MinInt64 && b == -1
		if !overflow {
			n = a / b
		}
	case '&':
		n = a & b
	case '|':
		n = a | b
	case '^':
		n = a ^ b
	}
	if overflow || !Fits(n, to.Kind) {
		return Value{}, fault.New(8115, "expression", to.Kind)
	}
	return Integer(to.Kind, n), nil
}

func remainder(a, b int64) int64 {
	if b == -1 {
		return 0
	}
	return a % b
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// moneys computes in ten thousandths: products are rounded, quotients cut.
func moneys(operator byte, a, b int64, to Type) (Value, *fault.Error) {
	overflow := fault.New(8115, "expression", to.Kind)
	switch operator {
	case '+', '-':
		sum, err := integers(operator, a, b, Of(BigInt))
		if err != nil || !Fits(sum.i, to.Kind) {
			return Value{}, overflow
		}
		return NewMoney(to.Kind, sum.i), nil
	case '%':
		if b == 0 {
			return Value{}, fault.New(8134)
		}
		return NewMoney(to.Kind, remainder(a, b)), nil
	}
	isNegative := (a < 0) != (b < 0)
	var n uint64
	if operator == '*' {
		high, low := bits.Mul64(magnitude(a), magnitude(b))
		if high >= 10_000 {
			return Value{}, overflow
		}
		quotient, rest := bits.Div64(high, low, 10_000)
		n = quotient + rest/5_000
	} else {
		if b == 0 {
			return Value{}, fault.New(8134)
		}
		high, low := bits.Mul64(magnitude(a), 10_000)
		if high >= magnitude(b) {
			return Value{}, overflow
		}
		n, _ = bits.Div64(high, low, magnitude(b))
	}
	if n > math.MaxInt64 {
		return Value{}, overflow
	}
	result := int64(n)
	if isNegative {
		result = -result
	}
	if !Fits(result, to.Kind) {
		return Value{}, overflow
	}
	return NewMoney(to.Kind, result), nil
}

func floats(operator byte, a, b float64, to Type) (Value, *fault.Error) {
	var f float64
	switch operator {
	case '+':
		f = a + b
	case '-':
		f = a - b
	case '*':
		f = a * b
	default:
		if b == 0 {
			return Value{}, fault.New(8134)
		}
		f = a / b
	}
	return floatIn(f, to)
}

// dates adds and subtracts datetime and smalldatetime as the time since 1900-01-01.
func dates(operator byte, a, b Value, to Type) (Value, *fault.Error) {
	n := a.i + b.i
	if operator == '-' {
		n = a.i - b.i
	}
	low, high := int64(daysBefore1753-daysBefore1900)*unitsPerDay, int64(lastDay-daysBefore1900+1)*unitsPerDay
	if to.Kind == SmallDateTime {
		low, high = 0, (smallDays+1)*minutesPerDay
	}
	if n < low || n >= high {
		return Value{}, fault.New(8115, "expression", to.Kind)
	}
	return Value{typ: to, set: true, i: n}, nil
}

func (s *Settings) decimals(operator byte, a, b Value, to Type) (Value, *fault.Error) {
	convert := func(v, other Value) (Value, *fault.Error) {
		if v.Kind() == Decimal {
			return v, nil
		}
		t := DecimalType(v.Type())
		if !v.Kind().IsExactNumber() {
			t = DecimalType(other.Type())
		}
		return s.Assign(v, t)
	}
	left, err := convert(a, b)
	if err != nil {
		return Value{}, err
	}
	right, err := convert(b, a)
	if err != nil {
		return Value{}, err
	}
	return computeDecimal(operator, left.Decimal(), right.Decimal(), to)
}

// Negate gives the value with the other sign, and Complement its bits turned around.
func (s *Settings) Negate(v Value) (Value, *fault.Error) {
	switch k := v.Kind(); {
	case !k.IsNumber() && k != Unknown, k == Bit:
		return Value{}, fault.New(8117, k, "minus")
	case v.IsNull():
		return v, nil
	case k == Decimal:
		d := *v.Decimal()
		d.Negative = !d.Negative && !d.IsZero()
		return NewDecimal(v.typ, &d), nil
	case k.IsApproximate():
		return floatIn(-v.Float64(), v.typ)
	case k == TinyInt:
		return integers('-', 0, v.i, Of(SmallInt))
	case v.i == math.MinInt64 || !Fits(-v.i, k):
		return Value{}, fault.New(8115, "expression", k)
	default:
		return Value{typ: v.typ, set: true, i: -v.i}, nil
	}
}

// Complement turns the bits of a whole number around.
func (s *Settings) Complement(v Value) (Value, *fault.Error) {
	switch k := v.Kind(); {
	case !k.IsInteger() && k != Bit && k != Unknown:
		return Value{}, fault.New(8117, k, "'~'")
	case v.IsNull():
		return v, nil
	case k == Bit:
		return NewBit(v.i == 0), nil
	case k == TinyInt:
		return Integer(k, ^v.i&0xFF), nil
	default:
		return Integer(k, ^v.i), nil
	}
}
