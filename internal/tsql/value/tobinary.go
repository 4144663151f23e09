package value

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/apd/v3"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// toBinary converts a value to bytes. Bytes of text, identifiers and dates are cut and padded on the right, those of numbers and
// of datetime on the left.
func toBinary(v Value, to Type, style int) (Value, *fault.Error) {
	if v.Kind().IsCharacter() && style > 0 {
		return hexadecimal(v, to, style)
	}
	bytes, isNumber := BytesIn(v)
	if isNumber && to.Length != Max {
		length := int(to.Length)
		if len(bytes) > length {
			bytes = bytes[len(bytes)-length:]
		}
		if to.Kind.IsFixedLength() {
			bytes = padLeft(bytes, length, 0)
		}
	}
	return BytesOf(to, bytes), nil
}

// BytesIn gives the bytes that a value of another kind has as varbinary; isNumber says that they are aligned to the right.
func BytesIn(v Value) (bytes string, isNumber bool) {
	switch k := v.Kind(); {
	case k.IsBinary(), k == UniqueIdentifier:
		return v.s, false
	case k.IsUnicode():
		return EncodeUTF16(v.s), false
	case k.IsCharacter():
		return EncodeCodePage(v.s), false
	case k == XML:
		return "\xff\xfe" + EncodeUTF16(v.s), false
	case k == Decimal:
		return decimalBytes(v), true
	case k.IsTemporal():
		return temporalBytes(v)
	case k == Variant:
		return BytesIn(v.Inside())
	case k == Float:
		return string(binary.BigEndian.AppendUint64(nil, uint64(v.i))), true
	case k == Real:
		return string(binary.BigEndian.AppendUint32(nil, math.Float32bits(float32(v.Float64())))), true
	default:
		whole := string(binary.BigEndian.AppendUint64(nil, uint64(v.i)))
		return whole[8-width(k):], true
	}
}

// width gives the bytes of a whole number of a kind.
func width(k Kind) int {
	switch k {
	case Bit, TinyInt:
		return 1
	case SmallInt:
		return 2
	case Int, SmallMoney, Real:
		return 4
	default:
		return 8
	}
}

// decimalBytes gives precision, scale, 0, sign, and the digits as a number whose low byte comes first.
func decimalBytes(v Value) string {
	d := v.Decimal()
	sign := byte(1)
	if d.Negative {
		sign = 0
	}
	bytes := []byte{v.typ.Precision, v.typ.Scale, 0, sign}
	digits := d.Coeff.Bytes()
	slices.Reverse(digits)
	bytes = append(bytes, digits...)
	for len(bytes)%4 != 0 || len(bytes) == 4 {
		bytes = append(bytes, 0)
	}
	return string(bytes)
}

func temporalBytes(v Value) (bytes string, isNumber bool) {
	switch v.Kind() {
	case DateTime:
		whole := binary.BigEndian.AppendUint32(nil, uint32(floorDiv(v.i, unitsPerDay)))
		return string(binary.BigEndian.AppendUint32(whole, uint32(floorMod(v.i, unitsPerDay)))), true
	case SmallDateTime:
		whole := binary.BigEndian.AppendUint16(nil, uint16(v.i/minutesPerDay))
		return string(binary.BigEndian.AppendUint16(whole, uint16(v.i%minutesPerDay))), true
	case Date:
		return lowFirst(v.i, 3), false
	default:
	}
	m := v.Moment()
	offset := m.Offset
	if v.Kind() == DateTimeOffset {
		m = m.At(0)
	}
	scale := v.typ.Scale
	ticks := m.Ticks
	for range 7 - int(scale) {
		ticks /= 10
	}
	bytes = string([]byte{scale}) + lowFirst(ticks, timeWidth(scale))
	if v.Kind() != Time {
		bytes += lowFirst(m.Days, 3)
	}
	if v.Kind() == DateTimeOffset {
		bytes += lowFirst(int64(offset), 2)
	}
	return bytes, false
}

// timeWidth gives the bytes of a time of day with so many digits of its seconds.
func timeWidth(scale uint8) int {
	switch {
	case scale < 3:
		return 3
	case scale < 5:
		return 4
	}
	return 5
}

func lowFirst(n int64, length int) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(n))[:length])
}

func ofLowFirst(bytes string) (n int64) {
	for i := len(bytes) - 1; i >= 0; i-- {
		n = n<<8 | int64(bytes[i])
	}
	return n
}

