package interpreter

import (
	"strings"
	"testing"
)

// told plays scripts whose PRINT and SELECT show what the documentation of T-SQL says of them; headings are left out.
func told(t *testing.T, scenarios []scenario) {
	t.Helper()
	for i, c := range scenarios {
		scenarios[i].script = "SET NOCOUNT ON\nGO\n" + strings.TrimSpace(c.script)
		scenarios[i].want = strings.TrimSpace(c.want)
	}
	play(t, scenarios)
}

func TestDocumentedPartsOfDates(t *testing.T) {
	t.Parallel()
	told(t, []scenario{
		{"each part has its number", `
DECLARE @o datetimeoffset = '2007-10-30 12:15:32.1234567 +05:10'
PRINT CONCAT_WS(' ', DATEPART(year, @o), DATEPART(qq, @o), DATEPART(m, @o), DATEPART(dy, @o), DATEPART(dd, @o), DATEPART(wk, @o), DATEPART(dw, @o))
PRINT CONCAT_WS(' ', DATEPART(hh, @o), DATEPART(n, @o), DATEPART(s, @o), DATEPART(ms, @o), DATEPART(mcs, @o), DATEPART(ns, @o))
PRINT CONCAT_WS(' ', DATEPART(tz, @o), DATEPART(isowk, @o))`, "2007 4 10 303 30 44 3\n12 15 32 123 123456 123456700\n310 44"},
		{"weeks begin as DATEFIRST says", `
DECLARE @d date = '2007-04-21', @s varchar(100) = ''
SET DATEFIRST 1 SET @s += CONCAT(DATEPART(week, @d), '/', DATEPART(weekday, @d), ' ')
SET DATEFIRST 2 SET @s += CONCAT(DATEPART(week, @d), '/', DATEPART(weekday, @d), ' ')
SET DATEFIRST 3 SET @s += CONCAT(DATEPART(week, @d), '/', DATEPART(weekday, @d), ' ')
SET DATEFIRST 4 SET @s += CONCAT(DATEPART(week, @d), '/', DATEPART(weekday, @d), ' ')
SET DATEFIRST 5 SET @s += CONCAT(DATEPART(week, @d), '/', DATEPART(weekday, @d), ' ')
SET DATEFIRST 6 SET @s += CONCAT(DATEPART(week, @d), '/', DATEPART(weekday, @d), ' ')
SET DATEFIRST 7 SET @s += CONCAT(DATEPART(week, @d), '/', DATEPART(weekday, @d), ' ')
PRINT @s`, "16/6 17/5 17/4 17/3 17/2 17/1 16/7"},
		{"a time alone has the first day of 1900", `
DECLARE @s varchar(20) = '12:10:30.123'
PRINT CONCAT_WS(' ', DATEPART(year, '12:10:30.123'), DATEPART(month, '12:10:30.123'), DATEPART(day, '12:10:30.123'))
PRINT CONCAT_WS(' ', DATEPART(dayofyear, '12:10:30.123'), DATEPART(weekday, '12:10:30.123'))`, "1900 1 1\n1 2"},
		{"a variable of type time has no year", "DECLARE @t time = '12:10:30.123' SELECT DATEPART(year, @t)", `
Msg 9810, Level 16, State 1, Line 1
The datepart year is not supported by date function datepart for data type time.`},
		{"fractions are cut", `PRINT CONCAT_WS(' ', DATEPART(millisecond, '00:00:01.1234567'), DATEPART(microsecond, '00:00:01.1234567'),
  DATEPART(nanosecond, '00:00:01.1234567'))`, "123 123456 123456700"},
		{"0 is the first day of 1900", "PRINT CONCAT_WS(' ', DATEPART(year, 0), DATEPART(month, 0), DATEPART(day, 0))", "1900 1 1"},
		{"a date of twelve months", "PRINT CONCAT_WS(' ', DATEPART(day, '12/20/1974'), DATEPART(year, '12/20/1974'))", "20 1974"},
	})
}

