package translator_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

const stock = "SET NOCOUNT ON CREATE TABLE stock (id int PRIMARY KEY, name nvarchar(10), n int DEFAULT 7) CREATE TABLE bare (id int, n int) " +
	"INSERT stock VALUES (1, N'nut', 10), (2, N'bolt', 20), (3, N'cog', 30) INSERT bare VALUES (1, 10), (2, 20) SET NOCOUNT OFF\nGO\n"

const noStock = "\nGO\nDROP TABLE stock, bare"

func TestMergeDoesWhatItsClausesSay(t *testing.T) {
	t.Parallel()
	play(t, []scenario{
		{
			"matched rows are changed, others are inserted or go", stock +
				"MERGE INTO stock AS t USING (VALUES (1, 5), (2, -20), (9, 90)) AS s (id, n) ON t.id = s.id " +
				"WHEN MATCHED AND t.n + s.n = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = t.n + s.n, name = UPPER(name) " +
				"WHEN NOT MATCHED BY TARGET AND s.n > 50 THEN INSERT (id, n) VALUES (s.id, s.n) WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = 0; " +
				"SELECT id, name, n FROM stock" + noStock,
			"(4)\n1|NUT|15\n3|cog|0\n9|NULL|90",
		},
		{
			"OUTPUT has $action, both states and the source", stock +
				"MERGE stock AS t USING (VALUES (1, N'a'), (8, N'b'), (9, N'c')) AS s (id, called) ON t.id = s.id " +
				"WHEN MATCHED THEN UPDATE SET name = called WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, called) WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE " +
				"OUTPUT $action, inserted.id, inserted.n, deleted.id, deleted.name, s.called;" + noStock,
			"UPDATE|1|10|1|nut|a\nINSERT|8|7|NULL|NULL|b\nINSERT|9|7|NULL|NULL|c\nDELETE|NULL|NULL|3|cog|NULL",
		},
		{
			"the example of the documentation: OUTPUT into a table variable", "CREATE TABLE reason (id int IDENTITY PRIMARY KEY, name nvarchar(20), kind nvarchar(20)) INSERT reason VALUES ('Review', 'Marketing'), ('Price', 'Other')\nGO\n" +
				"DECLARE @changes TABLE (change varchar(20)) MERGE INTO reason AS tgt USING (VALUES ('Recommendation', 'Other'), ('Review', 'Marketing 2'), ('Internet', 'Promotion')) AS src (NewName, NewKind) ON tgt.name = src.NewName " +
				"WHEN MATCHED THEN UPDATE SET kind = src.NewKind WHEN NOT MATCHED BY TARGET THEN INSERT (name, kind) VALUES (NewName, NewKind) OUTPUT $action INTO @changes; " +
				"SELECT change, COUNT(*) AS n FROM @changes GROUP BY change ORDER BY change PRINT SCOPE_IDENTITY() SELECT * FROM reason\nGO\nDROP TABLE reason",
			"(2)\n(3)\nINSERT|2\nUPDATE|1\n4\n1|Review|Marketing 2\n2|Price|Other\n3|Recommendation|Other\n4|Internet|Promotion",
		},
		{
			"a row of the target that meets two of the source is 8672 and nothing is changed", stock +
				"MERGE stock AS t USING (VALUES (1), (1)) AS s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 0;\nGO\n" +
				"MERGE bare AS t USING (VALUES (1), (1), (4)) AS s (id) ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (id, 0);\nGO\nSELECT SUM(n) FROM stock SELECT COUNT(*) FROM bare" + noStock,
			"Msg 8672, 1: The MERGE statement attempted to UPDATE or DELETE the same row more than once. This happens when a target row matches more than one source row. A MERGE statement cannot UPDATE/DELETE the same row of the target table multiple times. Refine the ON clause to ensure a target row matches at most one source row, or use the GROUP BY clause to group the source rows.\n" +
				"Msg 8672, 1: The MERGE statement attempted to UPDATE or DELETE the same row more than once. This happens when a target row matches more than one source row. A MERGE statement cannot UPDATE/DELETE the same row of the target table multiple times. Refine the ON clause to ensure a target row matches at most one source row, or use the GROUP BY clause to group the source rows.\n60\n2",
		},
		{
			"TOP counts the pairs that are changed, and a common table, a variable and a table without a key take part", stock +
				"DECLARE @add int = 3, @t TABLE (id int, n int); INSERT @t VALUES (1, 1), (7, 7); WITH w AS (SELECT id, n FROM @t) MERGE TOP (1) bare WITH (HOLDLOCK) AS t USING w ON t.id = w.id WHEN MATCHED THEN UPDATE SET n += w.n + @add WHEN NOT MATCHED THEN INSERT (id, n) VALUES (w.id, DEFAULT); " +
				"MERGE @t AS t USING bare AS b JOIN stock AS k ON k.id = b.id ON t.id = b.id WHEN MATCHED THEN UPDATE SET n = b.n + k.n WHEN NOT MATCHED BY SOURCE THEN DELETE; SELECT id, n FROM bare ORDER BY id SELECT id, n FROM @t" + noStock,
			"(2)\n(1)\n(2)\n1|14\n2|20\n1|24",
		},
		{
			"triggers run for each action with their rows", stock + "CREATE TRIGGER ins ON stock AFTER INSERT AS SELECT 'insert', id FROM inserted UNION ALL SELECT 'deleted', id FROM deleted\nGO\nCREATE TRIGGER upd ON stock AFTER UPDATE AS IF UPDATE(n) AND NOT UPDATE(name) SELECT 'update', i.n, d.n FROM inserted i JOIN deleted d ON d.id = i.id\nGO\nCREATE TRIGGER del ON stock AFTER DELETE AS SELECT 'delete', id FROM deleted\nGO\n" +
				"MERGE stock AS t USING (VALUES (1), (5)) AS s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 0 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN DELETE;" + noStock,
			"insert|5\nupdate|0|10\ndelete|2\n(3)",
		},
		{
			"clauses that do not fit are refused", stock + "MERGE stock AS t USING bare AS s ON t.id = s.id WHEN MATCHED THEN INSERT (id) VALUES (1);\nGO\nMERGE stock AS t USING bare AS s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN MATCHED AND t.id = 1 THEN UPDATE SET n = 1;\nGO\n" +
				"MERGE stock AS t USING bare AS s ON t.id = s.id WHEN MATCHED AND t.id = 1 THEN DELETE WHEN MATCHED THEN DELETE;\nGO\nMERGE stock AS t USING bare AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id);\nGO\nMERGE stock AS t USING bare AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id);\nGO\nMERGE stock AS t USING bare AS s ON t.id = s.id WHEN MATCHED THEN DELETE" + noStock,
			"Msg 10710, 1: An action of type 'INSERT' is not allowed in the 'WHEN MATCHED' clause of a MERGE statement.\nMsg 5324, 1: In a MERGE statement, a 'WHEN MATCHED' clause with a search condition cannot appear after a 'WHEN MATCHED' clause with no search condition.\nMsg 10714, 1: An action of type 'DELETE' cannot appear more than once in a 'WHEN MATCHED' clause of a MERGE statement.\nMsg 109, 1: There are more columns in the INSERT statement than values specified in the VALUES clause. The number of values in the VALUES clause must match the number of columns specified in the INSERT statement.\nMsg 4104, 1: The multi-part identifier \"t.id\" could not be bound.\nMsg 10713, 1: A MERGE statement must be terminated by a semi-colon (;).",
		},
		{"keys and missing values have their errors", stock + "MERGE stock AS t USING bare AS s ON t.id = s.id + 2 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id);\nGO\nMERGE stock AS t USING bare AS s ON 1 = 0 WHEN NOT MATCHED THEN INSERT (id) VALUES (NULL); SELECT COUNT(*) FROM stock" + noStock, "Msg 2627, 1: Violation of PRIMARY KEY constraint 'PK__stock__id'. Cannot insert duplicate key in object 'dbo.stock'. The duplicate key value is (2).\nMsg 515, 1: Cannot insert the value NULL into column 'id', table 'DB.dbo.stock'; column does not allow nulls. MERGE fails.\n3"},
	})
}

