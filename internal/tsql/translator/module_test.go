package translator_test

import "testing"

func TestTemporaryObjectsEndWhereSQLServerEndsThem(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"a table variable keeps rows and identity through a rollback, a #table does not", "SET NOCOUNT ON DECLARE @t TABLE (id int IDENTITY, n int) CREATE TABLE #t (n int) BEGIN TRAN INSERT @t VALUES (1), (2) INSERT #t VALUES (1) ROLLBACK INSERT @t VALUES (3) SELECT * FROM @t SELECT COUNT(*) FROM #t", "1|1\n2|2\n3|3\n0"},
		{"a rollback undoes the making of a #table", "BEGIN TRAN CREATE TABLE #t (n int) ROLLBACK SELECT * FROM #t", "Msg 208, 1: Invalid object name '#t'."},
		{"a savepoint undoes a #table's rows alone", "SET NOCOUNT ON CREATE TABLE #t (n int) DECLARE @t TABLE (n int) BEGIN TRAN INSERT #t VALUES (1) SAVE TRAN s INSERT #t VALUES (2) INSERT @t VALUES (2) ROLLBACK TRAN s COMMIT SELECT n FROM #t SELECT n FROM @t", "1\n2"},
		{"a #table of a text ends with it, and hides that of the caller", "SET NOCOUNT ON CREATE TABLE #t (n int) INSERT #t VALUES (1) EXEC('CREATE TABLE #t (n int) INSERT #t VALUES (2) SELECT n FROM #t') SELECT n FROM #t EXEC('CREATE TABLE #u (n int)') SELECT * FROM #u", "2\n1\nMsg 208, 1: Invalid object name '#u'."},
		{"a #table outlives its batch, a table variable does not", "SET NOCOUNT ON CREATE TABLE #t (n int) DECLARE @t TABLE (n int)\nGO\nINSERT #t VALUES (1) SELECT n FROM #t\nGO\nSELECT * FROM @t", "1\nMsg 1087, 1: Must declare the table variable \"@t\"."},
		{"a DECLARE in a loop keeps the rows", "SET NOCOUNT ON DECLARE @i int = 0 WHILE @i < 2 BEGIN DECLARE @t TABLE (n int) INSERT @t VALUES (@i) SET @i += 1 END SELECT n FROM @t", "0\n1"},
		{"each call of a procedure has its own table variable", "CREATE PROCEDURE #p @n int AS DECLARE @t TABLE (n int) INSERT @t VALUES (@n) IF @n > 0 BEGIN SET @n -= 1 EXEC #p @n END SELECT n FROM @t\nGO\nSET NOCOUNT ON EXEC #p 1", "0\n1"},
		{"OUTPUT INTO and joins of table variables", "SET NOCOUNT ON DECLARE @a TABLE (id int), @b TABLE (id int, was int) INSERT @a VALUES (1), (2) UPDATE @a SET id = id + 10 OUTPUT inserted.id, deleted.id INTO @b DELETE a FROM @a a JOIN @b b ON b.id = a.id WHERE b.was = 1 SELECT a.id, b.was FROM @a a JOIN @b b ON a.id = b.id", "12|2"},
	})
}

const numbers = "SET NOCOUNT ON CREATE TABLE #n (id int PRIMARY KEY, v varchar(5)) INSERT #n VALUES (1, 'a'), (2, 'b'), (3, 'c') DECLARE @id int, @v varchar(5)\n"

