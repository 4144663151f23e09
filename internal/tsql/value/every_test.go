package value

import (
	"testing"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// Each value that a text can become is converted to each type, in each style: the result has the type that was asked for, or is an error
// that the chart of conversions allows.
func TestEachConversionGivesItsTypeOrAnError(t *testing.T) {
	t.Parallel()
	types := []Type{
		Of(Bit), Of(TinyInt), Of(SmallInt), Of(Int), Of(BigInt), Of(SmallMoney), Of(Money), Numeric(5, 2), Numeric(38, 37), Of(Real), Of(Float),
		Of(Date),
		{Kind: Time, Scale: 3},
		Of(SmallDateTime), Of(DateTime),
		{Kind: DateTime2, Scale: 0},
		Of(DateTimeOffset), Sized(Char, 3),
		Sized(VarChar, 8),
		{Kind: VarChar, Length: Max},
		Of(Text), Sized(NChar, 3), Sized(NVarChar, 40), Of(NText), Sized(Binary, 6),
		Sized(VarBinary, 8),
		{Kind: VarBinary, Length: Max},
		Of(Image), Of(RowVersion), Of(UniqueIdentifier), Of(XML), Of(Variant),
	}
	texts := []string{
		"", " ", "0", "-1", "300", "1.5", "-99999999999999999999.5", "1e300", "$1", "true", "x", "2006-10-14", "1753-01-01", "9999-12-31T23:59:59.999",
		"0001-01-01", "13:22:25.1234567", "2006-10-14 13:22:25 -08:00", "0E984725-C51C-4BF4-9960-E1C80E27ABA0", "<a b='1'>é</a>", "0x0102", "😀é",
	}
	s := Defaults()
	count := 0
	for _, text := range texts {
		for _, from := range types {
			v, err := s.Cast(NewNVarChar(text), from)
			if err != nil {
				continue
			}
			for _, to := range types {
				for _, style := range []int{noStyle, 0, 1, 2, 3, 101, 112, 121, 126, 127, 130} {
					count++
					got, err := s.convertAllowed(v, to, style)
					switch {
					case err == nil && got.Type() != to:
						t.Errorf("%q as %s in style %d to %s gave %s", text, from, style, to, got.Type())
					case err != nil && err.Number == 529 && Allowed(from.Kind, to.Kind) != Never && from.Kind != Variant:
						t.Errorf("%q as %s to %s: %v", text, from, to, err)
					case err == nil:
						_ = Display(got)
					}
				}
			}
		}
	}
	if count < 50_000 {
		t.Errorf("only %d conversions", count)
	}
}

func (s *Settings) convertAllowed(v Value, to Type, style int) (Value, *fault.Error) {
	if style == noStyle {
		return s.Cast(v, to)
	}
	return s.ConvertStyled(v, to, style)
}
