package value

import "github.com/parley-broker/parley/internal/tsql/fault"

// A Permission says whether a conversion happens by itself, only by CAST and CONVERT, or never.
type Permission uint8

// The three permissions of the chart of conversions.
const (
	Never Permission = iota
	ByCast
	ByItself
)

// Allowed gives the permission of a conversion between two kinds.
func Allowed(from, to Kind) Permission {
	switch {
	case from == to, from == Unknown:
		return ByItself
	case from == Table || to == Table || from == Cursor || to == Cursor:
		return Never
	case to == Variant:
		return unless(from == XML || from == Text || from == NText || from == Image || from == RowVersion, ByItself)
	case from == Variant:
		return unless(to == XML || to == Text || to == NText || to == Image || to == RowVersion, ByCast)
	case from.IsBinary():
		return fromBinary(from, to)
	case from.IsCharacter():
		return fromCharacter(from, to)
	case from.IsTemporal():
		return fromTemporal(from, to)
	case from.IsNumber():
		return fromNumber(from, to)
	case from == UniqueIdentifier:
		return unless(!to.IsBinary() && !to.IsCharacter() || to == Image || to == RowVersion || to == Text || to == NText, ByItself)
	default: // xml
		return unless(!to.IsBinary() && !to.IsCharacter() || to == RowVersion || to == Image || to == Text || to == NText, ByCast)
	}
}

func unless(never bool, otherwise Permission) Permission {
	if never {
		return Never
	}
	return otherwise
}

func fromBinary(from, to Kind) Permission {
	switch {
	case from == Image:
		return unless(!to.IsBinary(), ByItself)
	case from == RowVersion:
		isNational := to == NChar || to == NVarChar
		return unless(to.IsApproximate() || isNational || to == UniqueIdentifier || to == XML || to.IsTemporal() && !to.IsOldTemporal() ||
			to == Text || to == NText, ByItself)
	case to.IsApproximate(), to == Text, to == NText:
		return Never
	case to.IsTemporal() && !to.IsOldTemporal():
		return ByCast
	}
	return ByItself
}

func fromCharacter(from, to Kind) Permission {
	switch {
	case from == Text || from == NText:
		return unless(!to.IsCharacter() && to != XML, ByItself)
	case to == RowVersion:
		return unless(from.IsUnicode(), ByCast)
	case to == Image:
		return unless(from.IsUnicode(), ByItself)
	case to.IsBinary():
		return ByCast
	}
	return ByItself
}

func fromTemporal(from, to Kind) Permission {
	switch {
	case to.IsTemporal():
		return unless(from == Date && to == Time || from == Time && to == Date, ByItself)
	case to == Text, to == NText, to == Image:
		return Never
	case to.IsCharacter():
		return ByItself
	case to == Binary, to == VarBinary:
		return ByCast
	case to.IsNumber(), to == RowVersion:
		return unless(!from.IsOldTemporal(), ByCast)
	}
	return Never
}

func fromNumber(from, to Kind) Permission {
	switch {
	case to.IsNumber(), to.IsOldTemporal(), to == Char, to == VarChar, to == NChar, to == NVarChar, to == Binary, to == VarBinary:
		return ByItself
	case to == RowVersion:
		return unless(from.IsApproximate(), ByItself)
	}
	return Never
}

// CheckAssignable gives errors 206 and 257 for a conversion that does not happen by itself.
func CheckAssignable(from, to Kind) *fault.Error { return checkAllowed(from, to, false) }

// CheckCastable gives error 529 for a conversion that does not exist.
func CheckCastable(from, to Kind) *fault.Error { return checkAllowed(from, to, true) }

// checkAllowed gives errors 206, 257 and 529 for a conversion that is not allowed.
func checkAllowed(from, to Kind, isExplicit bool) *fault.Error {
	switch permission := Allowed(from, to); {
	case permission == ByItself, permission == ByCast && isExplicit:
		return nil
	case permission == ByCast:
		return fault.New(257, from, to)
	case isExplicit:
		return fault.New(529, from, to)
	}
	return fault.New(206, from, to)
}
