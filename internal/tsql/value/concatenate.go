package value

import "github.com/parley-broker/parley/internal/tsql/fault"

// concatenationType gives the type of the + of two texts or of two binaries: as long as both, at most the longest that is not
// (max).
func concatenationType(a, b Type) Type {
	high := a
	if b.Kind > a.Kind {
		high = b
	}
	kind := high.Kind
	switch {
	case a.Kind == Unknown, b.Kind == Unknown:
		other := a
		if a.Kind == Unknown {
			other = b
		}
		return other
	case kind == NChar || kind == NVarChar:
		kind = NVarChar
		if a.Kind == NChar && b.Kind == NChar {
			kind = NChar
		}
	case a.Kind == VarChar || b.Kind == VarChar:
		kind = VarChar
	case a.Kind == VarBinary || b.Kind == VarBinary:
		kind = VarBinary
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
	return Sized(kind, int(a.Length)+int(b.Length))
}

// concatenate puts two texts or binaries together, cut at the length of the result. NULL makes NULL unless
// CONCAT_NULL_YIELDS_NULL is OFF.
func (s *Settings) concatenate(a, b Value, to Type) (Value, *fault.Error) {
	for _, side := range []*Value{&a, &b} {
		k := side.Kind()
		if k == to.Kind || k.IsCharacter() && to.Kind.IsCharacter() || k.IsBinary() && to.Kind.IsBinary() {
			continue
		}
		converted, err := s.Assign(*side, to)
		if err != nil {
			return Value{}, err
		}
		*side = converted
	}
	if (a.IsNull() || b.IsNull()) && (s.ConcatNullYieldNull || a.IsNull() && b.IsNull()) {
		return Null(to), nil
	}
	if to.Kind.IsBinary() {
		return BytesOf(to, a.s+b.s), nil
	}
	return TextOf(to, a.s+b.s), nil
}
