package translator_test

import "testing"

const sales = `SET NOCOUNT ON CREATE TABLE sale (id int PRIMARY KEY, n int, d datetime)
INSERT sale VALUES (1, 1, '20240105'), (2, 1, '20240210'), (3, 2, '20240220'), (4, 2, NULL), (5, 3, '20240301')
CREATE TABLE doc (id int, x xml, j nvarchar(max)) INSERT doc VALUES (1, '<a><b>1</b></a>', N'{"k": [1, 2]}'), (2, '<a/>', N'{"k": [3]}'), (7, NULL, NULL)
SET ANSI_WARNINGS OFF
GO
CREATE FUNCTION dbo.twice (@i int) RETURNS int AS BEGIN RETURN @i * 2 END
GO
CREATE FUNCTION dbo.known (@i int) RETURNS varchar(5) AS BEGIN RETURN CASE WHEN @i IS NULL THEN 'no' ELSE 'yes' END END
GO
`

const noSales = "\nGO\nDROP TABLE sale, doc DROP FUNCTION dbo.twice, dbo.known"

// FORMAT, functions of the user and methods of xml have no form in PostgreSQL. Go computes them before the statement where rows are grouped.
func TestWhatTheDatabaseCannotComputeIsGroupedAndSummedUp(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"GROUP BY, with sums beside it", sales + `SELECT FORMAT(d, 'yyyy-MM') AS m, COUNT(*), FORMAT(SUM(n), 'N1') FROM sale GROUP BY FORMAT(d, 'yyyy-MM') ORDER BY FORMAT(d, 'yyyy-MM')
SELECT format(sale.d, 'yyyy') AS y, COUNT(*) FROM sale WHERE n < 3 GROUP BY FORMAT(d, 'yyyy') ORDER BY y DESC
DECLARE @f varchar(10) = 'MM' SELECT FORMAT(d, @f) FROM sale GROUP BY FORMAT(d, @f) ORDER BY 1 DESC` + noSales, "NULL|1|2.0\n2024-01|1|1.0\n2024-02|2|3.0\n2024-03|1|3.0\n2024|3\nNULL|1\n03\n02\n01\nNULL"},
		{"aggregates and windows", sales + "SELECT MAX(FORMAT(n, '000')), SUM(dbo.twice(n)), COUNT(DISTINCT dbo.twice(n)) FROM sale SELECT TOP (2) id, ROW_NUMBER() OVER (ORDER BY FORMAT(n, '000') DESC, id) FROM sale ORDER BY 2" + noSales, "003|18|3\n5|1\n3|2"},
		{"HAVING, of columns and of sums", sales + "SELECT n FROM sale GROUP BY n HAVING dbo.twice(n) > 4 SELECT n, COUNT(*) FROM sale GROUP BY n HAVING dbo.twice(COUNT(*)) > 2" + noSales, "3\n1|2\n2|2"},
		{"DISTINCT, set operations, derived and common tables", sales + `SELECT DISTINCT FORMAT(d, 'yyyy') FROM sale
SELECT FORMAT(d, 'yyyy') FROM sale UNION SELECT 'x'
SELECT y, COUNT(*) FROM (SELECT FORMAT(d, 'yyyy') AS y FROM sale) AS s GROUP BY y
;WITH a AS (SELECT FORMAT(d, 'yyyy-MM') AS m, n FROM sale), b AS (SELECT m, dbo.twice(n) AS k FROM a) SELECT FORMAT(CAST(m + '-01' AS date), 'MM'), SUM(k) FROM b WHERE m IS NOT NULL GROUP BY FORMAT(CAST(m + '-01' AS date), 'MM') ORDER BY 1` + noSales, "NULL\n2024\nNULL\n2024\nx\nNULL|1\n2024|4\n01|2\n02|6\n03|6"},
		{"subqueries over the rows around them, and joins", sales + `SELECT s.id, (SELECT MAX(FORMAT(t.n, '00')) FROM sale AS t WHERE t.n = s.n) FROM sale AS s WHERE s.id IN (SELECT dbo.twice(n) FROM sale)
SELECT COUNT(*) FROM sale AS a JOIN sale AS b ON FORMAT(a.d, 'MM') = FORMAT(b.d, 'MM')` + noSales, "2|01\n4|02\n6"},
		{"rows that an outer join adds", sales + "SELECT COUNT(*) FROM doc LEFT JOIN sale ON sale.id = doc.id WHERE doc.x.exist('/a/b') = 1 SELECT dbo.known(s.id), COUNT(*) FROM doc LEFT JOIN sale AS s ON s.id = doc.id GROUP BY dbo.known(s.id) ORDER BY 1" + noSales, "1\nno|1\nyes|2"},
		{"values of xml", sales + "SELECT COUNT(*), MAX(id) FROM doc WHERE x.exist('/a/b') = 1 SELECT SUM(x.value('(/a/b)[1]', 'int')) FROM doc SELECT x.exist('/a/b'), COUNT(*) FROM doc GROUP BY x.exist('/a/b') ORDER BY 1" + noSales, "1|1\n1\nNULL|1\n0|1\n1|1"},
		{"of the rows that WHERE leaves alone, where it can be asked first", sales + `CREATE FUNCTION dbo.small (@i int) RETURNS varchar(9) AS BEGIN RETURN CAST(CAST(100 / (@i - 2) AS int) AS varchar(9)) END
GO
SELECT dbo.small(n), COUNT(*) FROM sale WHERE n <> 2 GROUP BY dbo.small(n) ORDER BY 1
SELECT s.id, (SELECT MAX(dbo.small(t.n)) FROM sale AS t WHERE t.n <> 2) FROM sale AS s WHERE s.id = 1
DROP FUNCTION dbo.small` + noSales, "-100|2\n100|1\n1|100"},
		{"INSERT of groups", sales + "INSERT sale (id, n) SELECT 10 + dbo.twice(n), COUNT(*) FROM sale GROUP BY dbo.twice(n), n SELECT id, n FROM sale WHERE id > 9" + noSales, "12|2\n14|2\n16|1"},
		{"not in a view, which other clients read too", sales + "CREATE VIEW v AS SELECT FORMAT(d, 'yyyy') AS y FROM sale" + noSales, "Msg 40517, 1: 'FORMAT() of rows in the database' is not supported by Parley."},
	})
}

