package value

import (
	"encoding/hex"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// noStyle says that no style was given: each type then has its own default.
const noStyle = -1

// Assign converts a value by itself, as an assignment or an operator does: errors 206 and 257 where only CAST may.
func (s *Settings) Assign(v Value, to Type) (Value, *fault.Error) {
	if err := checkAllowed(v.Kind(), to.Kind, false); err != nil {
		return Value{}, err
	}
	return s.convert(v, to, noStyle)
}

// Cast converts a value as CAST does: error 529 where no conversion exists.
func (s *Settings) Cast(v Value, to Type) (Value, *fault.Error) {
	if err := checkAllowed(v.Kind(), to.Kind, true); err != nil {
		return Value{}, err
	}
	return s.convert(v, to, noStyle)
}

// ConvertStyled converts a value as CONVERT does with a style.
func (s *Settings) ConvertStyled(v Value, to Type, style int) (Value, *fault.Error) {
	if err := checkAllowed(v.Kind(), to.Kind, true); err != nil {
		return Value{}, err
	}
	if style < 0 {
		return Value{}, fault.New(281, style, v.Kind())
	}
	return s.convert(v, to, style)
}

func (s *Settings) convert(v Value, to Type, style int) (Value, *fault.Error) {
	switch {
	case v.IsNull():
		return Null(to), nil
	case v.typ == to:
		return v, nil
	case to.Kind == Variant:
		return NewVariant(v), nil
	case v.Kind() == Variant:
		return s.fromVariant(v.Inside(), to, style)
	case to.Kind.IsCharacter():
		return s.toText(v, to, style)
	case to.Kind.IsBinary():
		return toBinary(v, to, style)
	case to.Kind.IsTemporal():
		return s.toTemporal(v, to, style)
	case to.Kind == UniqueIdentifier:
		return toIdentifier(v, to)
	case to.Kind == XML:
		return toXML(v, to, style)
	case to.Kind == Table || to.Kind == Cursor:
		return v.retyped(to), nil
	}
	return s.toNumber(v, to)
}

func (s *Settings) fromVariant(inner Value, to Type, style int) (Value, *fault.Error) {
	if err := checkAllowed(inner.Kind(), to.Kind, true); err != nil {
		return Value{}, err
	}
	return s.convert(inner, to, style)
}

func (s *Settings) toNumber(v Value, to Type) (Value, *fault.Error) {
	if v.Kind().IsBinary() {
		return numberOfBytes(v, to)
	}
	switch to.Kind {
	case Bit:
		return toBit(v, to)
	case TinyInt, SmallInt, Int, BigInt:
		return toInteger(v, to)
	case SmallMoney, Money:
		return toMoney(v, to)
	case Decimal:
		return toDecimal(v, to)
	default:
		return toFloat(v, to)
	}
}

// toIdentifier reads the text of an identifier: 36 characters, in braces or not; more behind them is ignored.
func toIdentifier(v Value, to Type) (Value, *fault.Error) {
	if v.Kind().IsBinary() {
		return Value{typ: to, set: true, s: sizedBytes(Type{Kind: Binary, Length: 16}, v.s)}, nil
	}
	bytes, ok := ParseIdentifier(v.s)
	if !ok {
		return Value{}, fault.New(8169)
	}
	return Value{typ: to, set: true, s: bytes}, nil
}

// identifierOrder has the place in the text of each stored byte: the first three groups are stored from their low byte on.
var identifierOrder = [16]int{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15}

// ParseIdentifier gives the 16 stored bytes of an identifier's text.
func ParseIdentifier(text string) (bytes string, ok bool) {
	braced := strings.HasPrefix(text, "{")
	if braced {
		text = text[1:]
	}
	if len(text) < 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return "", false
	}
	if braced && (len(text) < 37 || text[36] != '}') {
		return "", false
	}
	read, err := hex.DecodeString(text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:36])
	if err != nil {
		return "", false
	}
	var stored [16]byte
	for i, place := range identifierOrder {
		stored[i] = read[place]
	}
	return string(stored[:]), true
}

// NewIdentifier gives a uniqueidentifier from its 16 stored bytes.
func NewIdentifier(stored string) Value {
	return Value{typ: Type{Kind: UniqueIdentifier}, set: true, s: stored}
}

// IdentifierOfUUID gives a uniqueidentifier from a UUID, whose bytes stand in the order of the text.
func IdentifierOfUUID(uuid [16]byte) Value {
	var stored [16]byte
	for i, place := range identifierOrder {
		stored[i] = uuid[place]
	}
	return NewIdentifier(string(stored[:]))
}

// UUID gives the bytes of a uniqueidentifier in the order of its text.
func (v Value) UUID() (uuid [16]byte) {
	for i, place := range identifierOrder {
		if i < len(v.s) {
			uuid[place] = v.s[i]
		}
	}
	return uuid
}

func identifierText(v Value) string {
	uuid := v.UUID()
	text := strings.ToUpper(hex.EncodeToString(uuid[:]))
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
