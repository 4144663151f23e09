package translator_test

import "testing"

const workAndOrders = `SET NOCOUNT ON CREATE TABLE work (id int PRIMARY KEY, n int) INSERT work VALUES (1, 1), (2, 1), (3, 2), (4, 2), (5, 3)
CREATE TABLE loose (n int) INSERT loose VALUES (1), (1), (2)
CREATE TABLE orders (id int, work int) INSERT orders VALUES (1, 1), (2, 2), (3, 9) SET NOCOUNT OFF
GO
`

const dropsWork = "\nGO\nSELECT id, n FROM work DROP TABLE work, loose, orders"

// FROM may name the target of UPDATE and DELETE as a common table, a query or a view: the rows of the table behind it are changed.
func TestChangesTakeATargetThatFromNamesAsAQuery(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"a common table that is joined", workAndOrders + `WITH c AS (SELECT id, n FROM work WHERE id < 3) DELETE c FROM c JOIN orders AS o ON o.work = c.id WHERE o.id = 1
;WITH c AS (SELECT TOP (2) id, n FROM work ORDER BY id DESC) DELETE FROM c FROM orders AS o JOIN c ON c.id = o.id + 2` + dropsWork, "(1)\n(2)\n2|1\n3|2"},
		{"by its alias, with old and new values and those of the others", workAndOrders + "WITH c AS (SELECT id, n FROM work) UPDATE x SET n = o.id + 60 OUTPUT deleted.n, inserted.n, o.work FROM c AS x JOIN orders AS o ON o.id = x.id WHERE x.id > 2" + dropsWork, "2|63|9\n1|1\n2|1\n3|63\n4|2\n5|3"},
		{"a common table beside the target", workAndOrders + "WITH c AS (SELECT work FROM orders) DELETE FROM work FROM c WHERE c.work = work.id\n;WITH c AS (SELECT work FROM orders) UPDATE w SET n = 0 FROM work AS w LEFT JOIN c ON c.work = w.id WHERE c.work IS NULL AND w.id < 4" + dropsWork, "(2)\n(1)\n3|0\n4|2\n5|3"},
		{"a query in FROM", workAndOrders + `DELETE x FROM (SELECT TOP (1) * FROM work ORDER BY id DESC) AS x
UPDATE x SET n = 7 FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY id) AS place FROM work) AS x JOIN orders AS o ON o.work = x.place
DELETE d FROM (SELECT ROW_NUMBER() OVER (PARTITION BY n ORDER BY n) AS copy FROM loose) AS d WHERE d.copy > 1
SELECT n FROM loose` + dropsWork, "(1)\n(2)\n(1)\n1\n2\n1|7\n2|7\n3|2\n4|2"},
		{"a common table or a query over another", workAndOrders + `WITH a AS (SELECT id, n FROM work WHERE id < 5), b AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY n ORDER BY id) AS copy FROM a) DELETE FROM b OUTPUT deleted.id WHERE copy > 1
;WITH a (m) AS (SELECT n FROM loose), b AS (SELECT x.m, ROW_NUMBER() OVER (PARTITION BY x.m ORDER BY x.m) AS copy FROM a AS x) DELETE b WHERE copy > 1
UPDATE q SET n = 50 FROM (SELECT TOP (1) * FROM (SELECT id, n FROM work WHERE id > 1) AS i ORDER BY i.id DESC) AS q
;WITH work AS (SELECT * FROM work WHERE id = 3) UPDATE work SET n = 30
;WITH a AS (SELECT * FROM work), b AS (SELECT * FROM a) UPDATE b SET n = b.n + o.work FROM b JOIN orders AS o ON o.id = b.id AND o.id < 3
SELECT n FROM loose` + dropsWork, "2\n4\n(1)\n(1)\n(1)\n(1)\n1\n2\n1|2\n3|30\n5|50"},
		{"a view that is joined", workAndOrders + `CREATE VIEW late AS SELECT id, n FROM work WHERE id > 1
GO
DELETE late FROM late JOIN orders AS o ON o.work = late.id UPDATE l SET n = 8 OUTPUT deleted.n, inserted.n FROM late AS l JOIN orders AS o ON o.id = l.id DELETE TOP (1) FROM late WHERE id = 5
;WITH c AS (SELECT TOP (1) * FROM late ORDER BY id DESC) DELETE c
DROP VIEW late` + dropsWork, "(1)\n2|8\n(1)\n(1)\n1|1\n3|8"},
		{
			"a query with groups, several tables or new names of columns is refused", workAndOrders + `DELETE x FROM (SELECT n FROM work GROUP BY n) AS x
GO
UPDATE x SET b = 1 FROM (SELECT n FROM work) AS x (b)
GO
WITH c AS (SELECT w.id FROM work AS w JOIN orders AS o ON o.work = w.id) DELETE c FROM c JOIN orders AS o ON o.work = c.id` + "\nGO\nDROP TABLE work, loose, orders",
			"Msg 40517, 1: 'DELETE of a common table with groups, DISTINCT or several sources' is not supported by Parley.\nMsg 40517, 1: 'a change of a query that renames its columns' is not supported by Parley.\nMsg 40517, 1: 'DELETE of a common table over more than one table' is not supported by Parley.",
		},
	})
}