func TestOpenJSONTakesAColumnOfAQueryAround(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"in conditions and values of SELECT", sales + `SELECT id FROM doc WHERE EXISTS (SELECT * FROM OPENJSON(doc.j, '$.k') WHERE value = '3')
SELECT id FROM doc WHERE 2 IN (SELECT value FROM OPENJSON(j, '$.k'))
SELECT id, (SELECT SUM(v) FROM OPENJSON(j, '$.k') WITH (v int '$')), (SELECT COUNT(*) FROM OPENJSON(j, '$.k')) FROM doc` + noSales, "2\n1\n1|3|2\n2|3|1\n7|NULL|0"},
		{"in UPDATE and DELETE", sales + `UPDATE doc SET id = (SELECT COUNT(*) FROM OPENJSON(j, '$.k')) + 10 WHERE EXISTS (SELECT 1 FROM OPENJSON(j, '$.k') AS k WHERE k.value = '2')
UPDATE d SET id = 20 FROM doc AS d JOIN sale AS s ON s.id = d.id WHERE 3 IN (SELECT value FROM OPENJSON(d.j, '$.k'))
DELETE doc WHERE NOT EXISTS (SELECT * FROM OPENJSON(j, '$.k'))
SELECT id FROM doc ORDER BY id` + noSales, "12\n20"},
		{"of a common table, and deeper inside", sales + `;WITH c AS (SELECT id, j FROM doc WHERE id < 7) SELECT id FROM c WHERE EXISTS (SELECT 1 FROM sale AS s WHERE s.id = c.id AND EXISTS (SELECT 1 FROM OPENJSON(c.j, '$.k') AS k WHERE k.value = CAST(s.id AS nvarchar(9))))` + noSales, "1"},
		{"a column that is not there is error 207", sales + "SELECT doc.id FROM doc CROSS APPLY OPENJSON(doc.nope) AS k" + noSales, "Msg 207, 1: Invalid column name 'nope'."},
	})
}
