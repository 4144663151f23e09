package runner_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// An aggregate that leaves NULL out says so by warning 8153, once a statement.
func TestAnAggregateThatLeavesNullOutWarns(t *testing.T) {
	t.Parallel()
	play := open(t, parleytest.EmptyDatabase(t).Config().ConnConfig)
	const warning = "Warning: Null value is eliminated by an aggregate or other SET operation."
	expect(t, "the table", play(`SET NOCOUNT ON
CREATE TABLE t (k int NOT NULL, n int, s varchar(9), kept int)
CREATE INDEX kept ON t (kept)
INSERT t VALUES (1, NULL, NULL, NULL), (1, 3, 'b', 1), (2, 4, 'c', 2)
GO
CREATE VIEW v AS SELECT SUM(n) AS n FROM t`), "")
	for _, c := range []struct{ rule, script, want string }{
		{"behind the rows", "SELECT SUM(n) AS n FROM t", "n\n7\n" + warning},
		{"once for all groups and aggregates", "SELECT k, AVG(n) AS a, MAX(s) AS m, COUNT(n) AS c FROM t GROUP BY k", "k a m c\n1 3 b 1\n2 4 c 1\n" + warning},
		{"of a window", "SELECT SUM(n) OVER () AS n FROM t WHERE k = 1", "n\n3\n3\n" + warning},
		{"of a query in FROM, in HAVING and in ORDER BY", "SELECT d.n FROM (SELECT SUM(n) AS n FROM t) AS d\nSELECT k FROM t GROUP BY k HAVING MIN(n) = 3\nSELECT k FROM t GROUP BY k ORDER BY MIN(n) DESC", "n\n7\n" + warning + "\nk\n1\n" + warning + "\nk\n2\n1\n" + warning},
		{"a value that becomes NULL by CASE or a join", "SELECT COUNT(CASE WHEN k = 1 THEN 1 END) AS n FROM t\nSELECT MAX(u.k) AS k FROM t LEFT JOIN t AS u ON u.k = t.n", "n\n2\n" + warning + "\nk\nNULL\n" + warning},
		{"into variables and conditions", "DECLARE @n int\nSELECT @n = SUM(n) FROM t\nSET @n = (SELECT MIN(n) FROM t)\nIF (SELECT COUNT(n) FROM t) = 2 PRINT 'two'", warning + "\n" + warning + "\n" + warning + "\ntwo"},
		{"of rows that are changed", "INSERT t (k, n) SELECT 9, SUM(n) FROM t\nUPDATE t SET s = 'x' WHERE n = (SELECT MAX(n) FROM t)\nDELETE t WHERE s = 'x'", warning + "\n" + warning},
		{"not where there is no NULL", "SELECT SUM(n) AS n FROM t WHERE n IS NOT NULL\nSELECT SUM(k) AS k, COUNT(*) AS c, SUM(ISNULL(n, 0)) AS n FROM t", "n\n7\nk c n\n4 3 7"},
		{"not where an index leads past it, nor of STRING_AGG, nor of a view", "SELECT MAX(kept) AS n FROM t\nSELECT STRING_AGG(s, ',') AS s FROM t\nSELECT n FROM v", "n\n2\ns\nb,c\nn\n7"},
		{"not after a statement that had one", "SELECT COUNT(n) AS n FROM t WHERE n = 3", "n\n1"},
		{"not with ANSI_WARNINGS OFF", "SET ANSI_WARNINGS OFF\nSELECT SUM(n) AS n FROM t\nSET ANSI_WARNINGS ON", "n\n7"},
		{"each turn of a loop", "DECLARE @i int = 0, @n int\nWHILE @i < 2 BEGIN SELECT @n = SUM(n) FROM t SET @i += 1 END", warning + "\n" + warning},
	} {
		expect(t, c.rule, strings.TrimSpace(play(c.script)), c.want)
	}
}
