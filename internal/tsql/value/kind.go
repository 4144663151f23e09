package value

// A Kind is a system data type without its length, precision and scale. Kinds stand in the order of precedence, the lowest
// first: where two meet in an operator, the earlier is converted to the later.
type Kind uint8

// The kinds of values; Unknown is the type of the constant NULL.
const (
	Unknown Kind = iota
	Binary
	VarBinary
	Char
	VarChar
	NChar
	NVarChar
	UniqueIdentifier
	RowVersion
	Image
	Text
	NText
	Bit
	TinyInt
	SmallInt
	Int
	BigInt
	SmallMoney
	Money
	Decimal
	Real
	Float
	Time
	Date
	SmallDateTime
	DateTime
	DateTime2
	DateTimeOffset
	XML
	Variant
	Table
	Cursor
)

var kindNames = [...]string{
	Unknown: "NULL", Binary: "binary", VarBinary: "varbinary", Char: "char", VarChar: "varchar", NChar: "nchar",
	NVarChar: "nvarchar", UniqueIdentifier: "uniqueidentifier", RowVersion: "timestamp", Image: "image", Text: "text",
	NText: "ntext", Bit: "bit", TinyInt: "tinyint", SmallInt: "smallint", Int: "int", BigInt: "bigint",
	SmallMoney: "smallmoney", Money: "money", Decimal: "numeric", Real: "real", Float: "float", Time: "time", Date: "date",
	SmallDateTime: "smalldatetime", DateTime: "datetime", DateTime2: "datetime2", DateTimeOffset: "datetimeoffset",
	XML: "xml", Variant: "sql_variant", Table: "table", Cursor: "cursor",
}

// String gives the name of the type as errors spell it; decimal is numeric there.
func (k Kind) String() string { return kindNames[k] }

// IsInteger reports whether the kind is tinyint, smallint, int or bigint.
func (k Kind) IsInteger() bool { return k >= TinyInt && k <= BigInt }

// IsExactNumber reports whether the kind is bit, an integer, money or decimal.
func (k Kind) IsExactNumber() bool { return k >= Bit && k <= Decimal }

// IsNumber reports whether the kind is a number, bit included.
func (k Kind) IsNumber() bool { return k >= Bit && k <= Float }

// IsMoney reports whether the kind is money or smallmoney.
func (k Kind) IsMoney() bool { return k == Money || k == SmallMoney }

// IsApproximate reports whether the kind is float or real.
func (k Kind) IsApproximate() bool { return k == Float || k == Real }

// IsUnicode reports whether the kind holds text as UTF-16.
func (k Kind) IsUnicode() bool { return k == NChar || k == NVarChar || k == NText }

// IsCharacter reports whether the kind is text, of a code page or Unicode, also of the old large kinds.
func (k Kind) IsCharacter() bool { return k >= Char && k <= NVarChar || k == Text || k == NText }

// IsBinary reports whether the kind is bytes.
func (k Kind) IsBinary() bool { return k == Binary || k == VarBinary || k == RowVersion || k == Image }

// IsTemporal reports whether the kind is a date or a time of day.
func (k Kind) IsTemporal() bool { return k >= Time && k <= DateTimeOffset }

// IsOldTemporal reports whether the kind is datetime or smalldatetime, which compute with numbers.
func (k Kind) IsOldTemporal() bool { return k == DateTime || k == SmallDateTime }

// IsFixedLength reports whether values are padded to the length of their type.
func (k Kind) IsFixedLength() bool { return k == Char || k == NChar || k == Binary || k == RowVersion }
