package translator_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// A table that is a queue gives each row to one reader: the statement that takes it locks it where the common table finds it.
func TestReadersOfATableThroughACommonTableShareNoRow(t *testing.T) {
	t.Parallel()
	dsn := parleytest.DSN(t, parleytest.EmptyDatabase(t))
	run(t, dsn, `SET NOCOUNT ON CREATE TABLE jobs (id int IDENTITY PRIMARY KEY, n int)
DECLARE @i int = 0 WHILE @i < 60 BEGIN INSERT jobs (n) VALUES (@i) SET @i += 1 END`)
	taken := make([]string, 4)
	var readers sync.WaitGroup
	for i := range taken {
		readers.Go(func() {
			taken[i] = run(t, dsn, `SET NOCOUNT ON DECLARE @taken table (id int)
WHILE EXISTS (SELECT * FROM jobs)
BEGIN
  ;WITH next AS (SELECT TOP (1) id, n FROM jobs WITH (ROWLOCK, READPAST) ORDER BY id) DELETE FROM next OUTPUT deleted.id INTO @taken
END
SELECT id FROM @taken`)
		})
	}
	readers.Wait()
	seen := map[string]bool{}
	for _, list := range taken {
		for id := range strings.FieldsSeq(list) {
			if seen[id] {
				t.Errorf("row %s is taken twice", id)
			}
			seen[id] = true
		}
	}
	for i := 1; i <= 60; i++ {
		if !seen[strconv.Itoa(i)] {
			t.Errorf("row %d is taken by nobody", i)
		}
	}
}
