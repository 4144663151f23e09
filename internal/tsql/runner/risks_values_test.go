package runner_test

// The cases of values: types, conversions and how they are written.
var risksOfValues = []risk{
	{14, "identifiers sort by their last bytes, and are mixed-endian as bytes", `
CREATE TABLE r14 (g uniqueidentifier PRIMARY KEY)
INSERT r14 VALUES ('01000000-0000-0000-0000-000000000000'), ('00000000-0000-0000-0000-000000000001'),
  ('00000000-0000-0000-0100-000000000000'), ('00000000-0000-0001-0000-000000000000'), ('00000000-0001-0000-0000-000000000000')
SELECT LEFT(CONVERT(varchar(40), CAST(g AS binary(16)), 1), 20) + '..' + RIGHT(CONVERT(varchar(40), CAST(g AS binary(16)), 1), 14) AS b
FROM r14 ORDER BY g
DECLARE @a uniqueidentifier = '00000000-0000-0000-0000-000000000001', @b uniqueidentifier = 'FF000000-0000-0000-0000-000000000000'
IF @a > @b PRINT 'the last bytes count first'
PRINT LEN(@a)
PRINT CAST(CAST(0x000102030405060708090A0B0C0D0E0F AS binary(16)) AS uniqueidentifier)`, `
b
0x000000010000000000..00000000000000
0x000000000100000000..00000000000000
0x000000000000010000..00000000000000
0x000000000000000001..00000000000000
0x000000000000000000..00000000000001
the last bytes count first
36
<guid>`},
	{16, "integers stay integers, and decimals have their scale", `
PRINT 5 / 2
PRINT -5 / 2
PRINT -5 % 3
SELECT CAST(1 AS decimal(5, 2)) / 3 AS d, 1 / 3. AS e, 10.0 / 3 AS f
CREATE TABLE r16 (n int)
INSERT r16 VALUES (2147483647), (1)
BEGIN TRY SELECT SUM(n) AS s FROM r16 END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH
SELECT SUM(CAST(n AS bigint)) AS s, AVG(n / 2) AS a FROM r16
DECLARE @i int = 2147483647
BEGIN TRY SET @i = @i + 1 END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH`, `
2
-2
-2
d e f
0.333333 0.333333 3.333333
s
8115
s a
2147483648 536870911
8115`},
	{17, "NULL, ISNULL, COALESCE, CONCAT and the empty text", `
DECLARE @short varchar(3), @null varchar(10)
PRINT ISNULL('a' + @null, 'null')
PRINT CONCAT('a', @null, 1)
PRINT ISNULL(@short, 'abcdef')
PRINT COALESCE(@short, 'abcdef')
PRINT CAST('' AS int)
PRINT CONVERT(varchar(30), CAST('' AS datetime), 126)
BEGIN TRY PRINT COALESCE('x', 1) END TRY BEGIN CATCH PRINT ERROR_NUMBER() END CATCH
CREATE TABLE r17 (s varchar(3), n int)
INSERT r17 VALUES (NULL, NULL)
SELECT ISNULL(s, 'abcdef') AS a, COALESCE(s, 'abcdef') AS b, ISNULL(n, 1.9) AS c FROM r17`, `
null
a1
abc
abcdef
0
1900-01-01T00:00:00
245
a b c
abc abcdef 1`},
	{18, "datetime counts thirds, and its text depends on where it is written", `
DECLARE @d datetime = '2006-10-14T13:22:25.061', @e datetime = '2006-10-14T13:22:57.108'
SELECT @d AS d, @e AS e, CAST('2006-10-14T13:22:25.999' AS datetime) AS f
PRINT @d
PRINT CONVERT(varchar(30), @d)
PRINT CAST(@d AS varchar(30)) + '|'
PRINT DATEDIFF(second, @d, @e)
PRINT DATEDIFF(year, '2006-12-31', '2007-01-01')
CREATE TABLE r18 (d datetime)
INSERT r18 VALUES (@d), ('2006-10-14T13:22:25.994'), ('2006-10-14T13:22:25.995')
SELECT d, DATEDIFF(minute, d, '2006-10-14T13:23:00') AS m FROM r18`, `
d e f
2006-10-14 13:22:25.060 2006-10-14 13:22:57.107 2006-10-14 13:22:26.000
Oct 14 2006 1:22PM
Oct 14 2006 1:22PM
Oct 14 2006 1:22PM|
32
1
d m
2006-10-14 13:22:25.060 1
2006-10-14 13:22:25.993 1
2006-10-14 13:22:25.997 1`},
	{19, "numbers and times have SQL Server's bytes", `
PRINT CONVERT(varchar(40), CAST(CAST('2006-10-14T13:22:25.060' AS datetime) AS varbinary(8)), 1)
PRINT CONVERT(varchar(40), CAST(CAST(258 AS bigint) AS varbinary(8)), 1)
PRINT CONVERT(varchar(40), CAST(-2 AS varbinary(4)), 1)
PRINT CONVERT(varchar(40), CAST(CAST(1.5 AS money) AS binary(8)), 1)
PRINT CAST(0x0102 AS int)
PRINT CAST(0x00000000FFFFFFFE AS bigint)
PRINT CONVERT(varchar(30), CAST(0x0000979D00DC5F32 AS datetime), 121)`, `
0x0000985A00DC63FE
0x0000000000000102
0xFFFFFFFE
0x0000000000003A98
258
4294967294
2006-04-08 13:22:20.967`},
	{30, "float and money are shorter in text than in results", `
DECLARE @f float = 312.051426075017, @m money = 1234.5678
PRINT @f
PRINT @m
PRINT CAST(@m AS varchar(20)) + '|'
SELECT @f AS f, @m AS m, CAST(@f AS varchar(20)) AS t, CONVERT(varchar(20), @m, 2) AS four, CONVERT(varchar(20), @m, 1) AS comma`, `
312.051
1234.57
1234.57|
f m t four comma
312.051426075017 1234.5678 312.051 1234.5678 1,234.57`},
}
