package translator_test

import "testing"

const documents = "SET NOCOUNT ON CREATE TABLE d (id int PRIMARY KEY, x xml, note nvarchar(30), n int) INSERT d VALUES (1, '<r><a>1</a></r>', N'one', 1), (2, '<r><a>2</a><a>3</a></r>', N'two', 2), (3, '<r/>', NULL, 3)\nGO\n"

const undocumented = "\nGO\nDROP TABLE d"

func TestModifyChangesColumns(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"in the rows of the condition", documents + "SET NOCOUNT OFF UPDATE d SET x.modify('insert <b/> as first into (/r)[1]') WHERE id <= 2 UPDATE d SET x.modify('delete /r/a[1]') WHERE n = 2 UPDATE d SET x.modify('replace value of (/r/a/text())[1] with \"9\"') SELECT x FROM d" + undocumented, "(2)\n(1)\n(3)\n<r><b/><a>9</a></r>\n<r><b/><a>9</a></r>\n<r/>"},
		{"with values of variables and of columns of the row", documents + "DECLARE @v int = 7 UPDATE d SET x.modify('insert <v n=\"{sql:variable(\"@v\")}\">{sql:column(\"d.note\")}</v> into (/r)[1]'), note = N'new' WHERE id = 1 SELECT x, note FROM d WHERE id = 1" + undocumented, "<r><a>1</a><v n=\"7\">one</v></r>|new"},
		{"through an alias, with other tables, OUTPUT and TOP", documents + "CREATE TABLE #k (id int, v nvarchar(5)) INSERT #k VALUES (2, N'k') UPDATE t SET x.modify('insert attribute k {sql:column(\"s.v\")} into (/r)[1]') OUTPUT deleted.x, inserted.x, s.v FROM d AS t JOIN #k AS s ON s.id = t.id UPDATE TOP (1) d SET x.modify('delete /r/a') WHERE x.exist('/r/a') = 1 SELECT COUNT(*) FROM d WHERE x.exist('/r/a') = 1" + undocumented, "<r><a>2</a><a>3</a></r>|<r k=\"k\"><a>2</a><a>3</a></r>|k\n1"},
		{"of tables without a key, #tables and table variables", "SET NOCOUNT ON DECLARE @t TABLE (x xml) INSERT @t VALUES ('<a/>'), ('<b/>') UPDATE @t SET x.modify('insert <c/> into (/a)[1]') SELECT x FROM @t CREATE TABLE #t (x xml) INSERT #t VALUES ('<a/>') UPDATE #t SET x.modify('insert text {\"t\"} into (/a)[1]') SELECT x FROM #t", "<a><c/></a>\n<b/>\n<a>t</a>"},
		{"and fires triggers", documents + "CREATE TRIGGER tr ON d FOR UPDATE AS IF UPDATE(x) SELECT i.x, e.x FROM inserted i JOIN deleted e ON e.id = i.id\nGO\nUPDATE d SET x.modify('delete /r/a') WHERE id = 1" + undocumented, "<r/>|<r><a>1</a></r>"},
		{"NULL has no nodes to change", documents + "UPDATE d SET x = NULL WHERE id = 2 UPDATE d SET x.modify('delete /r/a') PRINT @@ERROR SELECT x FROM d WHERE id = 1" + undocumented, "Msg 5302, 1: Mutator 'modify()' on 'x' cannot be called on a null value.\n5302\n<r><a>1</a></r>"},
		{"a column of another type has no modify", documents + "UPDATE d SET note.modify('delete /r/a')" + undocumented, "Msg 258, 1: Cannot call methods on nvarchar."},
		{"a namespace of the statement counts", documents + "UPDATE d SET x = '<r xmlns=\"urn:n\"><a/></r>' WHERE id = 1 ;WITH XMLNAMESPACES (DEFAULT 'urn:n') UPDATE d SET x.modify('delete /r/a') SELECT x FROM d WHERE id = 1" + undocumented, "<r xmlns=\"urn:n\"/>"},
	})
}

func TestWriteChangesAPartOfALongValue(t *testing.T) {
	t.Parallel()
	const long = "SET NOCOUNT ON DECLARE @t TABLE (id int, v nvarchar(max), b varbinary(max)) INSERT @t VALUES (1, N'abcdef', 0x010203) "
	play(t, []scenario{
		{"in the middle, up to the end, appended and cut", long + "UPDATE @t SET v.WRITE(N'XYZ', 1, 2) SELECT v FROM @t UPDATE @t SET v.WRITE(N'!', 3, NULL) SELECT v FROM @t UPDATE @t SET v.WRITE(N'ende', NULL, 0) SELECT v FROM @t UPDATE @t SET v.WRITE(NULL, 2, 1) SELECT v FROM @t UPDATE @t SET b.WRITE(0xFF, 1, 9) SELECT b FROM @t", "aXYZdef\naXY!\naXY!ende\naX\n0x01FF"},
		{"the offset is in the value, the length not below 0", long + "UPDATE @t SET v.WRITE(N'x', 7, 0) UPDATE @t SET v.WRITE(N'x', 0, -1)", "Msg 7116, 1: Offset 7 is not in the range of available LOB data.\nMsg 7135, 1: Deletion length -1 is not in the range of available text, ntext, or image data."},
	})
}