// hexadecimal reads digits: behind 0x in style 1, alone in style 2.
func hexadecimal(v Value, to Type, style int) (Value, *fault.Error) {
	digits := v.s
	if style == 1 {
		rest, found := strings.CutPrefix(digits, "0x")
		if !found {
			rest, found = strings.CutPrefix(digits, "0X")
		}
		if !found {
			return Value{}, fault.New(8114, v.Kind(), to.Kind)
		}
		digits = rest
	}
	if style > 2 {
		return Value{}, fault.New(281, style, v.Kind())
	}
	bytes, err := hex.DecodeString(digits)
	if err != nil {
		return Value{}, fault.New(8114, v.Kind(), to.Kind)
	}
	return BytesOf(to, string(bytes)), nil
}

// numberOfBytes reads bytes as a number: its last bytes where there are more than it has.
func numberOfBytes(v Value, to Type) (Value, *fault.Error) {
	if to.Kind == Decimal {
		return decimalOfBytes(v, to)
	}
	n := highFirst(v.s, width(to.Kind))
	switch to.Kind {
	case Bit:
		return NewBit(n != 0), nil
	case Int, SmallMoney:
		n = int64(int32(n))
	case SmallInt:
		n = int64(int16(n))
	default:
	}
	return Value{typ: to, set: true, i: n}, nil
}

func highFirst(bytes string, length int) (n int64) {
	if len(bytes) > length {
		bytes = bytes[len(bytes)-length:]
	}
	for i := range len(bytes) {
		n = n<<8 | int64(bytes[i])
	}
	return n
}

func decimalOfBytes(v Value, to Type) (Value, *fault.Error) {
	if len(v.s) < 5 || v.s[0] > MaxPrecision || v.s[1] > v.s[0] {
		return Value{}, fault.New(8114, v.Kind(), to.Kind)
	}
	digits := []byte(v.s[4:])
	slices.Reverse(digits)
	d := &apd.Decimal{Exponent: -int32(v.s[1]), Negative: v.s[3] == 0}
	d.Coeff.SetBytes(digits)
	d.Negative = d.Negative && d.Coeff.Sign() != 0
	return fitDecimal(d, to, v.Kind().String())
}

// temporalOfBytes reads the bytes that temporalBytes writes.
func temporalOfBytes(v Value, to Type) (Value, *fault.Error) {
	switch to.Kind {
	case DateTime:
		days, units := highFirst(padLeft(v.s, 8, 0)[:max(len(v.s)-4, 4)], 4), highFirst(v.s, 4)
		return Value{typ: to, set: true, i: int64(int32(days))*unitsPerDay + units}, ranged(v, to, units < unitsPerDay)
	case SmallDateTime:
		whole := highFirst(v.s, 4)
		minutes := whole & 0xFFFF
		return Value{typ: to, set: true, i: (whole>>16)*minutesPerDay + minutes}, ranged(v, to, minutes < minutesPerDay)
	case Date:
		days := ofLowFirst(v.s[:min(len(v.s), 3)])
		return Value{typ: to, set: true, i: days}, ranged(v, to, len(v.s) == 3 && days <= lastDay)
	default:
	}
	bytes := v.s
	if bytes == "" || bytes[0] > 7 {
		return Value{}, fault.New(8114, v.Kind(), to.Kind)
	}
	scale := bytes[0]
	length := map[Kind]int{Time: 1, DateTime2: 4, DateTimeOffset: 6}[to.Kind] + timeWidth(scale)
	if len(bytes) != length {
		return Value{}, fault.New(8114, v.Kind(), to.Kind)
	}
	m := Moment{Days: daysBefore1900, Ticks: ofLowFirst(bytes[1 : 1+timeWidth(scale)])}
	for range 7 - int(scale) {
		m.Ticks *= 10
	}
	rest := bytes[1+timeWidth(scale):]
	if to.Kind != Time {
		m.Days = ofLowFirst(rest[:3])
	}
	if to.Kind == DateTimeOffset {
		m = m.At(int(int16(ofLowFirst(rest[3:]))))
	}
	result, ok := NewTemporal(to, m)
	return result, ranged(v, to, ok && m.Ticks < ticksPerDay)
}

func ranged(v Value, to Type, fits bool) *fault.Error {
	if fits {
		return nil
	}
	return fault.New(8114, v.Kind(), to.Kind)
}