func TestDocumentedSumsOfDates(t *testing.T) {
	t.Parallel()
	told(t, []scenario{
		{
			"a month that is shorter ends earlier", "SELECT DATEADD(month, 1, '20060830') AS a, DATEADD(month, 1, '20060831') AS b",
			"a                       b\n2006-09-30 00:00:00.000 2006-09-30 00:00:00.000",
		},
		{"a number beyond int is 8115", "SELECT DATEADD(year, 2147483648, '20060731') AS a", `
a
Msg 8115, Level 16, State 2, Line 1
Arithmetic overflow error converting expression to data type int.`},
		{"a date out of range is 517", "SELECT DATEADD(year, 2147483647, '20060731') AS a", `
a
Msg 517, Level 16, State 1, Line 1
Adding a value to a 'datetime' column caused an overflow.`},
		{"nanoseconds round to hundreds", `
DECLARE @d datetime2 = '2007-01-01 13:10:10.1111111'
PRINT DATEADD(millisecond, 1, @d) PRINT DATEADD(millisecond, 2, @d) PRINT DATEADD(microsecond, 1, @d) PRINT DATEADD(microsecond, 2, @d)
PRINT DATEADD(nanosecond, 49, @d) PRINT DATEADD(nanosecond, 50, @d) PRINT DATEADD(nanosecond, 150, @d)`, `
2007-01-01 13:10:10.1121111
2007-01-01 13:10:10.1131111
2007-01-01 13:10:10.1111121
2007-01-01 13:10:10.1111131
2007-01-01 13:10:10.1111111
2007-01-01 13:10:10.1111112
2007-01-01 13:10:10.1111113`},
		{"each part adds its own", `
DECLARE @d datetime2 = '2007-01-01 13:10:10.1111111'
PRINT DATEADD(year, 1, @d) PRINT DATEADD(quarter, 1, @d) PRINT DATEADD(month, 1, @d) PRINT DATEADD(dayofyear, 1, @d)
PRINT DATEADD(week, 1, @d) PRINT DATEADD(weekday, 1, @d) PRINT DATEADD(hour, 1, @d) PRINT DATEADD(minute, 1, @d)
PRINT DATEADD(second, 1, @d) PRINT DATEADD(nanosecond, 1, @d)`, `
2008-01-01 13:10:10.1111111
2007-04-01 13:10:10.1111111
2007-02-01 13:10:10.1111111
2007-01-02 13:10:10.1111111
2007-01-08 13:10:10.1111111
2007-01-02 13:10:10.1111111
2007-01-01 14:10:10.1111111
2007-01-01 13:11:10.1111111
2007-01-01 13:10:11.1111111
2007-01-01 13:10:10.1111111`},
		{"a part carries into the next", `
DECLARE @d datetime2 = '2007-01-01 01:01:01.1111111'
PRINT DATEADD(quarter, 4, @d) PRINT DATEADD(month, 13, @d) PRINT DATEADD(dayofyear, 365, @d) PRINT DATEADD(week, 5, @d)
PRINT DATEADD(weekday, 31, @d) PRINT DATEADD(hour, 23, @d) PRINT DATEADD(minute, 59, @d) PRINT DATEADD(second, 59, @d)`, `
2008-01-01 01:01:01.1111111
2008-02-01 01:01:01.1111111
2008-01-01 01:01:01.1111111
2007-02-05 01:01:01.1111111
2007-02-01 01:01:01.1111111
2007-01-02 00:01:01.1111111
2007-01-01 02:00:01.1111111
2007-01-01 01:02:00.1111111`},
		{
			"a leap year has a day more", "DECLARE @n int = 365, @d datetime = '2000-01-01 01:01:01.111' SELECT DATEADD(day, @n, @d) AS d",
			"d\n2000-12-31 01:01:01.110",
		},
		{"a small datetime has no seconds", `
DECLARE @s smalldatetime = '2007-01-01 12:00'
PRINT CONVERT(varchar(30), DATEADD(second, 29, @s), 120) PRINT CONVERT(varchar(30), DATEADD(second, 30, @s), 120)
PRINT CONVERT(varchar(30), DATEADD(second, -30, @s), 120) PRINT CONVERT(varchar(30), DATEADD(second, -31, @s), 120)`, `
2007-01-01 12:00:00
2007-01-01 12:01:00
2007-01-01 12:00:00
2007-01-01 11:59:00`},
		{
			"a difference counts boundaries", `
DECLARE @a datetime2 = '2005-12-31 23:59:59.9999999', @b datetime2 = '2006-01-01 00:00:00.0000000'
PRINT CONCAT(DATEDIFF(year, @a, @b), DATEDIFF(quarter, @a, @b), DATEDIFF(month, @a, @b), DATEDIFF(dayofyear, @a, @b), DATEDIFF(day, @a, @b),
  DATEDIFF(week, @a, @b), DATEDIFF(hour, @a, @b), DATEDIFF(minute, @a, @b), DATEDIFF(second, @a, @b), DATEDIFF(ms, @a, @b), DATEDIFF(mcs, @a, @b))`,
			"11111111111",
		},
		{"a difference may be negative", `PRINT DATEDIFF(day, '2036-03-01', '2036-02-28')
PRINT DATEDIFF(day, '2007-05-05 12:10:09.3312722', '2007-05-04 12:10:09.3312722')`, "-2\n-1"},
		{
			"years, months and days between two times", `
DECLARE @a datetime = '1900-01-01', @b datetime = '2018-12-12 07:08:01.123', @y int, @m int, @d int, @h int, @n int, @s int
SET @y = DATEDIFF(yy, @a, @b) IF DATEADD(yy, -@y, @b) < @a SET @y -= 1 SET @b = DATEADD(yy, -@y, @b)
SET @m = DATEDIFF(mm, @a, @b) IF DATEADD(mm, -@m, @b) < @a SET @m -= 1 SET @b = DATEADD(mm, -@m, @b)
SET @d = DATEDIFF(dd, @a, @b) IF DATEADD(dd, -@d, @b) < @a SET @d -= 1 SET @b = DATEADD(dd, -@d, @b)
SET @h = DATEDIFF(hh, @a, @b) IF DATEADD(hh, -@h, @b) < @a SET @h -= 1 SET @b = DATEADD(hh, -@h, @b)
SET @n = DATEDIFF(mi, @a, @b) IF DATEADD(mi, -@n, @b) < @a SET @n -= 1 SET @b = DATEADD(mi, -@n, @b)
SET @s = DATEDIFF(s, @a, @b) IF DATEADD(s, -@s, @b) < @a SET @s -= 1 SET @b = DATEADD(s, -@s, @b)
PRINT CONCAT(@y, ' years, ', @m, ' months, ', @d, ' days, ', @h, ' hours, ', @n, ' minutes and ', @s, '.', DATEDIFF(ms, @a, @b), ' seconds')`,
			"118 years, 11 months, 11 days, 7 hours, 8 minutes and 1.123 seconds",
		},
		{
			"a month has its last day", "PRINT CONCAT_WS(' ', EOMONTH('12/1/2011'), EOMONTH('2011-12-25', 1), EOMONTH('2011-12-25', -1))",
			"2011-12-31 2012-01-31 2011-11-30",
		},
	})
}

