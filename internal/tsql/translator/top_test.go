package translator_test

import "testing"

const five = `SET NOCOUNT ON CREATE TABLE five (id int PRIMARY KEY, n int) INSERT five VALUES (1, 1), (2, 1), (3, 2), (4, 2), (5, 3)
CREATE TABLE taken (n int) SET NOCOUNT OFF
GO
`

const dropsFive = "\nGO\nSET ROWCOUNT 0 DROP TABLE five, taken"

func TestTopTakesAPercentageOfTheRows(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"a part of a row counts as one", five + "SELECT TOP (40) PERCENT id FROM five ORDER BY id SELECT TOP 41 PERCENT id FROM five ORDER BY id DESC SELECT TOP 0 PERCENT id FROM five" + dropsFive, "1\n2\n5\n4\n3"},
		{"the number is a float, of a variable too", five + "DECLARE @p float = 0.5 SELECT TOP (@p) PERCENT id FROM five ORDER BY id" + dropsFive, "1"},
		{"WITH TIES adds the rows that are equal to the last", five + "SELECT TOP (20) PERCENT WITH TIES id FROM five ORDER BY n SELECT TOP (1) WITH TIES n, COUNT(*) FROM five GROUP BY n ORDER BY COUNT(*) DESC, n" + dropsFive, "1\n2\n1|2"},
		{"groups, DISTINCT and rows that Go chooses are counted", five + "SELECT DISTINCT TOP (50) PERCENT n FROM five ORDER BY n SELECT TOP (60) PERCENT n, COUNT(*) FROM five GROUP BY n ORDER BY n DESC SELECT TOP (50) PERCENT id FROM five WHERE FORMAT(n, '0') <> '1' ORDER BY id" + dropsFive, "1\n2\n3|1\n2|2\n3\n4"},
		{"a part of a query takes its own", five + "SELECT f.id, (SELECT TOP (1) PERCENT g.id FROM five AS g WHERE g.n = f.n ORDER BY g.id DESC) FROM (SELECT TOP (60) PERCENT * FROM five ORDER BY id DESC) AS f ORDER BY f.id" + dropsFive, "3|4\n4|4\n5|5"},
		{"a view too", five + "CREATE VIEW half AS SELECT TOP (50) PERCENT id FROM five ORDER BY id DESC\nGO\nCREATE VIEW whole AS SELECT TOP (100) PERCENT id FROM five ORDER BY id DESC\nGO\nSELECT COUNT(*) FROM half SELECT COUNT(*) FROM whole DROP VIEW half, whole" + dropsFive, "3\n5"},
		{"INSERT, UPDATE, DELETE and MERGE take it of the rows that they would change", five + `INSERT TOP (50) PERCENT INTO taken SELECT id FROM five
INSERT TOP (50) PERCENT taken VALUES (7), (8), (9)
UPDATE TOP (50) PERCENT five SET n = 9 WHERE id < 5
DELETE TOP (10) PERCENT FROM five
;WITH last AS (SELECT TOP (50) PERCENT * FROM five ORDER BY id DESC) DELETE last
MERGE TOP (50) PERCENT taken AS t USING five AS f ON t.n = f.id + 90 WHEN NOT MATCHED THEN INSERT VALUES (f.id);` + dropsFive, "(3)\n(2)\n(2)\n(1)\n(2)\n(1)"},
		{
			"errors", five + "SELECT TOP (101) PERCENT id FROM five\nGO\nDECLARE @p float SELECT TOP (@p) PERCENT id FROM five\nGO\nSELECT TOP (1) WITH TIES id FROM five\nGO\nSELECT TOP (1) id FROM five ORDER BY id OFFSET 1 ROWS" + dropsFive,
			"Msg 1031, 1: Percent values must be between 0 and 100.\nMsg 1014, 1: A TOP or FETCH clause contains an invalid value.\n" +
				"Msg 1062, 1: The TOP N WITH TIES clause is not allowed without a corresponding ORDER BY clause.\nMsg 10741, 1: A TOP can not be used in the same query or sub-query as a OFFSET.",
		},
	})
}