func TestCursorsWalkAsSQLServerSays(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"a loop over rows", numbers + "DECLARE c CURSOR LOCAL FAST_FORWARD FOR SELECT id, v FROM #n WHERE id > 1 OPEN c FETCH NEXT FROM c INTO @id, @v WHILE @@FETCH_STATUS = 0 BEGIN PRINT CONCAT(@id, @v) FETCH NEXT FROM c INTO @id, @v END PRINT @@FETCH_STATUS PRINT @v CLOSE c DEALLOCATE c", "2b\n3c\n-1\nc"},
		{"any direction", numbers + "DECLARE c SCROLL CURSOR FOR SELECT id FROM #n OPEN c FETCH LAST FROM c FETCH PRIOR FROM c FETCH ABSOLUTE 1 FROM c FETCH RELATIVE 2 FROM c PRINT @@CURSOR_ROWS DEALLOCATE c", "3\n2\n1\n3\n3"},
		{"a forward cursor goes forward", numbers + "DECLARE c CURSOR FOR SELECT id FROM #n OPEN c FETCH PRIOR FROM c DEALLOCATE c", "Msg 16911, 2: fetch: The fetch type PRIOR cannot be used with forward only cursors."},
		{"a cursor declared over an empty table sees the rows of OPEN", "SET NOCOUNT ON DECLARE @t TABLE (n int) DECLARE c CURSOR FOR SELECT n FROM @t INSERT @t VALUES (7) OPEN c FETCH c DEALLOCATE c", "7"},
		{"WHERE CURRENT OF, twice on one row", numbers + "DECLARE c CURSOR FOR SELECT id FROM #n OPEN c FETCH c INTO @id UPDATE #n SET v = 'x' WHERE CURRENT OF c UPDATE #n SET v = v + 'y' WHERE CURRENT OF c FETCH c INTO @id DELETE #n WHERE CURRENT OF c SELECT * FROM #n DEALLOCATE c", "1|xy\n3|c"},
		{"a global cursor outlives its procedure, a local one does not", numbers + "EXEC('DECLARE g CURSOR FOR SELECT 1 DECLARE l CURSOR LOCAL FOR SELECT 2') OPEN g FETCH g OPEN l", "1\nMsg 16916, 2: A cursor with the name 'l' does not exist."},
		{"a rollback closes what is not static", numbers + "DECLARE c CURSOR FOR SELECT id FROM #n DECLARE s CURSOR STATIC FOR SELECT id FROM #n BEGIN TRAN OPEN c OPEN s ROLLBACK FETCH s FETCH c", "1\nMsg 16917, 2: Cursor is not open."},
		{"the states of a cursor", "DECLARE c CURSOR FOR SELECT 1 OPEN c OPEN c CLOSE c CLOSE c DEALLOCATE c DEALLOCATE c", "Msg 16905, 1: The cursor is already open.\nMsg 16917, 1: Cursor is not open.\nMsg 16916, 1: A cursor with the name 'c' does not exist."},
		{"a variable holds a cursor", numbers + "DECLARE @c CURSOR SET @c = CURSOR FOR SELECT v FROM #n OPEN @c FETCH NEXT FROM @c INTO @v PRINT @v CLOSE @c DEALLOCATE @c", "a"},
	})
}

const watched = "SET NOCOUNT ON CREATE TABLE w (id int PRIMARY KEY, n int) CREATE TABLE log (what varchar(30))\nGO\n"

const unwatched = "\nGO\nDROP TABLE w, log"