func TestDocumentedTruncationOfDates(t *testing.T) {
	t.Parallel()
	told(t, []scenario{
		{"each part", `
DECLARE @d datetime2 = '2021-12-08 11:30:15.1234567'
PRINT DATETRUNC(year, @d) PRINT DATETRUNC(quarter, @d) PRINT DATETRUNC(month, @d) PRINT DATETRUNC(week, @d) PRINT DATETRUNC(iso_week, @d)
PRINT DATETRUNC(dayofyear, @d) PRINT DATETRUNC(hour, @d) PRINT DATETRUNC(minute, @d) PRINT DATETRUNC(second, @d)
PRINT DATETRUNC(millisecond, @d) PRINT DATETRUNC(microsecond, @d)`, `
2021-01-01 00:00:00.0000000
2021-10-01 00:00:00.0000000
2021-12-01 00:00:00.0000000
2021-12-05 00:00:00.0000000
2021-12-06 00:00:00.0000000
2021-12-08 00:00:00.0000000
2021-12-08 11:00:00.0000000
2021-12-08 11:30:00.0000000
2021-12-08 11:30:15.0000000
2021-12-08 11:30:15.1230000
2021-12-08 11:30:15.1234560`},
		{
			"weeks by DATEFIRST", `
DECLARE @d datetime2 = '2021-11-11 11:11:11.1234567'
PRINT DATETRUNC(week, @d) SET DATEFIRST 6 PRINT DATETRUNC(week, @d) SET DATEFIRST 3 PRINT DATETRUNC(week, @d)`,
			"2021-11-07 00:00:00.0000000\n2021-11-06 00:00:00.0000000\n2021-11-10 00:00:00.0000000",
		},
		{"text is a datetime2", `
DECLARE @c char(200) = '1998-03-04', @n nvarchar(max) = '1998-03-04 10:10:05'
PRINT DATETRUNC(month, '1998-03-04') PRINT DATETRUNC(millisecond, '1998-03-04 10:10:05.1234567')
PRINT DATETRUNC(millisecond, @c) PRINT DATETRUNC(minute, @n)`, `
1998-03-01 00:00:00.0000000
1998-03-04 10:10:05.1230000
1998-03-04 00:00:00.0000000
1998-03-04 10:10:00.0000000`},
		{"each type keeps its digits", `
DECLARE @e datetime = '2015-04-29 05:06:07.123', @d date = '2050-04-04', @s smalldatetime = '2009-09-11 12:42:12', @r datetime = '2020-02-02 02:02:02.002'
SELECT DATETRUNC(millisecond, @e) AS e, DATETRUNC(day, @d) AS d, DATETRUNC(second, @s) AS s, DATETRUNC(millisecond, @r) AS r`, `
e                       d                s                   r
2015-04-29 05:06:07.123 2050-04-04       2009-09-11 12:42:00 2020-02-02 02:02:02.003`},
		{"before the first day is 9837", "DECLARE @d date = '0001-01-01'\nPRINT DATETRUNC(week, @d)", `
Msg 9837, Level 16, State 3, Line 2
An invalid date value was encountered: The date value is less than the minimum date value allowed for the data type.`},
		{"a part that the type has not is 9810", "DECLARE @t time = '12:12:12.1234567'\nPRINT DATETRUNC(year, @t)", `
Msg 9810, Level 16, State 10, Line 2
The datepart year is not supported by date function datetrunc for data type time.`},
		{"digits that the type has not are 9810", "DECLARE @d datetime2(3) = '2021-12-12 12:12:12.12345'\nPRINT DATETRUNC(microsecond, @d)", `
Msg 9810, Level 16, State 11, Line 2
The datepart microsecond is not supported by date function datetrunc for data type datetime2.`},
	})
}

