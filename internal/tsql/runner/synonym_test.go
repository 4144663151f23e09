package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// A synonym leads to a procedure, and to tables and procedures of another database; a statement over the tables of two is refused.
func TestASynonymLeadsToAnotherDatabase(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	config := pool.Config().ConnConfig
	far := "Far_" + config.Database
	t.Cleanup(func() {
		_, _ = pool.Exec(context.WithoutCancel(t.Context()), "drop database if exists "+pgx.Identifier{strings.ToLower(far)}.Sanitize()+" with (force)")
	})
	s := talking(t, config)
	got := s.run(strings.NewReplacer("@far@", far, "@near@", config.Database).Replace(`CREATE DATABASE [@far@]
GO
USE [@far@]
GO
CREATE TABLE item (id int, name varchar(100))
GO
CREATE PROCEDURE add_item @id int AS INSERT item VALUES (@id, DB_NAME()) RETURN 7
GO
USE [@near@]
GO
CREATE PROCEDURE here @n int OUTPUT AS SET @n = @n * 2
GO
SET NOCOUNT ON
CREATE TABLE own (id int)
CREATE SYNONYM goods FOR [@far@].dbo.item
CREATE SYNONYM put FOR [@far@].dbo.add_item
CREATE SYNONYM twice FOR here
CREATE SYNONYM lost FOR [@far@].dbo.nothing
DECLARE @n int = 4, @r int
EXEC twice @n OUTPUT
PRINT @n
EXEC @r = put @id = 1
EXEC dbo.put 2
PRINT @r
DELETE goods WHERE id = 2
UPDATE g SET name = 'two' FROM goods AS g WHERE g.id = 1
INSERT goods VALUES (3, 'three')
SELECT id, name FROM dbo.goods ORDER BY id
SELECT COUNT(*) AS n FROM goods AS a JOIN [@far@].dbo.item AS b ON b.id = a.id
GO
SELECT COUNT(*) AS n FROM goods AS a, own AS b
GO
EXEC lost
GO
USE [@far@]
GO
SELECT 1 FROM goods
GO
USE [@near@]
BEGIN TRAN
SELECT 1 FROM goods`))
	want := `Changed database context to 'far'.
Changed database context to 'near'.
8
7
id name
1 two
3 three
n
2
Msg 40517, Level 16, State 1, Line 1
'a statement over tables of two databases' is not supported by Parley.
Msg 5313, Level 16, State 1, Line 1
Synonym 'lost' refers to an invalid object.
Changed database context to 'far'.
Msg 208, Level 16, State 1, Line 1
Invalid object name 'goods'.
Changed database context to 'near'.
Msg 226, Level 16, State 6, Line 3
Cross-database statement not allowed within multi-statement transaction.`
	if got = strings.NewReplacer(far, "far", config.Database, "near").Replace(got); got != want {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want)
	}
}
