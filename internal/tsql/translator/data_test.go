package translator_test

import "testing"

const items = "SET NOCOUNT ON CREATE TABLE item (id int IDENTITY(1,1) PRIMARY KEY, name nvarchar(10) NOT NULL, price decimal(9,2) DEFAULT 1, made datetime NULL) " +
	"INSERT item (name, price) VALUES (N'Nut', 2.5), (N'bolt', 3), (N'cog ', NULL) SET NOCOUNT OFF\nGO\n"

const drops = "\nGO\nDROP TABLE item"

func TestDataIsReadAndChangedAsSQLServerDoes(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"rows come in the order of the key", items + "UPDATE item SET price = 9 WHERE id = 1 SELECT id, name, price FROM item" + drops, "(1)\n1|Nut|9.00\n2|bolt|3.00\n3|cog|NULL"},
		{"text compares without case and blanks at the end", items + "SELECT id FROM item WHERE name = 'NUT  ' OR name IN (N'COG')" + drops, "1\n3"},
		{"LIKE has sets and keeps blanks", items + "SELECT id FROM item WHERE name LIKE 'cog' SELECT id FROM item WHERE name LIKE N'[a-n]_T' SELECT id FROM item WHERE name NOT LIKE '%o%'" + drops, "1\n1"},
		{"the empty result leaves variables, the last row wins", items + "DECLARE @n nvarchar(10) = 'old', @k int SELECT @n = name FROM item WHERE id = 9 PRINT @n SELECT @n = name, @k = id FROM item ORDER BY id PRINT @n PRINT @k PRINT @@ROWCOUNT" + drops, "old\ncog \n3\n0"},
		{"assignments of a row see each other", items + "DECLARE @s nvarchar(50) = '' SELECT @s = @s + name + ',' FROM item ORDER BY name PRINT @s" + drops, "bolt,cog ,Nut,"},
		{"a subquery without a row is NULL", items + "DECLARE @n int = 5 SET @n = (SELECT id FROM item WHERE id = 9) PRINT ISNULL(CAST(@n AS varchar), 'null')" + drops, "null"},
		{"a subquery with two rows is 512", items + "DECLARE @n int SET @n = (SELECT id FROM item)" + drops, "Msg 512, 1: Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , >, >= or when the subquery is used as an expression."},
		{"sums of int are int, averages are cut", items + "SELECT SUM(id), AVG(id), COUNT(price), MAX(name), SUM(price), AVG(price) FROM item" + drops, "6|2|2|Nut|5.50|2.750000\nMsg 8153, 0: Warning: Null value is eliminated by an aggregate or other SET operation."},
		{"a sum that is too great is 8115", "SELECT SUM(n) FROM (VALUES (2147483647), (1)) AS v (n)", "Msg 8115, 1: Arithmetic overflow error converting expression to data type int."},
		{"groups, HAVING and ORDER BY of an alias", items + "SELECT LEFT(name, 1) AS l, COUNT(*) AS n FROM (SELECT name FROM item UNION ALL SELECT N'NAIL') AS a GROUP BY LEFT(name, 1) HAVING COUNT(*) > 0 ORDER BY n DESC, l" + drops, "N|2\nb|1\nc|1"},
		{"TOP, OFFSET and DISTINCT", items + "SELECT TOP (2) name FROM item ORDER BY name SELECT name FROM item ORDER BY id OFFSET 1 ROWS FETCH NEXT 1 ROWS ONLY SELECT DISTINCT LEN(name) AS l FROM item ORDER BY l" + drops, "bolt\ncog\nbolt\n3\n4"},
		{"NULL stands first", items + "SELECT id FROM item ORDER BY price SELECT id FROM item ORDER BY price DESC" + drops, "3\n1\n2\n2\n1\n3"},
		{"joins, APPLY and windows", items + "SELECT a.id, b.id, x.n, ROW_NUMBER() OVER (ORDER BY a.id DESC) FROM item a LEFT JOIN item b ON b.id = a.id + 1 CROSS APPLY (SELECT COUNT(*) AS n FROM item c WHERE c.id >= a.id) x ORDER BY a.id" + drops, "1|2|3|3\n2|3|2|2\n3|NULL|1|1"},
		{"a common table refers to itself", "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT i, i * i FROM n WHERE i > 2", "3|9\n4|16"},
		{"a common table reads itself 100 times, or as often as the statement allows", "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 101) SELECT MAX(i) FROM n\nGO\nWITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 102) SELECT MAX(i) FROM n PRINT 'next'\nGO\n" +
			"WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n OPTION (MAXRECURSION 5)\nGO\nWITH n (i) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < 300) SELECT MAX(i) FROM n OPTION (MAXRECURSION 0)", "101\nMsg 530, 1: The statement terminated. The maximum recursion 100 has been exhausted before statement completion.\nnext\nMsg 530, 1: The statement terminated. The maximum recursion 5 has been exhausted before statement completion.\n300"},
		{"UPDATE takes sources and gives old and new values", items + "UPDATE i SET price = v.p OUTPUT deleted.price, inserted.price, inserted.name FROM item i JOIN (VALUES (1, 7.0), (2, 8.0)) AS v (id, p) ON v.id = i.id WHERE v.id = 2" + drops, "3.00|8.00|bolt"},
		{"UPDATE sets a variable and a column at once", items + "DECLARE @p decimal(9,2) UPDATE item SET @p = price = price + 1 WHERE id = 1 PRINT @p" + drops, "(1)\n3.50"},
		{"DELETE TOP, with OUTPUT INTO a table variable", items + "DECLARE @d TABLE (id int) DELETE TOP (1) FROM item OUTPUT deleted.id INTO @d SELECT id FROM @d SELECT COUNT(*) FROM item" + drops, "(1)\n1\n2"},
		{"a common table is changed: the rows behind it", `SET NOCOUNT ON
CREATE TABLE work (id int PRIMARY KEY, kind varchar(5), n int) INSERT work VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 3)
CREATE TABLE loose (kind varchar(5), n int) INSERT loose VALUES ('x', 1), ('x', 1), ('y', 2)
;WITH c AS (SELECT TOP (1) * FROM work WITH (ROWLOCK, READPAST) ORDER BY id) DELETE FROM c OUTPUT deleted.id, deleted.kind
;WITH c AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY kind, n ORDER BY n) AS rn FROM loose) DELETE c WHERE rn > 1
SELECT kind, n FROM loose ORDER BY kind
;WITH c AS (SELECT w.kind, w.n FROM work AS w WHERE w.id > 1) UPDATE c SET n = n * 10 WHERE c.kind = 'b'
;WITH c AS (SELECT TOP (1) id, n FROM work WITH (UPDLOCK, READPAST) ORDER BY n DESC) UPDATE c SET n = n + 1 OUTPUT inserted.id, inserted.n
DECLARE @t table (id int, v int) INSERT @t VALUES (1, 1), (2, 2)
SET NOCOUNT OFF
;WITH c AS (SELECT id FROM work WHERE n > 100) DELETE c
;WITH c AS (SELECT kind FROM loose GROUP BY kind) DELETE c
DROP TABLE work, loose`, "1|a\nx|1\ny|2\n3|31\n(0)\nMsg 40517, 12: 'DELETE of a common table with groups, DISTINCT or several sources' is not supported by Parley."},
		{"TOP 100 PERCENT takes all rows, also inside", "SELECT t.n FROM (SELECT TOP (100) PERCENT n FROM (VALUES (2), (1)) AS v (n) ORDER BY n) AS t ORDER BY n SELECT TOP 100 PERCENT n FROM (VALUES (3)) AS v (n)", "1\n2\n3"},
		{"bytes have a least and a greatest", "SELECT MIN(b), MAX(b) FROM (VALUES (0x02), (0x0103), (NULL)) AS v (b) SELECT MAX(b) OVER (), b FROM (VALUES (CAST(0x02 AS binary(2)))) AS v (b)\nGO\nSELECT MAX(CAST(b AS varbinary(max))) FROM (VALUES (0x02)) AS v (b)", "0x0103|0x02\nMsg 8153, 0: Warning: Null value is eliminated by an aggregate or other SET operation.\n0x0200|0x0200\nMsg 8117, 1: Operand data type varbinary(max) is invalid for max operator."},
		{"EXISTS of an aggregate without GROUP BY has a row, of groups none", "CREATE TABLE none (n int) IF EXISTS (SELECT COUNT(*) FROM none) PRINT 'one' IF EXISTS (SELECT MAX(n) + 1 FROM none) PRINT 'one' IF NOT EXISTS (SELECT COUNT(*) FROM none GROUP BY n) PRINT 'no group' IF NOT EXISTS (SELECT COUNT(*) FROM none HAVING COUNT(*) > 0) PRINT 'none' IF NOT EXISTS (SELECT ROW_NUMBER() OVER (ORDER BY n) FROM none) PRINT 'no row' SELECT 1 WHERE EXISTS (SELECT COUNT(*) FROM none) DROP TABLE none", "one\none\nno group\nnone\nno row\n1"},
		{"DELETE by a join", items + "DELETE i FROM item i WHERE EXISTS (SELECT 1 FROM item j WHERE j.id = i.id + 1) SELECT id FROM item" + drops, "(2)\n3"},
		{"identities", items + "INSERT item (name) VALUES ('a'), ('b') PRINT @@IDENTITY PRINT SCOPE_IDENTITY() EXEC('INSERT item (name) VALUES (''c'')') PRINT @@IDENTITY PRINT SCOPE_IDENTITY()" + drops, "(2)\n5\n5\n(1)\n6\n5"},
		{"an identity is not written unless IDENTITY_INSERT is ON", items + "INSERT item (id, name) VALUES (9, 'x')\nGO\nSET IDENTITY_INSERT item ON INSERT item (id, name) VALUES (9, 'x') SET IDENTITY_INSERT item OFF SELECT MAX(id) FROM item" + drops, "Msg 544, 1: Cannot insert explicit value for identity column in table 'item' when IDENTITY_INSERT is set to OFF.\n(1)\n9"},
		{"SELECT INTO makes the types", items + "SELECT id, name, price * 2 AS twice INTO #copy FROM item WHERE id < 3 SELECT * FROM #copy" + drops, "(2)\n1|Nut|5.00\n2|bolt|6.00"},
		{"EXECUTE gives rows to INSERT", items + "INSERT item (name, price) EXEC('SELECT ''x'', 1 SELECT ''y'', 2') SELECT COUNT(*) FROM item" + drops, "(2)\n5"},
		{"set operations take the highest type", "SELECT 1 AS n UNION SELECT 2.5 UNION ALL SELECT 1 ORDER BY n DESC SELECT 'a' EXCEPT SELECT 'A'", "2.5\n1.0\n1.0"},
		{"identifiers have an order of their own", "SELECT g FROM (VALUES (CAST('00000000-0000-0000-0000-010000000000' AS uniqueidentifier)), (CAST('FF000000-0000-0000-0000-000000000000' AS uniqueidentifier))) AS v (g) ORDER BY g", "FF000000-0000-0000-0000-000000000000\n00000000-0000-0000-0000-010000000000"},
		{"each type comes back as it was stored", "DECLARE @t TABLE (b bit, y tinyint, g bigint, m money, f float, r real, d date, t time(3), s smalldatetime, e datetime, c char(4), k binary(3), x xml) INSERT @t VALUES (1, 255, -9, 1.2345, 1.5e3, 0.1, '2020-01-02', '10:11:12.123', '2020-01-02 03:04:31', '2020-01-02 03:04:05.678', 'ab', 0x01, '<a/>') SELECT * FROM @t", "(1)\n1|255|-9|1.2345|1500|0.1|2020-01-02|10:11:12.123|2020-01-02 03:05:00|2020-01-02 03:04:05.677|ab|0x010000|<a/>"},
		{"NULL and letters beyond 16 bits go through casts of rows", "DECLARE @t TABLE (id int, s nvarchar(10), b varbinary(20), v varchar(10)) INSERT @t VALUES (1, N'a😀', NULL, NULL), (2, NULL, 0x3DD800DE61, '7'), (3, N'', 0x00D86100, '') " +
			"SELECT x.b, LEN(x.s), x.i FROM (SELECT id, CAST(s AS varbinary(20)) AS b, CAST(b AS nvarchar(10)) AS s, CAST(v AS int) AS i FROM @t) AS x WHERE x.id < 9 ORDER BY x.id", "(3)\n0x61003DD800DE|NULL|NULL\nNULL|3|7\n0x|2|0"},
		{"a window of rows that a cast of bytes reads", "DECLARE @t TABLE (b varbinary(20)) INSERT @t VALUES (CAST(N'ab' AS varbinary(20))) SELECT CAST(b AS nvarchar(10)), DATALENGTH(b) FROM @t WHERE CAST(b AS nvarchar(10)) = 'AB'", "(1)\nab|4"},
	})
}