func TestTriggersFireOnceForAStatement(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"for all rows, and for none", watched + "CREATE TRIGGER tr ON w AFTER INSERT, UPDATE, DELETE AS INSERT log SELECT CONCAT((SELECT COUNT(*) FROM inserted), '/', (SELECT COUNT(*) FROM deleted))\nGO\nINSERT w VALUES (1, 1), (2, 2) UPDATE w SET n = 3 DELETE w WHERE id = 9 SELECT what FROM log" + unwatched, "2/0\n2/2\n0/0"},
		{"it sees old and new values and which columns are set", watched + "CREATE TRIGGER tr ON w FOR UPDATE AS IF UPDATE(n) AND NOT UPDATE(id) INSERT log SELECT CONCAT(d.n, '>', i.n, ' ', CAST(COLUMNS_UPDATED() AS int)) FROM inserted i JOIN deleted d ON d.id = i.id\nGO\nINSERT w VALUES (1, 5) UPDATE w SET n += 1 SELECT what FROM log" + unwatched, "5>6 2"},
		{"@@TRANCOUNT counts it", watched + "CREATE TRIGGER tr ON w FOR INSERT AS INSERT log VALUES (@@TRANCOUNT)\nGO\nINSERT w VALUES (1, 1) PRINT @@TRANCOUNT BEGIN TRAN INSERT w VALUES (2, 1) PRINT @@TRANCOUNT COMMIT SELECT what FROM log" + unwatched, "0\n1\n1\n2"},
		{"ROLLBACK in it ends the batch", watched + "CREATE TRIGGER tr ON w FOR INSERT AS IF EXISTS (SELECT * FROM inserted WHERE n < 0) ROLLBACK\nGO\nINSERT w VALUES (1, 1) INSERT w VALUES (2, -1) PRINT 'not reached'\nGO\nSELECT * FROM w PRINT @@TRANCOUNT" + unwatched, "Msg 3609, 1: The transaction ended in the trigger. The batch has been aborted.\n1|1\n0"},
		{"an error in it undoes the statement and ends the batch", watched + "CREATE TRIGGER tr ON w FOR INSERT AS INSERT log VALUES (1 / 0)\nGO\nINSERT w VALUES (1, 1) PRINT 'not reached'\nGO\nSELECT COUNT(*) FROM w" + unwatched, "Msg 8134, 1: Divide by zero error encountered.\n0"},
		{"SCOPE_IDENTITY stays the statement's, @@IDENTITY does not", "SET NOCOUNT ON CREATE TABLE w (id int IDENTITY, n int) CREATE TABLE log (id int IDENTITY(100, 1), what int)\nGO\nCREATE TRIGGER tr ON w FOR INSERT AS INSERT log SELECT n FROM inserted\nGO\nINSERT w VALUES (5) PRINT SCOPE_IDENTITY() PRINT @@IDENTITY" + unwatched, "1\n100"},
		{"@@ROWCOUNT and ROWCOUNT_BIG begin with the rows of the statement", watched + "CREATE TRIGGER tr ON w FOR INSERT, UPDATE, DELETE AS INSERT log VALUES (@@ROWCOUNT)\nGO\nCREATE TRIGGER tr2 ON w FOR INSERT, UPDATE, DELETE AS IF ROWCOUNT_BIG() = 0 RETURN INSERT log VALUES ('some')\nGO\nINSERT w VALUES (1, 1), (2, 2) UPDATE w SET n = 3 WHERE id = 9 DELETE w WHERE id = 1 SELECT what FROM log" + unwatched, "2\nsome\n0\n1\nsome"},
		{"a disabled one does not fire", watched + "CREATE TRIGGER tr ON w FOR INSERT AS INSERT log VALUES ('x')\nGO\nDISABLE TRIGGER tr ON w INSERT w VALUES (1, 1) ENABLE TRIGGER ALL ON w INSERT w VALUES (2, 1) SELECT COUNT(*) FROM log\nGO\nDROP TRIGGER tr" + unwatched, "1"},
	})
}

