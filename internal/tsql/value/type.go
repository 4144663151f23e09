package value

import (
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// Max is the length of varchar(max), nvarchar(max) and varbinary(max).
const Max = -1

// The longest values that are not (max), and the defaults.
const (
	MaxBytes         = 8000 // of char, varchar, binary and varbinary
	MaxUnicode       = 4000 // characters of nchar and nvarchar
	MaxPrecision     = 38
	convertLength    = 30 // of CAST and CONVERT to a type without a length
	defaultPrecision = 18
	floatPrecision   = 53
)

// A Type is a data type with its attributes. The zero Type is that of the constant NULL.
type Type struct {
	Kind      Kind
	Precision uint8 // digits of decimal
	Scale     uint8 // digits behind the point of decimal, or of the seconds of time, datetime2 and datetimeoffset
	Length    int32 // bytes of char, varchar and binaries, UTF-16 units of nchar and nvarchar, or Max
}

// Of gives a type that has no attributes, or the defaults of those it has: length 1, decimal(18,0), seconds with 7 digits.
func Of(kind Kind) Type {
	switch kind {
	case Binary, VarBinary, Char, VarChar, NChar, NVarChar:
		return Type{Kind: kind, Length: 1}
	case Decimal:
		return Type{Kind: kind, Precision: defaultPrecision}
	case Time, DateTime2, DateTimeOffset:
		return Type{Kind: kind, Scale: 7}
	case RowVersion:
		return Type{Kind: kind, Length: 8}
	default:
		return Type{Kind: kind}
	}
}

// Sized gives a type of characters or bytes with its length, at most Max.
func Sized(kind Kind, length int) Type {
	limit := MaxBytes
	if kind.IsUnicode() {
		limit = MaxUnicode
	}
	if length > limit {
		length = limit
	}
	return Type{Kind: kind, Length: int32(length)}
}

// Numeric gives decimal(precision, scale).
func Numeric(precision, scale int) Type {
	return Type{Kind: Decimal, Precision: uint8(precision), Scale: uint8(scale)}
}

// IsMax reports whether a value may be longer than a page: (max), xml and the old large kinds.
func (t Type) IsMax() bool {
	return t.Length == Max || t.Kind == XML || t.Kind == Text || t.Kind == NText || t.Kind == Image
}

// String gives the type as it is declared.
func (t Type) String() string {
	switch t.Kind {
	case Binary, VarBinary, Char, VarChar, NChar, NVarChar:
		if t.Length == Max {
			return t.Kind.String() + "(max)"
		}
		return fmt.Sprintf("%s(%d)", t.Kind, t.Length)
	case Decimal:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case Time, DateTime2, DateTimeOffset:
		return fmt.Sprintf("%s(%d)", t.Kind, t.Scale)
	default:
		return t.Kind.String()
	}
}

var kindsByName = map[string]Kind{
	"bit": Bit, "tinyint": TinyInt, "smallint": SmallInt, "int": Int, "integer": Int, "bigint": BigInt,
	"decimal": Decimal, "dec": Decimal, "numeric": Decimal, "smallmoney": SmallMoney, "money": Money,
	"float": Float, "double precision": Float, "real": Real,
	"date": Date, "time": Time, "smalldatetime": SmallDateTime, "datetime": DateTime, "datetime2": DateTime2,
	"datetimeoffset": DateTimeOffset,
	"char":           Char, "character": Char, "varchar": VarChar, "char varying": VarChar, "character varying": VarChar,
	"text": Text, "nchar": NChar, "national char": NChar, "national character": NChar, "nvarchar": NVarChar,
	"national char varying": NVarChar, "national character varying": NVarChar, "ntext": NText, "national text": NText,
	"binary": Binary, "varbinary": VarBinary, "binary varying": VarBinary, "image": Image,
	"timestamp": RowVersion, "rowversion": RowVersion, "uniqueidentifier": UniqueIdentifier, "xml": XML,
	"sql_variant": Variant, "cursor": Cursor, "table": Table,
}

// A Use says where a type is named: it decides the default length.
type Use uint8

// A declaration without a length has length 1, a conversion has 30.
const (
	Declaration Use = iota
	Conversion
)

// Named gives the system type of a name with its attributes as they stand in parentheses: numbers, and Max for max. Names are
// compared without case. An unknown name, and attributes that the type cannot have, are errors 243, 2715, 2716, 2717, 2750,
// 2751 and 291.
func Named(name string, use Use, attributes ...int) (Type, *fault.Error) {
	name = strings.ToLower(name)
	if name == "sysname" && len(attributes) == 0 {
		return Sized(NVarChar, 128), nil
	}
	kind, known := kindsByName[name]
	switch {
	case !known && use == Conversion:
		return Type{}, fault.New(243, name)
	case !known:
		return Type{}, fault.New(2715, 1, name)
	}
	t := Of(kind)
	if use == Conversion && t.Length == 1 {
		t.Length = convertLength
	}
	if len(attributes) == 0 {
		return t, nil
	}
	return t.with(name, use, attributes)
}

func (t Type) with(name string, use Use, attributes []int) (Type, *fault.Error) {
	first := attributes[0]
	switch t.Kind {
	case Binary, VarBinary, Char, VarChar, NChar, NVarChar:
		limit := MaxBytes
		if t.Kind.IsUnicode() {
			limit = MaxUnicode
		}
		fixed := t.Kind.IsFixedLength()
		switch {
		case len(attributes) > 1 || first < 1 && first != Max || fixed && first == Max:
			return Type{}, fault.New(102, fmt.Sprint(first))
		case first > limit && use == Conversion:
			return Type{}, fault.New(2717, first, name, limit)
		case first > limit:
			return Type{}, fault.New(2717, first, name, limit)
		}
		t.Length = int32(first)
	case Decimal:
		scale := 0
		if len(attributes) > 1 {
			scale = attributes[1]
		}
		switch {
		case first > MaxPrecision:
			return Type{}, fault.New(2750, 1, first, MaxPrecision)
		case scale > first:
			return Type{}, fault.New(2751, 1, scale, first)
		case first < 1 || scale < 0:
			return Type{}, fault.New(2750, 1, first, MaxPrecision)
		}
		return Numeric(first, scale), nil
	case Float:
		switch {
		case first < 1 || first > floatPrecision:
			return Type{}, fault.New(2750, 1, first, floatPrecision)
		case first <= 24:
			t.Kind = Real
		}
	case Time, DateTime2, DateTimeOffset:
		if first < 0 || first > 7 {
			return Type{}, fault.New(1002, 1, first)
		}
		t.Scale = uint8(first)
	default:
		if use == Conversion {
			return Type{}, fault.New(291, name)
		}
		return Type{}, fault.New(2716, 1, name)
	}
	return t, nil
}
