package runner_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// A raising is a statement with the error that it raises, and with what the error ends.
type raising struct {
	number, level, state int
	ends                 string // compile, statement, scope or batch: docs/tsql/running.md says what each is
	statement            string
}

const raisingTables = `SET NOCOUNT ON
CREATE TABLE e (id int NOT NULL CONSTRAINT PK_e PRIMARY KEY, n int NOT NULL CONSTRAINT CK_e CHECK (n > 0), name varchar(5),
  parent int CONSTRAINT FK_e REFERENCES e, twice AS n * 2)
CREATE TABLE i (id int IDENTITY, name varchar(5))
CREATE UNIQUE INDEX ux ON i (name)
INSERT e (id, n, name) VALUES (1, 1, 'x'), (2, 1, 'y')
INSERT i (name) VALUES ('a')
GO
CREATE PROCEDURE needs @a int AS RETURN 0
GO
CREATE PROCEDURE bare AS RETURN 0
GO
CREATE PROCEDURE deep AS EXEC deep
GO
CREATE PROCEDURE two AS SELECT 1, 2
GO
CREATE TABLE fired (id int)
GO
CREATE TRIGGER ends ON fired AFTER INSERT AS ROLLBACK`

var raisings = []raising{
	// These refuse the batch before any of it runs.
	{102, 15, 1, "compile", "DECLARE @a int = ;"},
	{105, 15, 1, "compile", "PRINT 'open"},
	{111, 15, 1, "compile", "CREATE PROCEDURE p AS PRINT 1"},
	{113, 15, 1, "compile", "/* open"},
	{132, 15, 1, "compile", "a: PRINT 1\na: PRINT 2"},
	{133, 15, 1, "compile", "GOTO nowhere"},
	{134, 15, 2, "compile", "DECLARE @a int, @a int"},
	{135, 15, 1, "compile", "BREAK"},
	{136, 15, 1, "compile", "CONTINUE"},
	{137, 15, 2, "compile", "PRINT @missing"},
	{141, 15, 1, "compile", "DECLARE @a int SELECT @a = 1, 2"},
	{156, 15, 1, "compile", "SELECT FROM e"},
	{178, 15, 1, "compile", "RETURN 5"},
	{174, 15, 1, "compile", "PRINT LEN('a', 'b')"},
	{189, 15, 1, "compile", "PRINT SUBSTRING('a')"},
	{206, 16, 2, "compile", "DECLARE @d date = 5"},
	{257, 16, 3, "compile", "DECLARE @b varbinary(5) = 'a'"},
	{402, 16, 1, "compile", "PRINT CAST(1 AS float) % 2"},
	{529, 16, 2, "compile", "PRINT CAST(CAST(NEWID() AS uniqueidentifier) AS int)"},
	{1087, 15, 2, "compile", "INSERT @t VALUES (1)"},
	{8116, 16, 1, "compile", "PRINT LEFT('a', GETDATE())"},
	{10704, 15, 1, "compile", "THROW"},
	// These end their statement.
	{220, 16, 2, "statement", "DECLARE @t tinyint = 300"},
	{242, 16, 3, "statement", "DECLARE @d datetime SET @d = '2006-13-13'"},
	{244, 16, 2, "statement", "DECLARE @s smallint SET @s = '70000'"},
	{512, 16, 1, "statement", "DECLARE @a int SET @a = (SELECT id FROM e)"},
	{515, 16, 2, "statement", "INSERT e (id, n) VALUES (3, NULL)"},
	{517, 16, 1, "statement", "DECLARE @d datetime SET @d = DATEADD(year, 9000, GETDATE())"},
	{535, 16, 0, "statement", "DECLARE @i int SET @i = DATEDIFF(ms, '1900', '2000')"},
	{537, 16, 3, "statement", "DECLARE @s varchar(5) = 'a' SET @s = LEFT(@s, -1)"},
	{544, 16, 1, "statement", "INSERT i (id, name) VALUES (5, 'b')"},
	{547, 16, 0, "statement", "INSERT e (id, n) VALUES (3, 0)"},
	{547, 16, 0, "statement", "UPDATE e SET parent = 99 WHERE id = 1"},
	{2601, 14, 1, "statement", "INSERT i (name) VALUES ('A')"},
	{2627, 14, 1, "statement", "INSERT e (id, n) VALUES (1, 1)"},
	{2628, 16, 1, "statement", "INSERT i (name) VALUES ('123456')"},
	{3701, 11, 5, "statement", "DROP TABLE missing"},
	{3726, 16, 1, "statement", "CREATE TABLE p (id int PRIMARY KEY) CREATE TABLE c (id int REFERENCES p) DROP TABLE p"},
	{6401, 16, 1, "statement", "ROLLBACK TRAN nothing"},
	{201, 16, 4, "statement", "EXEC needs"},
	{2812, 16, 62, "statement", "EXEC missing"},
	{8144, 16, 2, "statement", "EXEC needs 1, 2"},
	{8145, 16, 1, "statement", "EXEC needs @b = 1"},
	{8115, 16, 2, "statement", "DECLARE @i int = 2147483647 SET @i += 1"},
	{8134, 16, 1, "statement", "DECLARE @i int = 0 SET @i = 1 / @i"},
	{16915, 16, 1, "statement", "DECLARE c CURSOR FOR SELECT 1 DECLARE c CURSOR FOR SELECT 1"},
	{16916, 16, 1, "statement", "OPEN missing"},
	{50000, 16, 3, "statement", "RAISERROR('a', 16, 3)"},
	// These end the batch or module in which they stand.
	{208, 16, 1, "scope", "SELECT * FROM missing"},
	{207, 16, 1, "scope", "SELECT missing FROM e"},
	{209, 16, 1, "scope", "SELECT id FROM e CROSS JOIN i"},
	{213, 16, 1, "scope", "INSERT i VALUES (1, 2)"},
	{195, 15, 10, "scope", "SELECT no_such_function(id) FROM e"},
	{2714, 16, 6, "scope", "CREATE TABLE e (id int)"},
	{4104, 16, 1, "scope", "SELECT x.id FROM e"},
	{104, 16, 1, "scope", "SELECT id FROM e UNION SELECT id FROM i ORDER BY id + 1"},
	{108, 16, 1, "scope", "SELECT id FROM e ORDER BY 2"},
	{109, 15, 1, "scope", "INSERT e (id, n) VALUES (3)"},
	{110, 15, 1, "scope", "INSERT e (id, n) VALUES (3, 4, 5)"},
	{116, 16, 1, "scope", "SELECT id FROM e WHERE id IN (SELECT id, n FROM e)"},
	{120, 15, 1, "scope", "INSERT e (id, n) SELECT 3"},
	{121, 15, 1, "scope", "INSERT e (id, n) SELECT 3, 4, 5"},
	{205, 16, 1, "scope", "SELECT id FROM e UNION SELECT id, n FROM e"},
	{264, 16, 1, "scope", "INSERT e (id, id) VALUES (3, 4)"},
	{271, 16, 1, "scope", "UPDATE e SET twice = 4"},
	{1011, 16, 1, "scope", "SELECT 1 FROM e AS a CROSS JOIN i AS a"},
	{2705, 16, 3, "scope", "CREATE TABLE d (a int, A int)"},
	{8102, 16, 1, "scope", "UPDATE i SET id = 4"},
	{8117, 16, 1, "scope", "SELECT SUM(name) FROM e"},
	{8120, 16, 1, "scope", "SELECT name, COUNT(*) FROM e GROUP BY n"},
	{8155, 16, 2, "scope", "SELECT * FROM (SELECT 1) AS a"},
	{8156, 16, 1, "scope", "SELECT * FROM (SELECT 1 AS a, 2 AS a) AS b"},
	{8158, 16, 1, "scope", "SELECT * FROM (SELECT 1, 2) AS a (b)"},
	{8159, 16, 1, "scope", "SELECT * FROM (SELECT 1) AS a (b, c)"},
	// These end the batch with all callers, and roll the transaction back.
	{213, 16, 7, "batch", "INSERT i (name) EXEC two"},
	{217, 16, 1, "batch", "EXEC deep"},
	{235, 16, 0, "batch", "DECLARE @m money = 'x'"},
	{241, 16, 1, "batch", "DECLARE @d datetime = 'x'"},
	{245, 16, 1, "batch", "DECLARE @i int = 'x'"},
	{245, 16, 1, "batch", "SELECT id FROM e WHERE name = 1"},
	{293, 16, 0, "batch", "DECLARE @m smallmoney = 'x'"},
	{295, 16, 3, "batch", "DECLARE @d smalldatetime = 'x'"},
	{3609, 16, 1, "batch", "INSERT fired VALUES (1)"},
	{8114, 16, 5, "batch", "DECLARE @d decimal(5, 2) = 'x'"},
	{8146, 16, 2, "batch", "EXEC bare 1"},
	{8169, 16, 2, "batch", "DECLARE @g uniqueidentifier = 'x'"},
	{9436, 16, 1, "batch", "DECLARE @x xml = '<a></b>'"},
}