func TestFunctionsAndViewsOfTheUserRun(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"a scalar function, of values and of rows", "CREATE FUNCTION dbo.twice (@n int) RETURNS int AS BEGIN DECLARE @r int = @n IF @n > 0 SET @r = @n * 2 RETURN @r END\nGO\nPRINT dbo.twice(4) SELECT dbo.twice(n), n FROM (VALUES (1), (-2)) AS v (n) WHERE dbo.twice(n) > 0\nGO\nDROP FUNCTION dbo.twice PRINT dbo.twice(1)", "8\n2|1\nMsg 4121, 1: Cannot find either column \"dbo\" or the user-defined function or aggregate \"dbo.twice\", or the name is ambiguous."},
		{"a function reads tables", "CREATE TABLE t (n int) INSERT t VALUES (1), (2)\nGO\nCREATE FUNCTION dbo.total () RETURNS int AS BEGIN RETURN (SELECT SUM(n) FROM t) END\nGO\nSELECT n, dbo.total() FROM t\nGO\nDROP FUNCTION dbo.total DROP TABLE t", "(2)\n1|3\n2|3"},
		{"a table function of one query takes part in the statement", "CREATE FUNCTION dbo.above (@n int) RETURNS TABLE AS RETURN (SELECT v, v * 10 AS tens FROM (VALUES (1), (2), (3)) AS a (v) WHERE v > @n)\nGO\nSELECT tens FROM dbo.above(1) SELECT x.n, f.v FROM (VALUES (2)) AS x (n) CROSS APPLY dbo.above(x.n) f\nGO\nDROP FUNCTION dbo.above", "20\n30\n2|3"},
		{"a table function of several statements", "CREATE FUNCTION dbo.list (@n int) RETURNS @r TABLE (n int, t varchar(5)) AS BEGIN WHILE @n > 0 BEGIN INSERT @r VALUES (@n, CASE @n WHEN 1 THEN NULL ELSE 'x' END) SET @n -= 1 END RETURN END\nGO\nSELECT n, t FROM dbo.list(2)\nGO\nDROP FUNCTION dbo.list", "2|x\n1|NULL"},
		{"one of several statements is applied to rows, once for each list of arguments", "CREATE FUNCTION dbo.list (@n int, @s varchar(5)) RETURNS @r TABLE (n int, t varchar(5)) AS BEGIN WHILE @n > 0 BEGIN INSERT @r VALUES (@n, @s) SET @n -= 1 END RETURN END\nGO\nSET NOCOUNT ON CREATE TABLE v (a int, s varchar(5)) INSERT v VALUES (1, 'x'), (2, 'X'), (0, 'z'), (NULL, NULL) SELECT v.a, f.n, f.t FROM v CROSS APPLY dbo.list(v.a, v.s) AS f ORDER BY v.a, f.n SELECT v.a, f.n FROM v OUTER APPLY dbo.list(a, s) AS f WHERE v.a = 0 OR v.a IS NULL ORDER BY v.a SELECT COUNT(*) FROM v JOIN v AS w ON w.a = v.a CROSS APPLY dbo.list(w.a - 1, 'y') AS f\nGO\nDROP FUNCTION dbo.list DROP TABLE v", "1|1|x\n2|1|X\n2|2|X\nNULL|NULL\n0|NULL\n1"},
		{"a view has names, types and constants", "CREATE TABLE t (n int, s nvarchar(5)) INSERT t VALUES (1, N'it''s'), (2, N'b')\nGO\nCREATE VIEW v (k, l) AS SELECT n * 2, s + N'!' FROM t WHERE s <> N'B'\nGO\nSELECT * FROM v WHERE l = 'IT''S!'\nGO\nALTER VIEW v AS SELECT s FROM t\nGO\nSELECT COUNT(*) FROM v DROP VIEW v DROP TABLE t", "(2)\n2|it's!\n2"},
	})
}

