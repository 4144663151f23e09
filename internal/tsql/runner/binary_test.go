package runner_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// SUBSTRING of a binary column counts bytes, in a SELECT and in an INSERT of its rows: a body that holds numbers and texts is taken apart.
func TestABodyOfBytesIsTakenApartInTheDatabase(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	got := script(t, pool.Config().ConnConfig, `SET NOCOUNT ON
DECLARE @m TABLE (body varbinary(max))
INSERT INTO @m VALUES (0x000000000000000100000003616263000000026465)
CREATE TABLE #parts (n int, at bigint, payload nvarchar(max), who nvarchar(256), rest varbinary(max))
INSERT INTO #parts (n, at, payload, who, rest)
SELECT CAST(SUBSTRING(body, 9, 4) AS int), CAST(SUBSTRING(body, 1, 8) AS bigint),
  CAST(SUBSTRING(body, 13, CAST(SUBSTRING(body, 9, 4) AS int)) AS varchar(max)),
  CAST(SUBSTRING(body, 17 + CAST(SUBSTRING(body, 9, 4) AS int), 256) AS varchar(256)), SUBSTRING(body, 20, 99)
FROM @m WHERE SUBSTRING(body, 13, 1) = 0x61
SELECT * FROM #parts`)
	expect(t, "each part is there", got, "n at payload who rest\n3 1 abc de 0x6465")
}

// A body becomes a document in a derived table, a common table and an INSERT of rows as in a SELECT: UTF-16, with its mark or without, and
// UTF-8. TestABodyOfBytesIsTakenApartInTheDatabase has the same of numbers.
func TestABodyBecomesADocumentInTheDatabase(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	got := script(t, pool.Config().ConnConfig, `SET NOCOUNT ON
DECLARE @m table (n int, b varbinary(max))
INSERT @m VALUES (1, CAST(N'<a n="1">é</a>' AS varbinary(max))), (2, CAST('<a n="2"/>' AS varbinary(max))), (3, NULL)
INSERT @m SELECT 4, CAST(CAST(N'<a n="4"/>' AS xml) AS varbinary(max))
SELECT t.n, t.x.value('(/a/@n)[1]', 'int') AS v, t.x FROM (SELECT n, CAST(b AS xml) AS x FROM @m) AS t ORDER BY t.n
;WITH q AS (SELECT CAST(b AS xml) AS x FROM @m WHERE n < 3) SELECT c.a.value('@n', 'int') AS v FROM q CROSS APPLY q.x.nodes('/a') AS c (a) ORDER BY v
SELECT t.x INTO #kept FROM (SELECT CAST(b AS xml) AS x FROM @m WHERE n = 4) AS t
SELECT x FROM #kept
SELECT t.x FROM (SELECT CAST(0x4142FF AS xml) AS x FROM @m) AS t WHERE t.x IS NULL`)
	expect(t, "each body is a document", got, `n v x
1 1 <a n="1">é</a>
2 2 <a n="2"/>
3 NULL NULL
4 4 <a n="4"/>
v
1
2
x
<a n="4"/>
x
Msg 9422, Level 16, State 1, Line 9
XML parsing: line 1, character 3, incorrect document syntax`)
}
