package translator_test

import "testing"

func TestASynonymStandsForTheObjectBehindIt(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{
			"rows are read and changed through a synonym, and its columns are named by it",
			items + "CREATE SYNONYM thing FOR dbo.item INSERT thing (name) VALUES ('d') UPDATE thing SET price = 9 WHERE id = 1 DELETE thing WHERE id = 2 SELECT thing.id, price FROM thing SELECT x.id FROM dbo.THING AS x WHERE EXISTS (SELECT 1 FROM thing WHERE thing.id = x.id + 3)" + drops + "\nDROP SYNONYM thing",
			"(1)\n(1)\n(1)\n1|9.00\n3|NULL\n4|1.00\n1",
		},
		{"the object is looked for when the synonym is used", "CREATE SYNONYM s FOR nowhere\nGO\nSELECT * FROM s\nGO\nCREATE TABLE nowhere (a int)\nGO\nINSERT s VALUES (1) SELECT a FROM s\nGO\nDROP TABLE nowhere DROP SYNONYM s", "Msg 5313, 1: Synonym 's' refers to an invalid object.\n(1)\n1"},
		{"a synonym of a synonym is 470", "CREATE SYNONYM a FOR dbo.b CREATE SYNONYM b FOR dbo.c\nGO\nSELECT * FROM a\nGO\nDROP SYNONYM a, b", "Msg 470, 1: The synonym \"a\" referenced synonym \"dbo.b\". Synonym chaining is not allowed."},
		{
			"its name is one of the objects of its schema",
			"CREATE TABLE o (a int) CREATE SYNONYM s FOR o\nGO\nCREATE SYNONYM o FOR s\nGO\nCREATE SYNONYM S FOR o\nGO\nCREATE TABLE s (b int)\nGO\nDROP TABLE s\nGO\nDROP SYNONYM o\nGO\nDROP SYNONYM IF EXISTS o DROP SYNONYM s DROP TABLE o",
			"Msg 2714, 1: There is already an object named 'o' in the database.\nMsg 2714, 1: There is already an object named 'S' in the database.\nMsg 2714, 1: There is already an object named 's' in the database.\nMsg 3701, 1: Cannot drop the table 's', because it does not exist or you do not have permission.\nMsg 3701, 1: Cannot drop the synonym 'o', because it does not exist or you do not have permission.",
		},
		{"a rollback takes a synonym back", "CREATE TABLE o (a int)\nGO\nBEGIN TRAN CREATE SYNONYM s FOR o SELECT * FROM s ROLLBACK\nGO\nSELECT * FROM s\nGO\nDROP TABLE o", "Msg 208, 1: Invalid object name 's'."},
		{
			"the catalog shows it", "CREATE SCHEMA sales\nGO\nCREATE SYNONYM sales.[a ]] b] FOR [x y].dbo.[o]]p] SELECT name, base_object_name, type, SCHEMA_NAME(schema_id) FROM sys.synonyms SELECT type_desc FROM sys.objects WHERE object_id = OBJECT_ID('sales.[a ]] b]', 'SN') SELECT name FROM sys.tables\nGO\nDROP SYNONYM sales.[a ]] b] DROP SCHEMA sales",
			"a ] b|[x y].[dbo].[o]]p]|SN|sales\nSYNONYM",
		},
		{
			"functions are called through a synonym",
			"CREATE FUNCTION twice (@a int) RETURNS int AS BEGIN RETURN @a * 2 END\nGO\nCREATE FUNCTION upto (@n int) RETURNS TABLE AS RETURN SELECT i FROM (VALUES (1), (2), (3)) AS v (i) WHERE i <= @n\nGO\nCREATE SYNONYM f FOR dbo.twice CREATE SYNONYM g FOR upto\nGO\nSELECT dbo.f(4), (SELECT COUNT(*) FROM dbo.g(2))\nGO\nDROP SYNONYM f, g DROP FUNCTION twice, upto",
			"8|2",
		},
		{"a definition of the table does not go through a synonym", "CREATE TABLE o (a int) CREATE SYNONYM s FOR o\nGO\nALTER TABLE s ADD b int\nGO\nTRUNCATE TABLE s\nGO\nDROP SYNONYM s DROP TABLE o", "Msg 4902, 1: Cannot find the object \"s\" because it does not exist or you do not have permissions.\nMsg 4701, 1: Cannot find the object \"s\" because it does not exist or you do not have permissions."},
	})
}