func TestSetRowCountLimitsStatements(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"SELECT of each form, until 0", five + `SET ROWCOUNT 2
SELECT id FROM five ORDER BY id DESC
SELECT id FROM five UNION SELECT 99 ORDER BY id DESC
SELECT id FROM five WHERE FORMAT(n, '0') <> '1' ORDER BY id
SELECT id INTO #kept FROM five ORDER BY id
DECLARE @id int SELECT @id = id FROM five ORDER BY id PRINT @id
SELECT id FROM five ORDER BY id FOR JSON PATH
SET ROWCOUNT 0
SELECT id FROM five ORDER BY id` + dropsFive, "5\n4\n99\n5\n3\n4\n(2)\n2\n[{\"id\":1},{\"id\":2}]\n1\n2\n3\n4\n5"},
		{"the smaller of it and of TOP counts", five + "SET ROWCOUNT 2 SELECT TOP (1) id FROM five ORDER BY id SELECT TOP (3) id FROM five ORDER BY id SELECT TOP (1) WITH TIES n FROM five ORDER BY n DESC DELETE TOP (1) FROM five DELETE TOP (3) FROM five" + dropsFive, "1\n1\n2\n3\n(1)\n(2)"},
		{"subqueries see all rows", five + "SET ROWCOUNT 1 DECLARE @k int = (SELECT COUNT(*) FROM five) PRINT @k SELECT COUNT(*) FROM (SELECT id FROM five) AS f SELECT MAX(id) FROM five WHERE id IN (SELECT id FROM five)" + dropsFive, "5\n5\n5"},
		{"INSERT, UPDATE, DELETE and MERGE", five + `SET ROWCOUNT 2
INSERT taken SELECT id FROM five
INSERT taken VALUES (7), (8), (9)
INSERT taken (n) SELECT n FROM five WHERE FORMAT(n, '0') > '0'
INSERT taken DEFAULT VALUES
UPDATE five SET n = n + 10
DELETE five WHERE id > 2
;WITH f AS (SELECT id, n FROM five) UPDATE f SET n = 0
DELETE t FROM taken AS t JOIN five AS f ON f.id = t.n
MERGE taken AS t USING (VALUES (51), (52), (53)) AS s (n) ON t.n = s.n WHEN NOT MATCHED THEN INSERT VALUES (s.n);
SET ROWCOUNT 0
SELECT COUNT(*) FROM five` + dropsFive, "(2)\n(2)\n(2)\n(1)\n(2)\n(2)\n(2)\n(2)\n(2)\n3"},
		{"a loop empties a table by parts", five + "SET ROWCOUNT 2 WHILE 1 = 1 BEGIN DELETE five IF @@ROWCOUNT = 0 BREAK END" + dropsFive, "(2)\n(2)\n(1)\n(0)"},
		{"a variable, and the batches behind it", five + "DECLARE @n int = 1 SET ROWCOUNT @n\nGO\nSELECT id FROM five ORDER BY id" + dropsFive, "1"},
		{"the setting of a module ends with it, and that of its caller counts inside", five + "CREATE PROCEDURE #one AS SET ROWCOUNT 1 SELECT id FROM five ORDER BY id\nGO\nCREATE PROCEDURE #all AS SELECT id FROM five ORDER BY id\nGO\n" +
			"EXEC #one EXEC ('SET ROWCOUNT 3') SET ROWCOUNT 2 EXEC #one EXEC #all" + dropsFive, "1\n1\n1\n2"},
		{"statements of a trigger", five + "INSERT taken VALUES (1), (2)\nGO\nCREATE TRIGGER tr ON five AFTER DELETE AS UPDATE taken SET n = 0\nGO\nSET ROWCOUNT 1 DELETE five WHERE id > 1 SET ROWCOUNT 0 SELECT n FROM taken ORDER BY n" + dropsFive, "(2)\n(1)\n(1)\n0\n2"},
		{"the rows of static and keyset cursors, not those of dynamic ones", five + `SET ROWCOUNT 2
DECLARE a CURSOR STATIC FOR SELECT id FROM five DECLARE b CURSOR KEYSET FOR SELECT id FROM five DECLARE c CURSOR DYNAMIC FOR SELECT id FROM five
OPEN a PRINT @@CURSOR_ROWS OPEN b PRINT @@CURSOR_ROWS OPEN c FETCH RELATIVE 5 FROM c
DEALLOCATE a DEALLOCATE b DEALLOCATE c` + dropsFive, "2\n2\n5"},
		{"WHERE CURRENT OF changes its row", five + "SET ROWCOUNT 1 DECLARE c CURSOR FOR SELECT id FROM five OPEN c FETCH c FETCH c DELETE five WHERE CURRENT OF c DEALLOCATE c" + dropsFive, "1\n2\n(1)"},
		{
			"no number, or one below 0, is error 507", five + "DECLARE @n int SET ROWCOUNT @n SET @n = -1 SET ROWCOUNT @n SELECT COUNT(*) FROM five" + dropsFive,
			"Msg 507, 1: Invalid argument for SET ROWCOUNT. Must be a non-null non-negative integer.\nMsg 507, 1: Invalid argument for SET ROWCOUNT. Must be a non-null non-negative integer.\n5",
		},
	})
}