func TestDocumentedNumbers(t *testing.T) {
	t.Parallel()
	told(t, []scenario{
		{"ROUND keeps the scale", `
SELECT ROUND(123.9994, 3) AS a, ROUND(123.9995, 3) AS b, ROUND(123.4545, 2) AS c, ROUND(123.45, -2) AS d, ROUND(150.75, 0) AS e,
  ROUND(150.75, 0, 1) AS f, ROUND(748.58, -1) AS g, ROUND(748.58, -2) AS h, ROUND(748.58, -4) AS i, ROUND(CAST(748.58 AS decimal(6, 2)), -3) AS j`, `
a         b         c         d       e       f       g       h       i       j
123.9990  124.0000  123.4500  100.00  151.00  150.00  750.00  700.00    0.00  1000.00`},
		{"ROUND to more digits than there are is 8115", "SELECT ROUND(748.58, -3) AS a", `
a
Msg 8115, Level 16, State 2, Line 1
Arithmetic overflow error converting expression to data type numeric.`},
		{"POWER gives the type of its first argument", `
DECLARE @a float = 2, @b float = 2.5
PRINT CONCAT_WS(' ', POWER(@a, 3), POWER(@b, 3), POWER(2, 4), POWER(2.0, 3), POWER(2, -100.0), POWER(2.0, -100.0), POWER(2.00, -100.0))
SELECT POWER(CAST(2.0 AS float), -100.0) AS f`, `
8 15.625 16 8.0 0 0.0 0.00
f
7.88860905221012E-31`},
		{"SIGN", `DECLARE @r real = -1 PRINT CONCAT_WS(' ', SIGN(@r), SIGN(@r + 1), SIGN(@r + 2), SIGN(-125), SIGN(0), SIGN(564))`, "-1 0 1 -1 0 1"},
		{"the rest of a quotient", "PRINT CONCAT_WS(' ', 38 / 5, 38 % 5, 3 % 2)", "7 3 1"},
	})
}

