package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// A statement all of whose tables stand in another database, and a procedure of another database, run there; a transaction does not
// reach over two.
func TestAnotherDatabaseIsReachedByName(t *testing.T) {
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
CREATE TABLE item (id int, name varchar(10))
GO
CREATE PROCEDURE add_item @id int, @count int OUTPUT AS INSERT item VALUES (@id, 'one') SELECT @count = COUNT(*) FROM item RETURN 7
GO
USE [@near@]
SET NOCOUNT ON
CREATE TABLE #kept (id int)
INSERT #kept VALUES (5)
DECLARE @n int, @r int
EXEC @r = [@far@].dbo.add_item 1, @n OUTPUT
EXEC @r = [@far@]..add_item @id = 2, @count = @n OUTPUT
PRINT CONCAT(@n, ' ', @r)
UPDATE [@far@].dbo.item SET name = 'two' WHERE id = 2
SELECT @n = COUNT(*) FROM [@far@].dbo.item AS i WHERE i.name = 'two'
PRINT @n
SELECT COUNT(*) AS waiting FROM [@far@].sys.transmission_queue
SELECT id FROM #kept
IF DB_NAME() = '@near@' PRINT 'near'
BEGIN TRAN
SELECT id FROM [@far@].dbo.item
ROLLBACK
SELECT id FROM [no such].dbo.item`))
	want := `Changed database context to 'far'.
Changed database context to 'near'.
2 7
1
waiting
0
id
5
near
Msg 226, Level 16, State 6, Line 16
Cross-database statement not allowed within multi-statement transaction.
Msg 911, Level 16, State 1, Line 18
Database 'no such' does not exist. Make sure that the name is entered correctly.`
	if got = strings.NewReplacer(far, "far", config.Database, "near").Replace(got); got != want {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want)
	}
}
