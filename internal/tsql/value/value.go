package value

import (
	"math"

	"github.com/cockroachdb/apd/v3"
)

// A Value is a value of a type, or its NULL. The zero Value is the constant NULL. Values are never changed.
type Value struct {
	typ Type
	set bool  // it is not NULL
	i   int64 // of bit, integers, money (ten thousandths), float and real (bits), and temporal kinds (see date.go)
	s   string
	ref any // *apd.Decimal of decimal, Value of sql_variant, int (minutes) of datetimeoffset, an object of table and cursor
}

// Null gives the NULL of a type.
func Null(t Type) Value { return Value{typ: t} }

// Type gives the value's type.
func (v Value) Type() Type { return v.typ }

// Kind gives the kind of the value's type.
func (v Value) Kind() Kind { return v.typ.Kind }

// IsNull reports whether the value is NULL.
func (v Value) IsNull() bool { return !v.set }

// Integer gives a number of one of the kinds of integers or of bit. The caller has checked its range.
func Integer(kind Kind, n int64) Value { return Value{typ: Type{Kind: kind}, set: true, i: n} }

// NewInt gives an int.
func NewInt(n int) Value { return Integer(Int, int64(n)) }

// NewBit gives a bit.
func NewBit(b bool) Value {
	if b {
		return Integer(Bit, 1)
	}
	return Integer(Bit, 0)
}

// NewFloat gives a float.
func NewFloat(f float64) Value {
	return Value{typ: Type{Kind: Float}, set: true, i: int64(math.Float64bits(f))}
}

// NewReal gives a real.
func NewReal(f float32) Value {
	return Value{typ: Type{Kind: Real}, set: true, i: int64(math.Float64bits(float64(f)))}
}

// NewMoney gives money or smallmoney from ten thousandths.
func NewMoney(kind Kind, tenThousandths int64) Value {
	return Value{typ: Type{Kind: kind}, set: true, i: tenThousandths}
}

// NewDecimal gives a decimal of a type; the number must fit it, with exactly the type's scale.
func NewDecimal(t Type, d *apd.Decimal) Value { return Value{typ: t, set: true, ref: d} }

// NewNVarChar gives text as a constant N'...' has it: as long as it is, (max) beyond 4000.
func NewNVarChar(text string) Value {
	return Value{typ: fitted(NVarChar, UnitsOf(text)), set: true, s: text}
}

// NewVarChar gives text as a constant '...' has it: in the code page, as long as it is, (max) beyond 8000.
func NewVarChar(text string) Value {
	text = ToCodePage(text)
	return Value{typ: fitted(VarChar, UnitsOf(text)), set: true, s: text}
}

// NewVarBinary gives bytes as a constant 0x... has them.
func NewVarBinary(bytes string) Value {
	return Value{typ: fitted(VarBinary, len(bytes)), set: true, s: bytes}
}

// fitted gives the type of a value that is so long.
func fitted(kind Kind, length int) Type {
	limit := MaxBytes
	if kind.IsUnicode() {
		limit = MaxUnicode
	}
	if length > limit {
		return Type{Kind: kind, Length: Max}
	}
	return Type{Kind: kind, Length: int32(max(length, 1))}
}

// TextOf gives text of a type of characters or of xml, cut to its length and padded where the length is fixed.
func TextOf(t Type, text string) Value {
	if t.Kind != XML && !t.Kind.IsUnicode() {
		text = ToCodePage(text)
	}
	return Value{typ: t, set: true, s: sizedText(t, text)}
}

// BytesOf gives bytes of a binary type, cut to its length and padded with zeros where the length is fixed.
func BytesOf(t Type, bytes string) Value { return Value{typ: t, set: true, s: sizedBytes(t, bytes)} }

// NewVariant gives a sql_variant that holds a value.
func NewVariant(v Value) Value {
	switch {
	case v.Kind() == Variant:
		return v
	case v.IsNull():
		return Null(Of(Variant))
	}
	return Value{typ: Of(Variant), set: true, ref: v}
}

// NewObject gives a value of table or cursor, which refers to an object of the interpreter.
func NewObject(kind Kind, object any) Value {
	return Value{typ: Type{Kind: kind}, set: true, ref: object}
}

// Int64 gives the number of bit and integers, the ten thousandths of money.
func (v Value) Int64() int64 { return v.i }

// Bool reports whether a bit or an integer is not 0.
func (v Value) Bool() bool { return v.set && v.i != 0 }

// Float64 gives the number of float and real.
func (v Value) Float64() float64 { return math.Float64frombits(uint64(v.i)) }

// Decimal gives the number of a decimal; the caller must not change it.
func (v Value) Decimal() *apd.Decimal { d, _ := v.ref.(*apd.Decimal); return d }

// Raw gives the text of characters and xml, the bytes of binary kinds, and the 16 bytes of uniqueidentifier as they are
// stored. Text is UTF-8, in which a lone half of a surrogate pair takes three bytes.
func (v Value) Raw() string { return v.s }

// Inside gives the value that a sql_variant holds, and any other value itself.
func (v Value) Inside() Value {
	if inner, ok := v.ref.(Value); ok && v.typ.Kind == Variant {
		return inner
	}
	return v
}

// Object gives the object of a table or cursor.
func (v Value) Object() any { return v.ref }

// retyped gives the same content under another type of the same family.
func (v Value) retyped(t Type) Value {
	v.typ = t
	return v
}
