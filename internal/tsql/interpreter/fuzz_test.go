package interpreter

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/tsql/session"
)

// FuzzRun runs batches without a database: none may panic, each ends with the session usable or closed.
func FuzzRun(f *testing.F) {
	for _, seed := range []string{
		"DECLARE @i int = 0 WHILE @i < 3 BEGIN SET @i += 1 IF @i = 2 CONTINUE PRINT @i END",
		"BEGIN TRAN BEGIN TRY DECLARE @i int = 'x' END TRY BEGIN CATCH PRINT ERROR_MESSAGE() ROLLBACK; THROW END CATCH",
		"SELECT CAST(1.5 AS decimal(38,10)) / 3, CONVERT(varchar(10), GETDATE(), 101), $5 * 2, 0x41 + 0x42, N'a' + 'b'",
		"EXEC sp_executesql N'SET @b = @a + 1', N'@a int, @b int OUTPUT', 4, 5",
		"CREATE PROCEDURE #p @a int = 5 AS RETURN @a",
		"SELECT DATEADD(day, 1, '20061014'), DATEDIFF(ms, 0, 1), DATEPART(dw, '2006-10-14'), EOMONTH('2006-02-10', 24)",
		"DECLARE @x xml = '<a b=\"1\"/>' SELECT @x.value('(/a/@b)[1]', 'int'), @x.exist('/a'), @x.query('/a')",
		"RAISERROR('%s %*.*d', 16, 1, 'a', 5, 3, 7) WITH NOWAIT", "IF 'a' LIKE '[a-c]%' ESCAPE '!' PRINT IIF(1 IN (1, NULL), 'y', 'n')",
		"SELECT ROUND(748.58, -4), STR(1.5, 5, 2), POWER(2, 10), STUFF('abc', 2, 1, 'x'), FORMATMESSAGE('%d', 5)",
		"again: SAVE TRAN a ROLLBACK TRAN a GOTO again", "SELECT TRY_CAST('2006' AS datetime2(3)), CAST(CAST(-1 AS money) AS varbinary(20))",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, batch string) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		s := New(Identity{}, nil, nil)
		_ = s.Run(ctx, batch, session.NewTextSink(io.Discard)) // a batch that never ends is stopped
		if s.current != nil {
			t.Error("an activation is left")
		}
	})
}