var heads = regexp.MustCompile(`(?m)^Msg (\d+), Level (\d+), State (\d+),`)

// Each error has its number, level and state, and ends what its class says: its statement, its batch or module, the batch with its
// transaction, or the batch before any of it has run.
func TestErrorsHaveTheirClass(t *testing.T) {
	t.Parallel()
	config := parleytest.EmptyDatabase(t).Config().ConnConfig
	if got := talking(t, config).run(raisingTables); got != "" {
		t.Fatal(got)
	}
	for _, r := range raisings {
		k := talking(t, config)
		text := "BEGIN TRAN\nPRINT 'before'\n" + r.statement + "\nPRINT 'after'\nGO\nPRINT CONCAT('depth ', @@TRANCOUNT)"
		got := k.run(text)
		if r.ends == "scope" {
			got += "\n" + k.run("EXEC('"+strings.ReplaceAll(r.statement, "'", "''")+"')\nPRINT 'caller'")
		}
		var found []string
		for _, word := range []string{"before", "after", "depth 0", "depth 1", "caller"} {
			if strings.Contains("\n"+got+"\n", "\n"+word+"\n") {
				found = append(found, word)
			}
		}
		want := map[string]string{
			"compile": "depth 0", "statement": "before after depth 1", "scope": "before depth 1 caller", "batch": "before depth 0",
		}[r.ends]
		head := heads.FindStringSubmatch(got)
		if head == nil || strings.Join(head[1:], " ") != fmt.Sprintf("%d %d %d", r.number, r.level, r.state) {
			t.Errorf("%s gives %v, not %d %d %d:\n%s", r.statement, head, r.number, r.level, r.state, got)
		}
		if strings.Join(found, " ") != want {
			t.Errorf("%s of class %s gives %q, not %q:\n%s", strconv.Itoa(r.number), r.ends, found, want, got)
		}
		k.run("IF @@TRANCOUNT > 0 ROLLBACK")
	}
}
