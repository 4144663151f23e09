package translator_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// hostileText makes a text of what ends constants, names and statements of SQL.
func hostileText(random *rand.Rand) string {
	parts := []string{
		"'", "''", `"`, `\`, `\'`, ";", "--", "/*", "*/", "$1", "$$", "$a$", "E'", "]", ")", "(", ",", "?", "%", "_", "[", "\n", "\t", " ", "é", "😀",
		"drop table canary", "null", "\u00a0", "a", "Z", "1",
	}
	var b strings.Builder
	for range 1 + random.IntN(6) {
		b.WriteString(parts[random.IntN(len(parts))])
	}
	return b.String()
}

// No value of a batch becomes a part of SQL, wherever it stands: in rows, in conditions, in what definitions keep, in names. The setting
// under which PostgreSQL reads a backslash as an escape changes nothing.
func TestNoValueBecomesSQL(t *testing.T) {
	t.Parallel()
	seed, rounds := uint64(7), 12
	if os.Getenv("PARLEY_TEST_LONG") != "" {
		seed, rounds = rand.Uint64(), 500
	}
	for _, conforming := range []string{"on", "off"} {
		pool := parleytest.EmptyDatabase(t)
		dsn := parleytest.DSN(t, pool)
		if _, err := pool.Exec(t.Context(), "alter database "+quoted(pool.Config().ConnConfig.Database)+
			" set standard_conforming_strings = "+conforming); err != nil {
			t.Fatal(err)
		}
		run(t, dsn, "CREATE TABLE canary (id int) INSERT canary VALUES (1)")
		random := rand.New(rand.NewPCG(seed, 1))
		for range rounds {
			text := hostileText(random)
			literal := "N'" + strings.ReplaceAll(text, "'", "''") + "'"
			name := "[" + strings.ReplaceAll(text, "]", "]]") + "x]"
			script := strings.NewReplacer("@L@", literal, "@N@", name).Replace(`SET NOCOUNT ON
CREATE TABLE @N@ (id int, @N@ nvarchar(60) DEFAULT @L@, c AS @L@ + N'.', CONSTRAINT k CHECK (@N@ <> @L@ + N'no'))
GO
CREATE VIEW v AS SELECT id, @L@ AS @N@ FROM @N@ WHERE @N@ = @L@
GO
DECLARE @v nvarchar(60) = @L@, @n int
INSERT @N@ (id) VALUES (1)
INSERT @N@ (id, @N@) VALUES (2, @L@), (3, @v)
INSERT @N@ (id, @N@) SELECT 4, @N@ FROM @N@ WHERE id = 1 AND @N@ = @v
UPDATE @N@ SET @N@ = @L@ WHERE @N@ = @v AND id = 2
SELECT @n = COUNT(*) FROM @N@ WHERE CAST(@N@ AS varbinary(200)) = CAST(@v AS varbinary(200)) AND c = @L@ + N'.'
IF @n <> 4 PRINT CONCAT('rows: ', @n)
SELECT @n = COUNT(*) FROM v WHERE @N@ = @L@
IF @n <> 4 PRINT CONCAT('of the view: ', @n)
EXEC sp_executesql N'SELECT @n = COUNT(*) FROM @N@ AS t WHERE t.@N@ IN (@p, @L@)', N'@p nvarchar(60), @n int OUTPUT', @v, @n OUTPUT
IF @n <> 4 PRINT CONCAT('of the text: ', @n)
DECLARE c CURSOR LOCAL FOR SELECT @N@ FROM @N@ WHERE @N@ = @v
OPEN c
FETCH c INTO @v
IF CAST(@v AS varbinary(200)) <> CAST(@L@ AS varbinary(200)) PRINT 'of the cursor'
IF NOT EXISTS (SELECT 1 FROM sys.columns WHERE name = @L@ + N'x') PRINT 'no column'
GO
DROP VIEW v
DROP TABLE @N@
SELECT COUNT(*) FROM canary`)
			// The text of sp_executesql is a literal itself.
			script = insideText(script, literal, name)
			if got := run(t, dsn, script); got != "1" {
				t.Errorf("seed %d, standard_conforming_strings %s, %q:\n%s\n--- gives\n%s", seed, conforming, text, script, got)
			}
		}
	}
}

// insideText doubles the quotes of what stands in the text of sp_executesql.
func insideText(script, literal, name string) string {
	begin := strings.Index(script, "EXEC sp_executesql N'") + len("EXEC sp_executesql N'")
	end := strings.Index(script[begin:], "', N'@p nvarchar(60)") + begin
	return script[:begin] + "SELECT @n = COUNT(*) FROM " + strings.ReplaceAll(name, "'", "''") + " AS t WHERE t." +
		strings.ReplaceAll(name, "'", "''") + " IN (@p, " + strings.ReplaceAll(literal, "'", "''") + ")" + script[end:]
}

// quoted writes a name of PostgreSQL.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
