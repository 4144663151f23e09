package value

import "github.com/parley-broker/parley/internal/tsql/fault"

// Higher gives the type that two types become where both are results of one expression: that of higher precedence, wide enough for
// both. Error 206 where no implicit conversion leads there.
func Higher(a, b Type) (Type, *fault.Error) {
	if a.Kind > b.Kind {
		a, b = b, a
	}
	if a.Kind == Unknown {
		return b, nil
	}
	if a == b {
		return b, nil
	}
	if Allowed(a.Kind, b.Kind) != ByItself {
		return Type{}, checkAllowed(a.Kind, b.Kind, false)
	}
	switch {
	case b.Kind == Decimal && a.Kind.IsExactNumber():
		d := DecimalType(a)
		scale := max(d.Scale, b.Scale)
		precision := max(d.Precision-d.Scale, b.Precision-b.Scale) + scale
		if precision > MaxPrecision {
			whole := max(d.Precision-d.Scale, b.Precision-b.Scale)
			return Numeric(MaxPrecision, int(min(scale, MaxPrecision-min(whole, MaxPrecision)))), nil
		}
		return Numeric(int(precision), int(scale)), nil
	case b.Kind == Decimal && a.Kind.IsCharacter():
		return b, nil
	case isSized(a.Kind) && isSized(b.Kind):
		return higherLength(a, b), nil
	case b.Kind == Time || b.Kind == DateTime2 || b.Kind == DateTimeOffset:
		if isScaled(a.Kind) {
			b.Scale = max(a.Scale, b.Scale)
		} else if a.Kind == DateTime {
			b.Scale = max(b.Scale, 3)
		}
		return b, nil
	}
	return b, nil
}

func isSized(k Kind) bool { return k >= Binary && k <= NVarChar }

func isScaled(k Kind) bool { return k == Time || k == DateTime2 || k == DateTimeOffset }

// higherLength gives the higher of two types with a length, as long as the longer, and of variable length if one of both is.
func higherLength(a, b Type) Type {
	kind := b.Kind
	switch {
	case kind == NChar && a.Kind == VarChar:
		kind = NVarChar
	case kind == Char && a.Kind == VarBinary:
		kind = VarChar
	}
	if a.Length == Max || b.Length == Max {
		switch kind {
		case Char:
			kind = VarChar
		case NChar:
			kind = NVarChar
		case Binary:
			kind = VarBinary
		default:
		}
		return Type{Kind: kind, Length: Max}
	}
	return Sized(kind, int(max(a.Length, b.Length)))
}
