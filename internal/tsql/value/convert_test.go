package value

import (
	"strconv"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// typed gives the type that is written as name(attributes).
func typed(t *testing.T, text string) Type {
	t.Helper()
	name, rest, _ := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	var attributes []int
	for a := range strings.SplitSeq(rest, ",") {
		switch n, err := strconv.Atoi(a); {
		case a == "max":
			attributes = append(attributes, Max)
		case err == nil:
			attributes = append(attributes, n)
		}
	}
	found, err := Named(name, Conversion, attributes...)
	if err != nil {
		t.Fatal(text, err)
	}
	return found
}

// from gives a value written as type:text.
func from(t *testing.T, written string) Value {
	t.Helper()
	kind, text, _ := strings.Cut(written, ":")
	if hex, found := strings.CutPrefix(text, "0x"); found {
		bytes, err := Defaults().ConvertStyled(NewVarChar("0x"+hex), Of(VarBinary).sized(Max), 1)
		if err != nil {
			t.Fatal(written, err)
		}
		if kind == "varbinary" {
			return bytes
		}
		v, err := Defaults().Cast(bytes, typed(t, kind))
		if err != nil {
			t.Fatal(written, err)
		}
		return v
	}
	v, err := Defaults().Cast(NewNVarChar(text), typed(t, kind))
	if err != nil {
		t.Fatal(written, err)
	}
	return v
}

func (t Type) sized(length int32) Type {
	t.Length = length
	return t
}

// shown gives a value as a result set has it, or the number of an error and its text.
func shown(v Value, err *fault.Error) string {
	if err != nil {
		return strconv.Itoa(err.Number) + " " + err.Message
	}
	return Display(v)
}

func TestCastGivesTheValuesAndErrorsOfTheDocumentation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, to, want string }{
		{"nvarchar:12", "int", "12"},
		{"nvarchar: -12 ", "int", "-12"},
		{"varchar:", "int", "0"},
		{"varchar:", "datetime", "1900-01-01 00:00:00.000"},
		{"varchar(3):abc", "int", "245 Conversion failed when converting the varchar value 'abc' to data type int."},
		{"nvarchar(4):12.5", "int", "245 Conversion failed when converting the nvarchar value '12.5' to data type int."},
		{"varchar:99999999999", "int", "248 The conversion of the varchar value '99999999999' overflowed an int column."},
		{"varchar:300", "tinyint", "244 The conversion of the varchar value '300' overflowed an INT1 column. Use a larger integer column."},
		{"varchar:x", "bigint", "8114 Error converting data type varchar to bigint."},
		{"varchar:x", "decimal(5,2)", "8114 Error converting data type varchar to numeric."},
		{"varchar:", "decimal(5,2)", "8114 Error converting data type varchar to numeric."},
		{"varchar:1234.5", "decimal(5,2)", "8115 Arithmetic overflow error converting varchar to data type numeric."},
		{"varchar:x", "float", "8114 Error converting data type varchar to float."},
		{"varchar:1e2", "float", "100"},
		{"varchar:$1,234.56789", "money", "1234.5679"},
		{"varchar:x", "money", "235 Cannot convert a char value to money. The char value has incorrect syntax."},
		{"varchar:true", "bit", "1"},
		{"int:300", "tinyint", "220 Arithmetic overflow error for data type tinyint, value = 300."},
		{"bigint:3000000000", "int", "8115 Arithmetic overflow error converting expression to data type int."},
		{"decimal(10,4):10.6496", "int", "10"},
		{"decimal(10,4):-10.6496", "int", "-10"},
		{"decimal(10,4):10.6496", "decimal(18,0)", "11"},
		{"decimal(10,4):-10.6496", "decimal(18,0)", "-11"},
		{"decimal(10,4):10.3496847", "money", "10.3497"},
		{"float:10.9", "int", "10"},
		{"money:10.5", "int", "11"},
		{"float:3000000000", "int", "232 Arithmetic overflow error for type int, value = 3000000000.000000."},
		{"int:12345", "varchar(3)", "*"},
		{"int:12345", "nvarchar(3)", "8115 Arithmetic overflow error converting expression to data type nvarchar."},
		{"decimal(6,3):123.456", "varchar(3)", "8115 Arithmetic overflow error converting numeric to data type varchar."},
		{"float:312.051426075017", "varchar(30)", "312.051"},
		{"float:1234567", "varchar(30)", "1.23457e+006"},
		{"float:312.051426075017", "float", "312.051426075017"},
		{"money:4235.9819", "varchar(30)", "4235.98"},
		{"date:2006-10-14", "int", "529 Explicit conversion from data type date to int is not allowed."},
		{"int:5", "date", "529 Explicit conversion from data type int to date is not allowed."},
		{"datetime:2006-10-14 13:22:25.061", "varchar(30)", "Oct 14 2006  1:22PM"},
		{"datetime:2006-10-04 00:05:00", "varchar(30)", "Oct  4 2006 12:05AM"},
		{"datetime:2006-10-14 13:22:25.061", "datetime", "2006-10-14 13:22:25.060"},
		{"datetime:2006-10-14 13:22:25.999", "datetime", "2006-10-14 13:22:26.000"},
		{"datetime:2006-10-14 23:59:59.999", "datetime", "2006-10-15 00:00:00.000"},
		{"datetime:2006-10-14 13:22:29.998", "smalldatetime", "2006-10-14 13:22:00"},
		{"datetime:2006-10-14 13:22:30", "smalldatetime", "2006-10-14 13:23:00"},
		{"datetime2(7):2006-10-14 13:22:25.1234567", "datetime2(3)", "2006-10-14 13:22:25.123"},
		{"datetimeoffset(7):2006-10-14 13:22:25.1234567 +02:00", "datetime2(0)", "2006-10-14 13:22:25"},
		{"datetimeoffset(3):2006-10-14 13:22:25.123 -08:00", "nvarchar(50)", "2006-10-14 13:22:25.123 -08:00"},
		{"varchar:2006-13-45", "datetime", "242 The conversion of a varchar data type to a datetime data type resulted in an out-of-range value."},
		{"varchar:no date", "datetime", "241 Conversion failed when converting date and/or time from character string."},
		{"varchar:no date", "smalldatetime", "295 Conversion failed when converting character string to smalldatetime data type."},
		{"varchar:20061014", "date", "2006-10-14"},
		{"varchar:14 Oct 06", "date", "2006-10-14"},
		{"varchar:October 14, 1950", "date", "1950-10-14"},
		{"varchar:10/14/50", "date", "1950-10-14"},
		{"varchar:10/14/49", "date", "2049-10-14"},
		{"varchar:4:05 PM", "time(0)", "16:05:00"},
		{"varchar:2006-10-14T13:22:25", "datetime", "2006-10-14 13:22:25.000"},
		{"nvarchar(40):0E984725-C51C-4BF4-9960-E1C80E27ABA0", "uniqueidentifier", "0E984725-C51C-4BF4-9960-E1C80E27ABA0"},
		{"varchar:zz", "uniqueidentifier", "8169 Conversion failed when converting from a character string to uniqueidentifier."},
		{"uniqueidentifier:0E984725-C51C-4BF4-9960-E1C80E27ABA0", "varchar(20)", "8170 Insufficient result space to convert uniqueidentifier value to char."},
		{"varchar:abcdef", "char(3)", "abc"},
		{"varchar:ab", "char(4)", "ab  "},
		{"varchar:<a>", "xml", "9400 XML parsing: line 1, character 3, unexpected end of input"},
		{"varchar:<a>x &amp y</a>", "xml", "9411 XML parsing: line 1, character 9, semicolon expected"},
		{"varchar:<a>x & y</a>", "xml", "9421 XML parsing: line 1, character 6, illegal name character"},
		{"varchar(80):<a><b/ ></a>", "xml", "9412 XML parsing: line 1, character 7, '>' expected"},
		{"nvarchar(80):<?xml version=\"1.0\" encoding=\"UTF-8\"?><r/>", "xml", "9402 XML parsing: line 1, character 38, unable to switch the encoding"},
		{"varchar(80):<?xml version=\"1.0\" encoding=\"utf-16\"?><r/>", "xml", "9402 XML parsing: line 1, character 39, unable to switch the encoding"},
		{"varchar(80):<?xml version=\"1.0\" encoding=\"UTF-8\"?><r/>", "xml", "<r/>"},
		{"nvarchar(80):<?xml version=\"1.0\" encoding=\"UTF-16\"?><r/>", "xml", "<r/>"},
		{"varchar(60):<?xml version=\"1.0\"?> <a> <b/> </a>", "xml", "<a><b/></a>"},
	} {
		v := from(t, c.value)
		if got := shown(Defaults().Cast(v, typed(t, c.to))); got != c.want {
			t.Errorf("CAST(%s AS %s)\n got %s\nwant %s", c.value, c.to, got, c.want)
		}
	}
}

func TestBytesAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, bytes string }{
		{"int:1", "0x00000001"},
		{"int:-1", "0xFFFFFFFF"},
		{"bigint:258", "0x0000000000000102"},
		{"smallint:258", "0x0102"},
		{"tinyint:7", "0x07"},
		{"bit:1", "0x01"},
		{"money:1", "0x0000000000002710"},
		{"smallmoney:-1", "0xFFFFD8F0"},
		{"float:1", "0x3FF0000000000000"},
		{"real:1", "0x3F800000"},
		{"decimal(5,1):1.5", "0x050100010F000000"},
		{"decimal(5,1):-1.5", "0x050100000F000000"},
		{"datetime:1900-01-02 00:00:01", "0x000000010000012C"},
		{"datetime:1899-12-31", "0xFFFFFFFF00000000"},
		{"smalldatetime:1900-01-02 00:03", "0x00010003"},
		{"date:0001-01-02", "0x010000"},
		{"time(0):00:00:05", "0x00050000"},
		{"datetime2(7):0001-01-02 00:00:00.0000001", "0x070100000000010000"},
		{"datetimeoffset(0):0001-01-02 02:00:00 +02:00", "0x000000000100007800"},
		{"uniqueidentifier:0E984725-C51C-4BF4-9960-E1C80E27ABA0", "0x2547980E1CC5F44B9960E1C80E27ABA0"},
		{"nvarchar(10):Aé", "0x4100E900"},
		{"varchar(10):Aé€", "0x41E980"},
		{"xml:<a/>", "0xFFFE3C0061002F003E00"},
	} {
		v := from(t, c.value)
		got, err := Defaults().Cast(v, Type{Kind: VarBinary, Length: Max})
		if shown(got, err) != c.bytes {
			t.Errorf("CAST(%s AS varbinary(max)) = %s, not %s", c.value, shown(got, err), c.bytes)
			continue
		}
		if v.Kind().IsApproximate() {
			continue // no conversion leads back
		}
		if back, err := Defaults().Cast(got, v.Type()); shown(back, err) != Display(v) {
			t.Errorf("%s came back from its bytes as %s", c.value, shown(back, err))
		}
	}
}

