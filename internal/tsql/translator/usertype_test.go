package translator_test

import "testing"

func TestTypesOfTheUser(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"an alias stands for its type, NOT NULL where it says so", `CREATE TYPE dbo.Code FROM varchar(5) NOT NULL
GO
CREATE TABLE k (a Code, b dbo.code NULL)
INSERT k VALUES ('abcdef', NULL)
INSERT k VALUES (NULL, NULL)
DECLARE @c Code = 'abcdefg'
PRINT @c
INSERT k VALUES (@c, @c)
SELECT a, b FROM k
GO
CREATE TYPE Code FROM int
GO
DROP TABLE k
DROP TYPE dbo.Code
DROP TYPE IF EXISTS Code
DROP TYPE Code`, `Msg 2628, 2: String or binary data would be truncated in table 'DB.dbo.k', column 'a'. Truncated value: 'abcde'.
Msg 515, 3: Cannot insert the value NULL into column 'a', table 'DB.dbo.k'; column does not allow nulls. INSERT fails.
abcde
(1)
abcde|abcde
Msg 219, 1: The type 'Code' already exists, or you do not have permission to create it.
Msg 218, 4: Could not find the type 'Code'. Either it does not exist or you do not have the necessary permission.`},
		{"a variable of a table type is a table", `CREATE TYPE Tags AS TABLE (id int IDENTITY PRIMARY KEY, tag nvarchar(10) NOT NULL)
GO
DECLARE @t Tags, @u dbo.Tags
INSERT @t (tag) VALUES ('a'), ('b')
INSERT @u (tag) SELECT tag FROM @t
INSERT @u (tag) VALUES (NULL)
SELECT id, tag FROM @u
GO
DECLARE @m Missing
GO
CREATE TABLE k (a Tags)
GO
DROP TYPE Tags`, `(2)
(2)
Msg 515, 4: Cannot insert the value NULL into column 'tag', table 'tempdb.dbo.@u'; column does not allow nulls. INSERT fails.
1|a
2|b
Msg 2715, 1: Column, parameter, or variable #1: Cannot find data type Missing.
Msg 350, 1: The column "a" does not have a valid data type. A column cannot be of a user-defined table type.`},
		{"a parameter of a table type is read, not changed; it is empty without an argument", `CREATE TYPE Numbers AS TABLE (n int)
GO
CREATE PROCEDURE #sum @of Numbers READONLY, @plus int = 0 AS
SELECT ISNULL(SUM(n), 0) + @plus FROM @of
GO
DECLARE @t Numbers
INSERT @t VALUES (1), (2)
EXEC #sum @t
EXEC #sum @of = @t, @plus = 10
EXEC #sum
EXEC sp_executesql N'SELECT COUNT(*) FROM @p', N'@p Numbers READONLY', @t
SELECT COUNT(*) FROM @t
EXEC #sum 5
GO
CREATE PROCEDURE #bad @of Numbers READONLY AS DELETE @of
GO
EXEC #bad
GO
CREATE PROCEDURE #bad @of Numbers AS SELECT 1
GO
CREATE PROCEDURE #bad @of int READONLY AS SELECT 1
GO
DROP TYPE Numbers`, `(2)
3
13
0
2
2
Msg 206, 0: Operand type clash: int is incompatible with table
Msg 10700, 1: The table-valued parameter "@of" is READONLY and cannot be modified.
Msg 2812, 1: Could not find stored procedure '#bad'.
Msg 352, 1: The table-valued parameter "@of" must be declared with the READONLY option.
Msg 346, 1: The parameter "@of" can not be declared READONLY since it is not a table-valued parameter.`},
	})
}