func TestDocumentedTexts(t *testing.T) {
	t.Parallel()
	told(t, []scenario{
		{
			"STR stands right, and stars what is too long", "PRINT '[' + STR(123.45, 6, 1) + ']' PRINT STR(123.45, 2, 2) PRINT '[' + STR(FLOOR(123.45), 8, 3) + ']'",
			"[ 123.5]\n**\n[ 123.000]",
		},
		{"PATINDEX finds patterns", `PRINT CONCAT_WS(' ', PATINDEX('%ter%', 'interesting data'), PATINDEX('%en_ure%', 'Please ensure the door is locked!'),
  PATINDEX('%[^ 0-9A-z]%', 'Please ensure the door is locked!'), PATINDEX('%ein%', 'Das ist ein Test' COLLATE Latin1_General_BIN),
  PATINDEX('a%', 'abc'), PATINDEX('%a', 'cba'))`, "3 8 33 9 1 3"},
		{
			"CHARINDEX follows the collation", `
DECLARE @s varchar(64) = 'Reflectors are vital safety' + ' components of your bicycle.'
PRINT CONCAT_WS(' ', CHARINDEX('bicycle', @s), CHARINDEX('vital', @s, 5), CHARINDEX('bike', @s),
  CHARINDEX('TEST', 'This is a Test' COLLATE Latin1_General_CS_AS), CHARINDEX('Test', 'This is a Test' COLLATE Latin1_General_CS_AS),
  CHARINDEX('TEST', 'This is a Test' COLLATE Latin1_General_CI_AS), CHARINDEX('is', 'This is a string'), CHARINDEX('is', 'This is a string', 4))`,
			"48 16 0 0 11 11 3 6",
		},
		{
			"TRANSLATE takes letter for letter", "PRINT TRANSLATE('2*[3+4]/{7-2}', '[]{}', '()()') PRINT TRANSLATE('(137.4 72.3)', '( )', '[,]')",
			"2*(3+4)/(7-2)\n[137.4,72.3]",
		},
		{
			"SOUNDEX and DIFFERENCE", "PRINT CONCAT_WS(' ', SOUNDEX('Smith'), SOUNDEX('Smythe'), DIFFERENCE('Smithers', 'Smythers'), DIFFERENCE('Anothers', 'Brothers'))",
			"S530 S530 4 2",
		},
		{"FORMATMESSAGE of signed numbers", `
PRINT FORMATMESSAGE('Signed int %i, %d %i, %d, %+i, %+d, %+i, %+d', 5, -5, 50, -50, -11, -11, 11, 11)
PRINT FORMATMESSAGE('%03i %020i %020i', 5, 5, -55)
PRINT FORMATMESSAGE('Bigint %I64d', 3000000000)`, `
Signed int 5, -5 50, -50, -11, -11, +11, +11
005 00000000000000000005 -0000000000000000055
Bigint 3000000000`},
		{"FORMATMESSAGE of other numbers and texts", `
PRINT FORMATMESSAGE('%u, %u', 50, -50)
PRINT FORMATMESSAGE('%o, %o', 50, -50)
PRINT FORMATMESSAGE('%x, %X, %X, %X, %x', 11, 11, -11, 50, -50)
PRINT FORMATMESSAGE('%#o, %#o', 50, -50)
PRINT FORMATMESSAGE('%#x, %#X, %#X, %X, %x', 11, 11, -11, 50, -50)
PRINT FORMATMESSAGE('[%s] [%20s] [%-20s]', 'TEST', 'TEST', 'TEST')`, `
50, 4294967246
62, 37777777716
b, B, FFFFFFF5, 32, ffffffce
062, 037777777716
0xb, 0XB, 0XFFFFFFF5, 32, ffffffce
[TEST] [                TEST] [TEST                ]`},
		{"a time gets the offset of its zone", `PRINT CONVERT(datetime2(0), '2015-03-29T01:01:00', 126) AT TIME ZONE 'Central European Standard Time'
PRINT CONVERT(datetime2(0), '2015-03-29T02:01:00', 126) AT TIME ZONE 'Central European Standard Time'
PRINT CONVERT(datetime2(0), '2015-03-29T03:01:00', 126) AT TIME ZONE 'Central European Standard Time'
PRINT CONVERT(datetime2(0), '2015-10-25T01:01:00', 126) AT TIME ZONE 'Central European Standard Time'
PRINT CONVERT(datetime2(0), '2015-10-25T02:00:00', 126) AT TIME ZONE 'Central European Standard Time'
PRINT CONVERT(datetime2(0), '2015-10-25T03:01:00', 126) AT TIME ZONE 'Central European Standard Time'
PRINT CAST('20240704 12:00' AS datetime) AT TIME ZONE 'UTC' AT TIME ZONE 'pacific standard time'
PRINT ISNULL(CAST(NULL AS datetime2(0)) AT TIME ZONE 'UTC', '20240101')
PRINT SYSDATETIME() AT TIME ZONE 'Europe/Paris'`, `2015-03-29 01:01:00 +01:00
2015-03-29 03:01:00 +02:00
2015-03-29 03:01:00 +02:00
2015-10-25 01:01:00 +02:00
2015-10-25 02:00:00 +02:00
2015-10-25 03:01:00 +01:00
2024-07-04 05:00:00.000 -07:00
2024-01-01 00:00:00 +00:00
Msg 9820, Level 16, State 1, Line 9
The time zone parameter 'Europe/Paris' provided to AT TIME ZONE clause is invalid.`},
		{"a date alone has no zone", "SELECT CAST('20240101' AS date) AT TIME ZONE 'UTC'", `Msg 8116, Level 16, State 1, Line 1
Argument data type date is invalid for argument 1 of AT TIME ZONE function.`},
		{"an offset is switched", "PRINT SWITCHOFFSET(CAST('1998-09-20 7:45:50.71345 -5:00' AS datetimeoffset), '-08:00')", "1998-09-20 04:45:50.7134500 -08:00"},
	})
}

