package value

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// toText converts a value to a type of characters.
func (s *Settings) toText(v Value, to Type, style int) (Value, *fault.Error) {
	if v.Kind().IsCharacter() {
		return TextOf(to, v.s), nil
	}
	if v.Kind().IsBinary() {
		return bytesToText(v, to, style)
	}
	text, err := s.textOf(v, style)
	if err != nil {
		return Value{}, err
	}
	if v.Kind() != XML && !v.Kind().IsTemporal() && to.Length > 0 && len(text) > int(to.Length) {
		return tooLong(v, to)
	}
	if v.Kind() == XML && to.Length > 0 && UnitsOf(text) > int(to.Length) {
		return Value{}, fault.New(6354)
	}
	return TextOf(to, text), nil
}

// tooLong gives the result of a number that does not fit its text: a star for small integers, otherwise an error.
func tooLong(v Value, to Type) (Value, *fault.Error) {
	switch k := v.Kind(); {
	case k == UniqueIdentifier:
		return Value{}, fault.New(8170)
	case k == Money || k == SmallMoney:
		return Value{}, fault.New(234, to.Kind)
	case k == Decimal:
		return Value{}, fault.New(8115, k, to.Kind)
	case k.IsApproximate():
		return Value{}, fault.New(232, to.Kind, strconv.FormatFloat(v.Float64(), 'f', 6, 64))
	case k == BigInt || to.Kind.IsUnicode():
		return Value{}, fault.New(8115, "expression", to.Kind)
	default:
		return TextOf(to, "*"), nil
	}
}

// textOf writes a value in a style.
func (s *Settings) textOf(v Value, style int) (string, *fault.Error) {
	switch k := v.Kind(); {
	case k == Bit || k.IsInteger():
		return strconv.FormatInt(v.i, 10), nil
	case k == Decimal:
		return v.Decimal().Text('f'), nil
	case k.IsMoney():
		return moneyText(v.i, style), nil
	case k.IsApproximate():
		return floatText(v, style), nil
	case k == UniqueIdentifier:
		return identifierText(v), nil
	case k.IsTemporal():
		if style == noStyle {
			style = 0
			if !k.IsOldTemporal() {
				style = styleCanonical
			}
		}
		text, known := formatTemporal(v, style)
		if !known {
			return "", fault.New(281, style, k)
		}
		return text, nil
	case k == Variant:
		return s.textOf(v.Inside(), style)
	default:
		return v.s, nil
	}
}

// Text writes a value without NULL as PRINT and the + of strings do; NULL gives nothing.
func (s *Settings) Text(v Value) string {
	if v.IsNull() {
		return ""
	}
	if v.Inside().Kind().IsBinary() {
		return DecodeCodePage(v.Inside().s)
	}
	text, err := s.textOf(v, noStyle)
	if err != nil {
		return ""
	}
	return text
}

// moneyText writes money: two digits behind the point in styles 0 and 1, four in styles 2 and 126, commas in style 1.
func moneyText(tenThousandths int64, style int) string {
	sign, n := "", uint64(tenThousandths)
	if tenThousandths < 0 {
		sign, n = "-", -n
	}
	if style == 2 || style == 126 {
		return sign + strconv.FormatUint(n/10_000, 10) + "." + padLeft(strconv.FormatUint(n%10_000, 10), 4, '0')
	}
	n = (n + 50) / 100
	whole := strconv.FormatUint(n/100, 10)
	if style == 1 {
		for at := len(whole) - 3; at > 0; at -= 3 {
			whole = whole[:at] + "," + whole[at:]
		}
	}
	return sign + whole + "." + padLeft(strconv.FormatUint(n%100, 10), 2, '0')
}

func padLeft(text string, width int, with byte) string {
	if len(text) >= width {
		return text
	}
	return strings.Repeat(string(with), width-len(text)) + text
}

// floatText writes float and real: at most 6 digits, or 8, 16 and 17 with an exponent in styles 1, 2 and 3.
func floatText(v Value, style int) string {
	f := v.Float64()
	switch style {
	case 1:
		return exponentOfThree(strconv.FormatFloat(f, 'e', 7, 64))
	case 2:
		return exponentOfThree(strconv.FormatFloat(f, 'e', 15, 64))
	case 3:
		if v.Kind() == Real {
			return exponentOfThree(strconv.FormatFloat(f, 'e', 8, 64))
		}
		return exponentOfThree(strconv.FormatFloat(f, 'e', 16, 64))
	}
	return shortFloat(f, 6)
}

// shortFloat writes at most so many digits, with an exponent where the number is far from 1.
func shortFloat(f float64, digits int) string {
	if f == 0 {
		return "0"
	}
	text := strconv.FormatFloat(f, 'e', digits-1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	power, _ := strconv.Atoi(exponent)
	if power < -5 || power >= digits {
		if strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		return exponentOfThree(mantissa + "e" + exponent)
	}
	text = strconv.FormatFloat(f, 'f', max(digits-1-power, 0), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// exponentOfThree writes an exponent with three digits.
func exponentOfThree(text string) string {
	mantissa, exponent, _ := strings.Cut(text, "e")
	return mantissa + "e" + exponent[:1] + padLeft(exponent[1:], 3, '0')
}

// bytesToText reads bytes as text, or writes them as hexadecimal digits: with 0x in style 1, without in style 2.
func bytesToText(v Value, to Type, style int) (Value, *fault.Error) {
	switch {
	case style == 1:
		digits := strings.ToUpper(hex.EncodeToString([]byte(v.s)))
		if to.Length > 0 && len(digits)+2 > int(to.Length) {
			digits = digits[:max(int(to.Length)-2, 0)/2*2]
		}
		return TextOf(to, "0x"+digits), nil
	case style == 2:
		digits := strings.ToUpper(hex.EncodeToString([]byte(v.s)))
		if to.Length > 0 && len(digits) > int(to.Length) {
			digits = digits[:int(to.Length)/2*2]
		}
		return TextOf(to, digits), nil
	case style > 0:
		return Value{}, fault.New(281, style, v.Kind())
	case to.Kind.IsUnicode():
		return TextOf(to, DecodeUTF16(v.s)), nil
	default:
		return TextOf(to, DecodeCodePage(v.s)), nil
	}
}