func TestOpenJSONGivesRows(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"members with their types", `DECLARE @j nvarchar(max) = N'{"s": "it''s", "n": 4.5, "b": true, "z": null, "a": [1, 2], "o": {"x": "\u00e9"}}'
SELECT [key], value, type FROM OPENJSON(@j)
SELECT * FROM OPENJSON(@j, '$.a')
SELECT * FROM OPENJSON(@j, '$.missing')`, "s|it's|1\nn|4.5|2\nb|true|3\nz|NULL|0\na|[1, 2]|4\no|{\"x\": \"\\u00e9\"}|5\n0|1|2\n1|2|2"},
		{"columns of elements", `DECLARE @j nvarchar(max) = N'[{"id": 2, "info": {"name": "John"}, "age": 25}, {"id": 5, "info": {"name": "Jane", "skills": ["SQL"]}}]'
SELECT * FROM OPENJSON(@j) WITH (id int '$.id', name nvarchar(50) '$.info.name', age int, skills nvarchar(max) '$.info.skills' AS JSON)
  WHERE id > 1 ORDER BY id
SELECT a.id FROM (VALUES (5)) AS v (n) JOIN OPENJSON(@j) WITH (id int) AS a ON a.id = v.n`, "2|John|25|NULL\n5|Jane|NULL|[\"SQL\"]\n5"},
		{"of a column, once for each document", `SET NOCOUNT ON
DECLARE @j nvarchar(max) = N'{"o": {"id": 1, "lines": [{"s": "a"}, {"s": "b"}]}}', @t table (id int, doc nvarchar(max))
INSERT @t VALUES (1, N'[5, 6]'), (2, N'[]'), (3, NULL), (4, N'[{"n": 7}, {"n": null}]')
SELECT o.id, l.[key], JSON_VALUE(l.value, '$.s'), w.s FROM OPENJSON(@j, '$.o') WITH (id int, lines nvarchar(max) AS JSON) AS o
  CROSS APPLY OPENJSON(o.lines) AS l CROSS APPLY OPENJSON(l.value) WITH (s char(1)) AS w
SELECT t.id, v.value FROM @t AS t OUTER APPLY OPENJSON(t.doc) AS v WHERE t.id < 4 ORDER BY t.id, v.[key]
SELECT t.id, v.n FROM @t AS t CROSS APPLY OPENJSON(t.doc) WITH (n int) AS v WHERE t.id = 4 ORDER BY v.n
SELECT id FROM @t WHERE EXISTS (SELECT * FROM OPENJSON(doc))`, "1|0|a|a\n1|1|b|b\n1|5\n1|6\n2|NULL\n3|NULL\n4|NULL\n4|7\n1\n4"},
		{"what is no JSON, and what is not there", `SELECT * FROM OPENJSON(N'{x}')
GO
SELECT * FROM OPENJSON(N'{"a": 1}', 'strict $.b')`, `Msg 13609, 1: JSON text is not properly formatted. Unexpected character '.' is found at position 1.
Msg 13608, 1: Property cannot be found on the specified JSON path.`},
	})
}

func TestRowVersionsGrowWithEachChange(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"each INSERT and UPDATE takes the next", `CREATE TABLE k (id int PRIMARY KEY, n int, v rowversion)
GO
INSERT k (id, n) VALUES (1, 1)
INSERT k VALUES (2, 2, DEFAULT)
DECLARE @a binary(8), @b binary(8), @c binary(8)
SELECT @a = v FROM k WHERE id = 1
UPDATE k SET n = 5 WHERE id = 1
SELECT @b = v FROM k WHERE id = 1
UPDATE TOP (1) k SET n = 6 OUTPUT DATALENGTH(inserted.v) WHERE id = 1
SELECT @c = v FROM k WHERE id = 1
IF @a < @b AND @b < @c PRINT 'grows'
IF (SELECT v FROM k WHERE id = 2) < @b PRINT 'the other row keeps its own'
GO
INSERT k VALUES (3, 3, 0x01)
GO
UPDATE k SET v = 0x01
GO
DROP TABLE k`, `(1)
(1)
(1)
8
grows
the other row keeps its own
Msg 273, 1: Cannot insert an explicit value into a timestamp column. Use INSERT with a column list to exclude the timestamp column, or insert a DEFAULT into the timestamp column.
Msg 272, 1: Cannot update a timestamp column.`},
	})
}

func TestSequences(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"numbers come one after another, and a rollback gives none back", `CREATE SEQUENCE s AS int START WITH 5 INCREMENT BY 2
GO
DECLARE @n int = NEXT VALUE FOR s
PRINT @n
BEGIN TRAN
SELECT NEXT VALUE FOR dbo.s
ROLLBACK
CREATE TABLE k (id int DEFAULT (NEXT VALUE FOR s), name char(1))
INSERT k (name) VALUES ('a'), ('b')
INSERT k VALUES (NEXT VALUE FOR s, 'c')
SELECT id, name FROM k ORDER BY id
ALTER SEQUENCE s RESTART WITH 100
SELECT NEXT VALUE FOR s
SELECT name, start_value, increment FROM sys.sequences
DROP TABLE k
DROP SEQUENCE s`, "5\n7\n(2)\n(1)\n9|a\n11|b\n13|c\n100\ns|5|2"},
		{"it begins at the least number of its type, and ends at its greatest", `CREATE SEQUENCE s AS tinyint MAXVALUE 1
GO
SELECT NEXT VALUE FOR s
SELECT NEXT VALUE FOR s
SELECT NEXT VALUE FOR s
GO
CREATE SEQUENCE s
GO
DROP SEQUENCE s
DROP SEQUENCE IF EXISTS s
DROP SEQUENCE s
GO
CREATE SEQUENCE t AS varchar(5)`, `0
1
Msg 11728, 3: The sequence object 's' has reached its minimum or maximum value. Restart the sequence object to allow new values to be generated.
Msg 2714, 1: There is already an object named 's' in the database.
Msg 3701, 3: Cannot drop the sequence object 's', because it does not exist or you do not have permission.
Msg 11702, 1: The sequence object 't' must be of data type int, bigint, smallint, tinyint, or decimal or numeric with a scale of 0, or any user-defined data type that is based on one of the above integer data types.`},
	})
}