func TestDocumentsAreWrittenAndRead(t *testing.T) {
	t.Parallel()
	const doc = "DECLARE @x xml = N'<r><i k=\"1\"><n>a</n><n>b</n></i><i k=\"2\"><n>c</n></i></r>' "
	play(t, []scenario{
		{"no rows give no document, also with ROOT", "SELECT 1 AS a WHERE 1 = 0 FOR XML RAW, ROOT('r') SELECT (SELECT 1 AS a WHERE 1 = 0 FOR XML PATH('e'), ROOT('r'), TYPE) DECLARE @x xml = (SELECT 1 AS a WHERE 1 = 0 FOR XML AUTO, ROOT) PRINT ISNULL(CAST(@x AS varchar(9)), 'none')", "NULL\nnone"},
		{"RAW", "SELECT 1 AS a, NULL AS b, N'x<&' AS c FOR XML RAW SELECT 1 AS a, N'x' AS b FOR XML RAW('e'), ELEMENTS, ROOT", "<row a=\"1\" c=\"x&lt;&amp;\"/>\n<root><e><a>1</a><b>x</b></e></root>"},
		{"PATH", "SELECT 1 AS [@id], 'n' AS [a/b], 'm' AS [a/c], 't' AS [*], NULL AS d FOR XML PATH('e') SELECT N'x,' FOR XML PATH('') SELECT 1 AS a WHERE 1 = 0 FOR XML PATH", "<e id=\"1\"><a><b>n</b><c>m</c></a>t</e>\nx,"},
		{"AUTO nests by tables", "SET NOCOUNT ON CREATE TABLE #p (id int) CREATE TABLE #c (p int, n char(1)) INSERT #p VALUES (1) INSERT #c VALUES (1, 'a'), (1, 'b') SELECT p.id, c.n FROM #p p JOIN #c c ON c.p = p.id ORDER BY c.n FOR XML AUTO", "<p id=\"1\"><c n=\"a\"/><c n=\"b\"/></p>"},
		{"a document inside one, of the row", "SELECT v.n AS [@n], (SELECT w.m AS [@m] FROM (VALUES (1, 'x'), (2, 'y'), (1, 'z')) AS w (n, m) WHERE w.n = v.n ORDER BY w.m FOR XML PATH('w'), TYPE) FROM (VALUES (1), (2)) AS v (n) FOR XML PATH('v'), ROOT('vs')", "<vs><v n=\"1\"><w m=\"x\"/><w m=\"z\"/></v><v n=\"2\"><w m=\"y\"/></v></vs>"},
		{"a document in a variable", "DECLARE @x xml SET @x = (SELECT 1 AS a FOR XML PATH, TYPE) PRINT CAST(@x AS nvarchar(50))", "<row><a>1</a></row>"},
		{"namespaces", ";WITH XMLNAMESPACES ('urn:a' AS a) SELECT 1 AS [a:n] FOR XML PATH('a:r') DECLARE @x xml = N'<r xmlns=\"urn:d\"><n>5</n></r>' ;WITH XMLNAMESPACES (DEFAULT 'urn:d') SELECT @x.value('(/r/n)[1]', 'int')", "<a:r xmlns:a=\"urn:a\"><a:n>1</a:n></a:r>\n5"},
		{"nodes of a variable", doc + "SELECT t.c.value('@k', 'int'), t.c.value('(n)[1]', 'varchar(5)'), t.c.query('n'), t.c.exist('n[2]') FROM @x.nodes('/r/i') AS t (c)", "1|a|<n>a</n><n>b</n>|1\n2|c|<n>c</n>|0"},
		{"nodes of nodes and of columns", doc + "SELECT i.c.value('@k', 'int'), n.c.value('.', 'varchar(5)') FROM @x.nodes('/r/i') AS i (c) CROSS APPLY i.c.nodes('n') AS n (c) DECLARE @t TABLE (x xml) INSERT @t VALUES (@x) SELECT n.c.value('text()[1]', 'varchar(5)') FROM @t CROSS APPLY x.nodes('//n') AS n (c) WHERE n.c.value('.', 'char(1)') > 'a'", "1|a\n1|b\n2|c\n(1)\nb\nc"},
		{"rows of nodes go into a table", doc + "DECLARE @t TABLE (k int, n varchar(5)) INSERT @t SELECT t.c.value('@k', 'int'), t.c.value('n[1]', 'varchar(5)') FROM @x.nodes('//i') AS t (c) SELECT * FROM @t", "(2)\n1|a\n2|c"},
		{"JSON", "SELECT 1 AS a, N'x/\"' AS [b.c], CAST(1 AS bit) AS [b.d], NULL AS e FOR JSON PATH SELECT 1 AS a, NULL AS e FOR JSON PATH, INCLUDE_NULL_VALUES, WITHOUT_ARRAY_WRAPPER SELECT n, (SELECT 2 AS m FOR JSON PATH) AS o FROM (VALUES (1)) AS v (n) FOR JSON AUTO, ROOT('r')", "[{\"a\":1,\"b\":{\"c\":\"x\\/\\\"\",\"d\":true}}]\n{\"a\":1,\"e\":null}\n{\"r\":[{\"n\":1,\"o\":[{\"m\":2}]}]}"},
	})
}