func TestChangesAreComputedWhereTheDatabaseCannot(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"values of a column of xml", documents + "UPDATE d SET n = x.value('sum(/r/a)', 'int'), note = x.value('(/r/a)[1]', 'nvarchar(30)') SELECT n, note FROM d" + undocumented, "1|1\n5|2\n0|NULL"},
		{"values that are too long are refused", documents + "UPDATE d SET note = REPLICATE(x.value('(/r/a)[1]', 'nvarchar(30)'), 31) WHERE id = 1 PRINT @@ERROR SELECT note FROM d WHERE id = 1" + undocumented, "Msg 2628, 1: String or binary data would be truncated in table 'DB.dbo.d', column 'note'. Truncated value: '111111111111111111111111111111'.\n2628\none"},
		{"a function of the user's, of each row", documents + "CREATE FUNCTION dbo.half (@n int) RETURNS decimal(5,1) AS BEGIN RETURN @n / 2.0 END\nGO\nUPDATE d SET note = dbo.half(n) WHERE dbo.half(n) >= 1 SELECT note FROM d DELETE d WHERE dbo.half(n) < 1.2 AND id < 3 SELECT id FROM d\nGO\nDROP FUNCTION dbo.half" + undocumented, "one\n1.0\n1.5\n3"},
		{"a DELETE whose condition reads xml", documents + "SET NOCOUNT OFF DELETE d OUTPUT deleted.id WHERE x.exist('/r/a') = 0 AND n > 1 DELETE d FROM d JOIN (VALUES (2), (1)) AS k (id) ON k.id = d.id WHERE d.x.value('count(/r/a)', 'int') = k.id SELECT COUNT(*) FROM d" + undocumented, "3\n(2)\n0"},
		{"MERGE refuses what it cannot compute", documents + "MERGE d USING (VALUES (1)) AS s (id) ON s.id = d.id WHEN MATCHED THEN UPDATE SET n = d.x.value('(/r/a)[1]', 'int');" + undocumented, "Msg 40517, 1: 'MERGE or a view with what the database cannot compute' is not supported by Parley."},
	})
}

func TestRowsAreChosenSortedAndCutWhereTheDatabaseCannot(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{"ORDER BY of a value of xml, and by the name of one", documents + "SELECT id FROM d ORDER BY x.value('(/r/a)[1]', 'int') DESC SELECT id, x.value('(/r/a)[1]', 'int') AS a FROM d ORDER BY a, id SELECT id, x.value('count(/r/a)', 'int') FROM d ORDER BY 2 DESC" + undocumented, "2\n1\n3\n3|NULL\n1|1\n2|2\n2|2\n1|1\n3|0"},
		{"TOP of rows that are sorted or chosen so", documents + "SELECT TOP (1) id FROM d ORDER BY x.value('count(/r/a)', 'int') DESC DECLARE @n int = 1 SELECT TOP (@n) id FROM d WHERE x.exist('/r/a') = 1 AND id > 1 ORDER BY id DESC" + undocumented, "2\n2"},
		{"a document inside a row has the rows of its condition and its order", documents + "SELECT (SELECT e.id AS [@i] FROM d AS e WHERE e.x.exist('/r/a') = 1 ORDER BY e.x.value('count(/r/a)', 'int') DESC FOR XML PATH('e'), TYPE) FROM (VALUES (1)) AS v (n)" + undocumented, "<e i=\"2\"/><e i=\"1\"/>"},
		{"XML is not sorted", documents + "SELECT id FROM d ORDER BY x.query('/r/a')" + undocumented, "Msg 305, 1: The xml data type cannot be compared or sorted, except when using the IS NULL operator."},
		{"TOP counts from 0", "DECLARE @n int SELECT TOP (@n) v FROM (VALUES (1)) AS t (v) SET @n = -1 SELECT TOP (@n) v FROM (VALUES (1)) AS t (v) SELECT TOP (0) v FROM (VALUES (1)) AS t (v)", "Msg 1014, 1: A TOP or FETCH clause contains an invalid value.\nMsg 1014, 1: A TOP or FETCH clause contains an invalid value."},
		{"a condition of xml chooses rows that are counted, grouped, joined and asked for", documents + "SELECT COUNT(*) FROM d WHERE x.exist('/r/a') = 1 AND id < 9 SELECT n % 2, COUNT(*) FROM d WHERE x.value('count(/r/a)', 'int') < 2 GROUP BY n % 2 IF EXISTS (SELECT * FROM d WHERE x.exist('/r/b') = 1) PRINT 'b' ELSE PRINT 'no b' SELECT k.n FROM (VALUES (1), (2), (3)) AS k (n) WHERE k.n IN (SELECT id FROM d WHERE x.exist('/r/a[2]') = 1) SELECT DISTINCT e.note FROM d AS e JOIN d AS f ON f.id = e.id WHERE f.x.exist('/r/a') = 0 DECLARE @t TABLE (x xml) INSERT @t VALUES ('<a/>'), ('<b/>') SELECT COUNT(*) FROM @t WHERE x.exist('/a') = 1" + undocumented, "2\n1|2\nno b\n2\nNULL\n1"},
		{"where a join gives rows that the table does not have", documents + "SELECT COUNT(*) FROM (VALUES (7)) AS k (n) LEFT JOIN d ON d.id = k.n WHERE d.x.exist('/r') IS NULL" + undocumented, "1"},
	})
}
