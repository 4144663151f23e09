package value

import (
	"cmp"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// identifierWeight has the bytes of a uniqueidentifier in the order in which they count.
var identifierWeight = [16]int{10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3}

// Compare compares two values as an operator does, which converts the one of lower precedence. Neither may be NULL.
func (s *Settings) Compare(a, b Value) (int, *fault.Error) {
	a, b, err := s.Together(a, b)
	if err != nil {
		return 0, err
	}
	return compareSame(a, b), nil
}

// CompareExactly is Compare by a collation for which case counts.
func (s *Settings) CompareExactly(a, b Value) (int, *fault.Error) {
	a, b, err := s.Together(a, b)
	if err != nil {
		return 0, err
	}
	if order := compareSame(a, b); order != 0 || !a.Kind().IsCharacter() {
		return order, nil
	}
	return -strings.Compare(strings.TrimRight(a.s, " "), strings.TrimRight(b.s, " ")), nil
}

// Together converts two values to the type that both share by precedence.
func (s *Settings) Together(a, b Value) (left, right Value, err *fault.Error) {
	if a.Kind() == b.Kind() && a.Kind() != Decimal {
		return a, b, nil
	}
	to, err := Higher(a.Type(), b.Type())
	if err != nil {
		return a, b, err
	}
	if left, err = s.Assign(a, to); err != nil {
		return a, b, err
	}
	right, err = s.Assign(b, to)
	return left, right, err
}

// compareSame compares two values of one kind.
func compareSame(a, b Value) int {
	switch k := a.Kind(); {
	case k.IsCharacter():
		return CompareText(a.s, b.s)
	case k == UniqueIdentifier:
		for _, at := range identifierWeight {
			if order := cmp.Compare(a.s[at], b.s[at]); order != 0 {
				return order
			}
		}
		return 0
	case k.IsBinary():
		return strings.Compare(strings.TrimRight(a.s, "\x00"), strings.TrimRight(b.s, "\x00"))
	case k == Decimal:
		return a.Decimal().Cmp(b.Decimal())
	case k.IsApproximate():
		return cmp.Compare(a.Float64(), b.Float64())
	case k == XML:
		return strings.Compare(a.s, b.s)
	case k == Variant:
		return compareVariants(a.Inside(), b.Inside())
	default:
		return cmp.Compare(a.i, b.i)
	}
}

// A family of types orders values of sql_variant: the family counts first.
func family(k Kind) int {
	switch {
	case k.IsTemporal():
		return 5
	case k.IsApproximate():
		return 4
	case k.IsNumber():
		return 3
	case k.IsCharacter():
		return 2
	case k.IsBinary():
		return 1
	}
	return 0
}

func compareVariants(a, b Value) int {
	if order := cmp.Compare(family(a.Kind()), family(b.Kind())); order != 0 {
		return order
	}
	left, right, err := Defaults().Together(a, b)
	if err != nil {
		return cmp.Compare(a.Kind(), b.Kind())
	}
	return compareSame(left, right)
}

// CheckComparable gives error 402 or 306 where two types cannot be compared by an operator.
func CheckComparable(a, b Type, operator string) *fault.Error {
	for _, k := range []Kind{a.Kind, b.Kind} {
		switch k {
		case Text, NText, Image:
			return fault.New(402, a.Kind, b.Kind, operatorNames[operator])
		case XML, Table, Cursor:
			if a.Kind != Unknown && b.Kind != Unknown {
				return fault.New(402, a.Kind, b.Kind, operatorNames[operator])
			}
		default:
		}
	}
	return nil
}

// operatorNames has what error 402 calls an operator.
var operatorNames = map[string]string{
	"=": "equal to", "<>": "not equal to", "!=": "not equal to", "<": "less than", "<=": "less than or equal to",
	">": "greater than", ">=": "greater than or equal to", "!<": "greater than or equal to", "!>": "less than or equal to",
	"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "modulo", "&": "'&'", "|": "'|'", "^": "'^'", "~": "'~'",
}
