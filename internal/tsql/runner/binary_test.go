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