// Each style of CONVERT writes the same moment as the documentation does.
func TestDocumentedStylesOfDates(t *testing.T) {
	t.Parallel()
	styles := []struct{ style, want string }{
		{"0", "Aug 23 2019  1:39PM"},
		{"1", "08/23/19"},
		{"2", "19.08.23"},
		{"3", "23/08/19"},
		{"4", "23.08.19"},
		{"5", "23-08-19"},
		{"6", "23 Aug 19"},
		{"7", "Aug 23, 19"},
		{"8", "13:39:17"},
		{"9", "Aug 23 2019  1:39:17:090PM"},
		{"10", "08-23-19"},
		{"11", "19/08/23"},
		{"12", "190823"},
		{"13", "23 Aug 2019 13:39:17:090"},
		{"14", "13:39:17:090"},
		{"20", "2019-08-23 13:39:17"},
		{"21", "2019-08-23 13:39:17.090"},
		{"22", "08/23/19  1:39:17 PM"},
		{"23", "2019-08-23"},
		{"101", "08/23/2019"},
		{"102", "2019.08.23"},
		{"103", "23/08/2019"},
		{"104", "23.08.2019"},
		{"105", "23-08-2019"},
		{"106", "23 Aug 2019"},
		{"107", "Aug 23, 2019"},
		{"108", "13:39:17"},
		{"110", "08-23-2019"},
		{"111", "2019/08/23"},
		{"112", "20190823"},
		{"120", "2019-08-23 13:39:17"},
		{"121", "2019-08-23 13:39:17.090"},
		{"126", "2019-08-23T13:39:17.090"},
		{"127", "2019-08-23T13:39:17.090"},
	}
	var script, want strings.Builder
	script.WriteString("DECLARE @d datetime = '2019-08-23T13:39:17.090'\n")
	for _, s := range styles {
		script.WriteString("PRINT '" + s.style + " ' + CONVERT(nvarchar(40), @d, " + s.style + ")\n")
		want.WriteString(s.style + " " + s.want + "\n")
	}
	if got := ran(t, script.String()); got != strings.TrimSpace(want.String()) {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want.String())
	}
}
