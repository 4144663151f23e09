package function

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// argument reads 'text', N'text', 0x00, a number, NULL, type:text, or the bare name of a date part.
func argument(t *testing.T, written string) value.Value {
	t.Helper()
	s := value.Defaults()
	kind, text, isTyped := strings.Cut(written, ":")
	switch {
	case written == "NULL":
		return value.Null(value.Of(value.Int))
	case strings.HasPrefix(written, "'"):
		return value.NewVarChar(strings.Trim(written, "'"))
	case strings.HasPrefix(written, "N'"):
		return value.NewNVarChar(strings.Trim(written[1:], "'"))
	case strings.HasPrefix(written, "0x"):
		v, err := s.ConvertStyled(value.NewVarChar(written), value.Sized(value.VarBinary, 100), 1)
		if err != nil {
			t.Fatal(err)
		}
		return value.NewVarBinary(v.Raw())
	case isTyped:
		to, err := value.Named(kind, value.Declaration)
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Cast(value.NewVarChar(text), to)
		if err != nil {
			t.Fatal(err)
		}
		return v
	case strings.ContainsAny(written, "eE") && strings.Trim(written, "0123456789eE.-") == "":
		f, err := strconv.ParseFloat(written, 64)
		if err != nil {
			t.Fatal(err)
		}
		return value.NewFloat(f)
	case strings.Contains(written, "."):
		v, err := value.DecimalConstant(written)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	n, err := strconv.Atoi(written)
	if err != nil {
		return value.NewVarChar(written) // the name of a part
	}
	return value.NewInt(n)
}

// call evaluates NAME(a; b; c) and gives the result as a result set shows it, or the number and the text of the error.
func call(t *testing.T, written string) (string, value.Type) {
	t.Helper()
	name, rest, _ := strings.Cut(strings.TrimSuffix(written, ")"), "(")
	f, known := Lookup(name)
	if !known {
		t.Fatal("no function ", name)
	}
	var values []value.Value
	var arguments []Argument
	if rest != "" {
		for part := range strings.SplitSeq(rest, "; ") {
			v := argument(t, part)
			values = append(values, v)
			arguments = append(arguments, Argument{Type: v.Type(), Constant: &v})
		}
	}
	result, err := f.TypeOf(arguments)
	var got value.Value
	if err == nil {
		c := &Context{Settings: value.Defaults(), Now: time.Date(2006, 10, 14, 13, 22, 25, 61_000_000, time.FixedZone("", 7200))}
		got, err = f.Evaluate(c, result, values)
	}
	if err != nil {
		return strconv.Itoa(err.Number) + " " + err.Message, result
	}
	if got.Kind() != result.Kind {
		t.Errorf("%s is %s, but was announced as %s", written, got.Type(), result)
	}
	return value.Display(got), result
}

func TestFunctionsGiveTheResultsOfTheDocumentation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ call, want string }{
		{"ASCII('A')", "65"},
		{"ASCII('')", "NULL"},
		{"CHAR(65)", "A"},
		{"CHAR(256)", "NULL"},
		{"NCHAR(8364)", "€"},
		{"UNICODE(N'Å')", "197"},
		{"CHARINDEX('bicycle'; 'Reflectors are vital safety components of your bicycle.')", "48"},
		{"CHARINDEX('vital'; 'these are vital'; 5)", "11"},
		{"CHARINDEX('TEST'; 'This is a test')", "11"},
		{"CHARINDEX('is'; 'This is a string'; 4)", "6"},
		{"CHARINDEX(''; 'a')", "0"},
		{"CONCAT('Happy '; 'Birthday '; 11; '/'; '25')", "Happy Birthday 11/25"},
		{"CONCAT('a'; NULL; 'b')", "ab"},
		{"CONCAT_WS(','; '1 Microsoft Way'; NULL; NULL; 'Redmond'; 98052)", "1 Microsoft Way,Redmond,98052"},
		{"DIFFERENCE('Green'; 'Greene')", "4"},
		{"DIFFERENCE('Blotchet-Halls'; 'Greene')", "0"},
		{"SOUNDEX('Smith')", "S530"},
		{"SOUNDEX('Smythe')", "S530"},
		{"LEFT('abcdefg'; 2)", "ab"},
		{"LEFT('abc'; -1)", "537 Invalid length parameter passed to the LEFT or SUBSTRING function."},
		{"RIGHT('abcdefg'; 2)", "fg"},
		{"RIGHT('abc'; 10)", "abc"},
		{"LEN('five blanks     ')", "11"},
		{"LEN(N'😀')", "2"},
		{"DATALENGTH(N'abc ')", "8"},
		{"DATALENGTH('abc ')", "4"},
		{"DATALENGTH(int:5)", "4"},
		{"DATALENGTH(datetime2:2006-10-14)", "8"},
		{"LOWER('ABc')", "abc"},
		{"UPPER('abc')", "ABC"},
		{"LTRIM('     Five')", "Five"},
		{"RTRIM('Four    ')", "Four"},
		{"TRIM('     test    ')", "test"},
		{"PATINDEX('%ter%'; 'interesting data')", "3"},
		{"PATINDEX('%en_ure%'; 'Please ensure the door is locked!')", "8"},
		{"PATINDEX('%[^ 0-9A-Za-z]%'; 'Please ensure the door is locked!')", "33"},
		{"PATINDEX('b%'; 'abc')", "0"},
		{"QUOTENAME('abc[]def')", "[abc[]]def]"},
		{"QUOTENAME('abc[]def')", "[abc[]]def]"},
		{"QUOTENAME('a''b'; '''')", "NULL"},
		{"QUOTENAME('abc def'; '(')", "(abc def)"},
		{"REPLACE('abcdefghicde'; 'cde'; 'xxx')", "abxxxfghixxx"},
		{"REPLACE('This is a Test'; 'TEST'; 'desk')", "This is a desk"},
		{"REPLICATE('0'; 4)", "0000"},
		{"REPLICATE('a'; -1)", "NULL"},
		{"REVERSE('Ken')", "neK"},
		{"SPACE(3)", "   "},
		{"STR(123.45; 6; 1)", " 123.5"},
		{"STR(123.45; 2; 2)", "**"},
		{"STR(1234.0)", "      1234"},
		{"STUFF('abcdef'; 2; 3; 'ijklmn')", "aijklmnef"},
		{"STUFF('abc'; 0; 1; 'x')", "NULL"},
		{"STUFF('abcdef'; 2; 3; NULL)", "aef"},
		{"SUBSTRING('abcdef'; 2; 3)", "bcd"},
		{"SUBSTRING('abcdef'; 0; 3)", "ab"},
		{"SUBSTRING('abc'; 5; 3)", ""},
		{"SUBSTRING('abc')", "189 The substring function requires 2 to 3 arguments."},
		{"SUBSTRING('abc'; 1; -1)", "537 Invalid length parameter passed to the LEFT or SUBSTRING function."},
		{"SUBSTRING(0x0102030405; 2; 2)", "0x0203"},
		{"TRANSLATE('2*[3+4]/{7-2}'; '[]{}'; '()()')", "2*(3+4)/(7-2)"},
		{"PARSENAME('AdventureWorks2022.dbo.Customer'; 1)", "Customer"},
		{"PARSENAME('[a.b].[c]]d]'; 2)", "a.b"},
		{"PARSENAME('a.b'; 3)", "NULL"},
		{"STRING_ESCAPE('a\"/\tb'; 'json')", "a\\\"\\/\\tb"},
		{"ISNUMERIC('12.5')", "1"},
		{"ISNUMERIC('$1,000')", "1"},
		{"ISNUMERIC('abc')", "0"},
		{"ISNUMERIC(NULL)", "0"},
		{"ABS(-1.0)", "1.0"},
		{"ABS(int:-2147483648)", "8115 Arithmetic overflow error converting expression to data type int."},
		{"CEILING(123.45)", "124"},
		{"CEILING(-123.45)", "-123"},
		{"CEILING(money:0.5)", "1.0000"},
		{"FLOOR(-123.45)", "-124"},
		{"FLOOR(money:123.45)", "123.0000"},
		{"SIGN(-125)", "-1"},
		{"ROUND(123.9994; 3)", "123.9990"},
		{"ROUND(123.9995; 3)", "124.0000"},
		{"ROUND(123.4545; 2)", "123.4500"},
		{"ROUND(123.45; -2)", "100.00"},
		{"ROUND(150.75; 0)", "151.00"},
		{"ROUND(150.75; 0; 1)", "150.00"},
		{"ROUND(748; -2)", "700"},
		{"ROUND(748.58; -4)", "0.00"},
		{"ROUND(748.58; -3)", "8115 Arithmetic overflow error converting expression to data type numeric."},
		{"POWER(2; 10)", "1024"},
		{"POWER(2.0; 0.5)", "1.4"},
		{"SQRT(-1)", "3623 An invalid floating point operation occurred."},
		{"LOG(10e0)", "2.30258509299405"},
		{"LOG(8; 2)", "3"},
		{"LOG(0)", "3623 An invalid floating point operation occurred."},
		{"LOG10(1000)", "3"},
		{"PI()", "3.14159265358979"},
		{"EXP(10)", "22026.4657948067"},
		{"SQUARE(3)", "9"},
		{"ATN2(0; 1)", "0"},
		{"DEGREES(3.14159265358979e0)", "180"},
		{"GETDATE()", "2006-10-14 13:22:25.060"},
		{"SYSUTCDATETIME()", "2006-10-14 11:22:25.0610000"},
		{"SYSDATETIMEOFFSET()", "2006-10-14 13:22:25.0610000 +02:00"},
		{"DATEADD(month; 1; '20060830')", "2006-09-30 00:00:00.000"},
		{"DATEADD(month; 1; '2006-08-31')", "2006-09-30 00:00:00.000"},
		{"DATEADD(day; 1; date:2006-12-31)", "2007-01-01"},
		{"DATEADD(hour; 1; date:2006-12-31)", "9810 The datepart hour is not supported by date function dateadd for data type date."},
		{"DATEADD(year; 2147483647; '2006-07-31')", "517 Adding a value to a 'datetime' column caused an overflow."},
		{"DATEADD(ms; -3; datetime:2006-10-14)", "2006-10-13 23:59:59.997"},
		{"DATEADD(nanosecond; 150; datetime2:2007-01-01 13:10:10.1111111)", "2007-01-01 13:10:10.1111113"},
		{"DATEDIFF(day; '2007-05-07 09:53:01'; '2007-05-08 09:53:01')", "1"},
		{"DATEDIFF(year; '2005-12-31 23:59:59.9999999'; '2006-01-01 00:00:00.0000000')", "1"},
		{"DATEDIFF(week; '2005-12-31'; '2006-01-01')", "1"},
		{"DATEDIFF(second; datetime:2006-10-14 13:22:25.061; datetime:2006-10-14 13:22:57.108)", "32"},
		{"DATEDIFF(millisecond; '1900-01-01'; '2006-01-01')", "535 The datediff function resulted in an overflow. The number of dateparts separating two date/time instances is too large. Try to use datediff with a less precise datepart."},
		{"DATEDIFF_BIG(millisecond; '1900-01-01'; '2006-01-01')", "3345062400000"},
		{"DATEDIFF(hour; datetimeoffset:2006-01-01 00:00 +02:00; datetimeoffset:2006-01-01 00:00)", "2"},
		{"DATEDIFF(fortnight; '2006-01-01'; '2006-01-02')", "155 'fortnight' is not a recognized datediff option."},
		{"DATENAME(month; '2007-10-30 12:15:32.1234567 +05:10')", "October"},
		{"DATENAME(weekday; '2007-10-30 12:15:32.1234567 +05:10')", "Tuesday"},
		{"DATENAME(tzoffset; '2007-10-30 12:15:32.1234567 +05:10')", "+05:10"},
		{"DATEPART(week; '2007-10-30 12:15:32.1234567 +05:10')", "44"},
		{"DATEPART(dayofyear; '2007-10-30 12:15:32.1234567 +05:10')", "303"},
		{"DATEPART(weekday; '2007-10-30')", "3"},
		{"DATEPART(nanosecond; '2007-10-30 12:15:32.1234567')", "123456700"},
		{"DATEPART(tz; '2007-10-30 12:15:32.1234567 +05:10')", "310"},
		{"DATEPART(isowk; '2007-01-01')", "1"},
		{"YEAR(0)", "1900"},
		{"MONTH('2007-04-30')", "4"},
		{"EOMONTH('2006-02-10')", "2006-02-28"},
		{"EOMONTH('2006-02-10'; 24)", "2008-02-29"},
		{"DATEFROMPARTS(2010; 12; 31)", "2010-12-31"},
		{"DATEFROMPARTS(2010; 2; 30)", "289 Cannot construct data type date, some of the arguments have values which are not valid."},
		{"DATETIME2FROMPARTS(2011; 8; 15; 14; 23; 44; 50; 2)", "2011-08-15 14:23:44.50"},
		{"TIMEFROMPARTS(14; 23; 44; 500; 3)", "14:23:44.500"},
		{"DATETIMEOFFSETFROMPARTS(2010; 12; 31; 14; 23; 23; 0; 12; 0; 7)", "2010-12-31 14:23:23.0000000 +12:00"},
		{"DATETRUNC(month; '2021-12-08 11:30:15.1234567')", "2021-12-01 00:00:00.0000000"},
		{"DATETRUNC(week; date:2021-12-08)", "2021-12-05"},
		{"SWITCHOFFSET(datetimeoffset:1998-09-20 07:45:50.71345 -05:00; '-08:00')", "1998-09-20 04:45:50.7134500 -08:00"},
		{"TODATETIMEOFFSET(datetime2:2006-10-14 13:22; '+02:00')", "2006-10-14 13:22:00.0000000 +02:00"},
		{"ISDATE('2006-02-30')", "0"},
		{"ISDATE('20060228')", "1"},
		{"FORMATMESSAGE('This is the %s and this is the %s.'; 'first variable'; 'second variable')", "This is the first variable and this is the second variable."},
		{"FORMATMESSAGE('Signed int %i, %i'; 5; -5)", "Signed int 5, -5"},
		{"FORMATMESSAGE('Unsigned hexadecimal %x, %X, %X, %X, %x'; 11; 11; -11; 50; -50)", "Unsigned hexadecimal b, B, FFFFFFF5, 32, ffffffce"},
		{"FORMATMESSAGE(8134)", "NULL"},
		{"FORMATMESSAGE(15007; 'a')", "'a' is not a valid login or you do not have permission."},
		{"HASHBYTES('SHA1'; 'abc')", "0xA9993E364706816ABA3E25717850C26C9CD0D89D"},
		{"SQL_VARIANT_PROPERTY(decimal:1; 'BaseType')", "numeric"},
		{"GREATEST('6.62'; 3.1415; N'7')", "7.0000"},
		{"LEAST('6.62'; 3.1415; N'7')", "3.1415"},
		{"ISJSON('{\"a\":1}')", "1"},
		{"ISJSON('x')", "0"},
		{"JSON_VALUE('{\"a\":{\"b\":[1,\"x\"]}}'; '$.a.b[1]')", "x"},
		{"JSON_VALUE('{\"a\":1}'; '$.b')", "NULL"},
		{"JSON_VALUE('{\"a\":1}'; 'strict $.b')", "13608 Property cannot be found on the specified JSON path."},
		{"JSON_QUERY('{\"a\":{\"b\":[1]}}'; '$.a')", "{\"b\":[1]}"},
		{"LEFT('abc')", "174 The left function requires 2 argument(s)."},
		{"ROUND(1)", "189 The round function requires 2 to 3 arguments."},
		{"DATEPART(day; int:40000)", "8"},
		{"UPPER(NULL)", "NULL"},
	} {
		if got, _ := call(t, c.call); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.call, got, c.want)
		}
	}
}

func TestResultsAreTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ call, want string }{
		{"LEFT('abcdefg'; 2)", "varchar(2)"},
		{"SUBSTRING(N'abcdefg'; 2; 3)", "nvarchar(3)"},
		{"UPPER('abc')", "varchar(3)"},
		{"REPLACE('a'; 'b'; N'c')", "nvarchar(4000)"},
		{"CONCAT('a'; N'b')", "nvarchar(2)"},
		{"REPLICATE('a'; 2)", "varchar(8000)"},
		{"LEN('a')", "int"},
		{"ROUND(123.9994; 3)", "decimal(7,4)"},
		{"CEILING(12.5)", "decimal(3,0)"},
		{"ABS(tinyint:3)", "int"},
		{"QUOTENAME('a')", "nvarchar(258)"},
	} {
		if _, got := call(t, c.call); got.String() != c.want {
			t.Errorf("%s is %s, not %s", c.call, got, c.want)
		}
	}
}

func TestEachFunctionRefusesATableAndGivesNullForNull(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		f, _ := Lookup(name)
		least, _ := f.counts()
		if least == 0 {
			continue
		}
		arguments := make([]Argument, least)
		values := make([]value.Value, least)
		scale := value.NewInt(0)
		for i := range arguments {
			values[i] = value.Null(value.Type{})
			arguments[i] = Argument{Constant: &scale}
		}
		result, err := f.TypeOf(arguments)
		if err != nil {
			t.Errorf("%s of NULL: %v", name, err)
			continue
		}
		got, err := f.Evaluate(&Context{Settings: value.Defaults()}, result, values)
		if err != nil || !got.IsNull() && !f.TakesNull {
			t.Errorf("%s of NULL: %s %v", name, value.Display(got), err)
		}
		if strings.ContainsAny(f.Parameters, "apx") {
			continue
		}
		arguments[0].Type = value.Type{Kind: value.Table}
		var bad *fault.Error
		if _, bad = f.TypeOf(arguments); bad == nil || bad.Number != 8116 {
			t.Errorf("%s takes a table", name)
		}
	}
}