func TestBytesOfNumbersAreAlignedToTheRight(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, to, want string }{
		{"int:258", "binary(2)", "0x0102"},
		{"int:258", "binary(6)", "0x000000000102"},
		{"varchar(2):ab", "binary(4)", "0x61620000"},
		{"varbinary:0x0102", "int", "258"},
		{"varbinary:0xFF00000001", "int", "1"},
		{"varbinary:0x0000000000000009", "bigint", "9"},
		{"varbinary:0x41", "nvarchar(10)", "A"},
		{"nvarchar(10):A", "varbinary(1)", "0x41"},
	} {
		if got := shown(Defaults().Cast(from(t, c.value), typed(t, c.to))); got != c.want {
			t.Errorf("CAST(%s AS %s) = %s, not %s", c.value, c.to, got, c.want)
		}
	}
}

func TestStylesOfConvert(t *testing.T) {
	t.Parallel()
	const at = "datetime:2006-10-04 13:02:05.123"
	for _, c := range []struct {
		value string
		style int
		want  string
	}{
		{at, 0, "Oct  4 2006  1:02PM"},
		{at, 1, "10/04/06"},
		{at, 2, "06.10.04"},
		{at, 3, "04/10/06"},
		{at, 4, "04.10.06"},
		{at, 5, "04-10-06"},
		{at, 6, "04 Oct 06"},
		{at, 7, "Oct 04, 06"},
		{at, 8, "13:02:05"},
		{at, 9, "Oct  4 2006  1:02:05:123PM"},
		{at, 10, "10-04-06"},
		{at, 11, "06/10/04"},
		{at, 12, "061004"},
		{at, 13, "04 Oct 2006 13:02:05:123"},
		{at, 14, "13:02:05:123"},
		{at, 20, "2006-10-04 13:02:05"},
		{at, 21, "2006-10-04 13:02:05.123"},
		{at, 22, "10/04/06  1:02:05 PM"},
		{at, 23, "2006-10-04"},
		{at, 24, "13:02:05"},
		{at, 101, "10/04/2006"},
		{at, 103, "04/10/2006"},
		{at, 104, "04.10.2006"},
		{at, 107, "Oct 04, 2006"},
		{at, 112, "20061004"},
		{at, 113, "04 Oct 2006 13:02:05:123"},
		{at, 120, "2006-10-04 13:02:05"},
		{at, 126, "2006-10-04T13:02:05.123"},
		{"datetime:2006-10-04 13:02:05", 126, "2006-10-04T13:02:05"},
		{at, 99, "281 99 is not a valid style number when converting from datetime to a character string."},
		{"datetimeoffset(7):2006-12-12 23:45:12 -08:00", 127, "2006-12-13T07:45:12Z"},
		{"money:4235.9819", 0, "4235.98"},
		{"money:3510.92", 1, "3,510.92"},
		{"money:4235.9819", 2, "4235.9819"},
		{"money:-1234567.5", 1, "-1,234,567.50"},
		{"float:0.1", 3, "1.0000000000000001e-001"},
		{"float:123456.789", 1, "1.2345679e+005"},
		{"varbinary:0x4E616D65", 0, "Name"},
		{"varbinary:0x4E616D65", 1, "0x4E616D65"},
		{"varbinary:0x4E616D65", 2, "4E616D65"},
	} {
		got := shown(Defaults().ConvertStyled(from(t, c.value), Type{Kind: VarChar, Length: 40}, c.style))
		if got != c.want {
			t.Errorf("CONVERT(varchar(40), %s, %d) = %q, not %q", c.value, c.style, got, c.want)
		}
	}
}

func TestImplicitConversionsOfTheChart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, to, want string }{
		{"varchar:a", "varbinary(10)", "257 Implicit conversion from data type varchar to varbinary is not allowed. Use the CONVERT function to run this query."},
		{"datetime:2006-10-04", "int", "257 Implicit conversion from data type datetime to int is not allowed. Use the CONVERT function to run this query."},
		{"int:1", "date", "206 Operand type clash: int is incompatible with date"},
		{"int:1", "uniqueidentifier", "206 Operand type clash: int is incompatible with uniqueidentifier"},
		{"xml:<a/>", "nvarchar(10)", "257 Implicit conversion from data type xml to nvarchar is not allowed. Use the CONVERT function to run this query."},
		{"varbinary:0x3C0061002F003E00", "xml", "<a/>"},
		{"varchar:5", "int", "5"},
		{"int:5", "varchar(10)", "5"},
	} {
		if got := shown(Defaults().Assign(from(t, c.value), typed(t, c.to))); got != c.want {
			t.Errorf("%s assigned to %s: %s, not %s", c.value, c.to, got, c.want)
		}
	}
}
