package value

import (
	"encoding/hex"
	"strings"
)

// Display writes a value as a cell of a result set, as sqlcmd does: NULL as NULL, bytes as hexadecimal digits, datetime in the ODBC
// form, money with four digits, float with fifteen.
func Display(v Value) string {
	if v.IsNull() {
		return "NULL"
	}
	v = v.Inside()
	switch k := v.Kind(); {
	case k.IsBinary():
		return "0x" + strings.ToUpper(hex.EncodeToString([]byte(v.s)))
	case k.IsMoney():
		return moneyText(v.i, 2)
	case k == Float:
		return shownFloat(v.Float64(), 15)
	case k == Real:
		return shownFloat(v.Float64(), 7)
	case k == SmallDateTime:
		text, _ := formatTemporal(v, 120)
		return text
	case k.IsTemporal():
		text, _ := formatTemporal(v, styleCanonical)
		return text
	default:
		return Defaults().Text(v)
	}
}

// shownFloat writes a float as results do: with E and no more digits of its exponent than two, where there are no more.
func shownFloat(f float64, digits int) string {
	mantissa, exponent, has := strings.Cut(shortFloat(f, digits), "e")
	if !has {
		return mantissa
	}
	if exponent[1] == '0' {
		exponent = exponent[:1] + exponent[2:]
	}
	return mantissa + "E" + exponent
}

// DisplayWidth gives the width of a column of a type in sqlcmd's results; -1 where it has no limit.
func DisplayWidth(t Type) int {
	switch k := t.Kind; {
	case k == Bit:
		return 1
	case k == Decimal:
		return int(t.Precision) + 2
	case k.IsBinary():
		if t.IsMax() {
			return -1
		}
		return 2*int(t.Length) + 2
	case k.IsCharacter(), k == XML:
		if t.IsMax() {
			return -1
		}
		return int(t.Length)
	case k == Time:
		return 8 + fractionWidth(t)
	case k == DateTime2:
		return 19 + fractionWidth(t)
	case k == DateTimeOffset:
		return 26 + fractionWidth(t)
	case k == Unknown:
		return 11
	}
	return fixedWidths[t.Kind]
}

var fixedWidths = map[Kind]int{
	TinyInt: 3, SmallInt: 6, Int: 11, BigInt: 20, SmallMoney: 12, Money: 21, Real: 14, Float: 24, Date: 16,
	SmallDateTime: 19, DateTime: 23, UniqueIdentifier: 36, Variant: 8000,
}

func fractionWidth(t Type) int {
	if t.Scale == 0 {
		return 0
	}
	return 1 + int(t.Scale)
}