// Sessions that merge the same rows with HOLDLOCK neither insert a row twice nor lose a change; the table has no key that would tell.
func TestMergeWithHoldlockCountsEachSession(t *testing.T) {
	t.Parallel()
	dsn := parleytest.DSN(t, parleytest.EmptyDatabase(t))
	run(t, dsn, "CREATE TABLE counts (id int, n int)")
	const sessions, times = 4, 25
	var all sync.WaitGroup
	for range sessions {
		s := opened(t, dsn)
		all.Go(func() {
			got := s.run(t, "SET NOCOUNT ON DECLARE @i int = 0 WHILE @i < 25 BEGIN MERGE counts WITH (HOLDLOCK) AS t USING (VALUES (@i % 5)) AS s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET n += 1 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1); SET @i += 1 END")
			if got != "" {
				t.Error(got)
			}
		})
	}
	all.Wait()
	if got := run(t, dsn, "SELECT COUNT(*), SUM(n), MIN(n), MAX(n) FROM counts"); got != "5|100|20|20" {
		t.Errorf("rows, sum, least and most are %s, of %d merges", got, sessions*times)
	}
}

// A row that another transaction changes while MERGE waits for it is changed on top of that, or taken as one that is not there any more;
// with a key and without one.
func TestMergeGoesOnWithWhatOthersLeft(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	dsn := parleytest.DSN(t, pool)
	run(t, dsn, strings.TrimSuffix(stock, "\nGO\n"))
	holder, waiter := opened(t, dsn), opened(t, dsn)
	for _, table := range []string{"stock", "bare"} {
		for _, c := range []struct{ held, want string }{{"UPDATE " + table + " SET n = 100 WHERE id = 1", "101"}, {"DELETE " + table + " WHERE id = 1", "1"}} {
			holder.run(t, "SET NOCOUNT ON BEGIN TRAN "+c.held)
			done := make(chan string)
			go func() {
				done <- waiter.run(t, "SET NOCOUNT ON MERGE "+table+" AS t USING (VALUES (1)) AS s (id) ON t.id = s.id "+
					"WHEN MATCHED THEN UPDATE SET n += 1 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (1, 1);")
			}()
			parleytest.Until(t, "MERGE waits", func() bool { return waitsForALock(t, pool) })
			holder.run(t, "COMMIT")
			if got := <-done; got != "" {
				t.Error(got)
			}
			if got := run(t, dsn, "SELECT n FROM "+table+" WHERE id = 1"); got != c.want {
				t.Errorf("after %s: %s, want %s", c.held, got, c.want)
			}
		}
	}
}