func TestErrorsOfTablesHaveTheirNumbers(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"a key twice", items + "INSERT item (name) VALUES ('a') CREATE UNIQUE INDEX ux ON item (name) INSERT item (name) VALUES ('A ')" + drops, "(1)\nMsg 2601, 1: Cannot insert duplicate key row in object 'dbo.item' with unique index 'ux'. The duplicate key value is (A )."},
		{"a primary key twice", "CREATE TABLE k (id int CONSTRAINT PK_k PRIMARY KEY) INSERT k VALUES (1) INSERT k VALUES (1) DROP TABLE k", "(1)\nMsg 2627, 1: Violation of PRIMARY KEY constraint 'PK_k'. Cannot insert duplicate key in object 'dbo.k'. The duplicate key value is (1)."},
		{"a missing value", items + "INSERT item (name) VALUES (NULL)" + drops, "Msg 515, 1: Cannot insert the value NULL into column 'name', table 'DB.dbo.item'; column does not allow nulls. INSERT fails."},
		{"a text that is too long, of Go and of rows", items + "INSERT item (name) VALUES ('12345678901') INSERT item (name) SELECT name + '12345678' FROM item WHERE id = 1" + drops, "Msg 2628, 1: String or binary data would be truncated in table 'DB.dbo.item', column 'name'. Truncated value: '1234567890'.\nMsg 2628, 1: String or binary data would be truncated in table 'DB.dbo.item', column 'name'. Truncated value: ''."},
		{"foreign keys and checks", "CREATE TABLE p (id int PRIMARY KEY) CREATE TABLE c (id int CONSTRAINT FK_c REFERENCES p, n int CONSTRAINT CK_n CHECK (n > 0)) INSERT c VALUES (1, 1)\nGO\nINSERT p VALUES (1) INSERT c VALUES (1, 0) INSERT c VALUES (1, 1) DELETE p\nGO\nDROP TABLE p\nGO\nDROP TABLE c, p", "Msg 547, 1: The INSERT statement conflicted with the FOREIGN KEY constraint \"FK_c\". The conflict occurred in database \"DB\", table \"dbo.p\", column 'id'.\n(1)\nMsg 547, 1: The INSERT statement conflicted with the CHECK constraint \"CK_n\". The conflict occurred in database \"DB\", table \"dbo.c\", column 'n'.\n(1)\nMsg 547, 1: The DELETE statement conflicted with the REFERENCE constraint \"FK_c\". The conflict occurred in database \"DB\", table \"dbo.c\".\nMsg 3726, 1: Could not drop object 'p' because it is referenced by a FOREIGN KEY constraint."},
		{"names", items + "SELECT nope FROM item\nGO\nSELECT x.id FROM item\nGO\nSELECT id FROM item a, item b\nGO\nSELECT * FROM missing\nGO\nINSERT item VALUES (1)\nGO\nDROP TABLE missing\nGO\nCREATE TABLE item (a int)" + drops, "Msg 207, 1: Invalid column name 'nope'.\nMsg 4104, 1: The multi-part identifier \"x.id\" could not be bound.\nMsg 209, 1: Ambiguous column name 'id'.\nMsg 208, 1: Invalid object name 'missing'.\nMsg 213, 1: Column name or number of supplied values does not match table definition.\nMsg 3701, 1: Cannot drop the table 'missing', because it does not exist or you do not have permission.\nMsg 2714, 1: There is already an object named 'item' in the database."},
		{"a conversion of a column ends the batch", items + "SELECT id FROM item WHERE name = 1 PRINT 'not reached'" + drops, "Msg 245, 1: Conversion failed when converting the nvarchar value 'Nut' to data type int."},
		{"a quotient by zero of rows", items + "SELECT 1 FROM item WHERE 1 / (id - id) = 1 PRINT 'reached'" + drops, "Msg 8134, 1: Divide by zero error encountered.\nreached"},
	})
}
