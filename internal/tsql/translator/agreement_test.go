package translator_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// An expressionMaker writes random expressions over the columns of one row, and the same over variables of the same values.
type expressionMaker struct{ random *rand.Rand }

// leaves are by the family of their type; a name stands for a column and for a variable.
var leaves = map[string][]string{
	"int":  {"i", "j", "s", "7", "-2", "0"},
	"dec":  {"d", "e", "1.50", "-0.3"},
	"text": {"v", "n", "'Ab'", "N'x '", "''"},
	"date": {"t", "u"},
}

func (m *expressionMaker) one(of []string) string { return of[m.random.IntN(len(of))] }

// make writes an expression of a family; depth bounds it.
func (m *expressionMaker) make(family string, depth int) string {
	if depth == 0 {
		return m.one(leaves[family])
	}
	d := depth - 1
	switch family {
	case "int":
		return fmt.Sprintf(m.one([]string{
			"(%[1]s + %[2]s)", "(%[1]s - %[2]s)", "(%[1]s * %[2]s)", "ISNULL(%[1]s, %[2]s)", "COALESCE(%[1]s, %[2]s)", "ABS(%[1]s)",
			"NULLIF(%[1]s, %[2]s)", "LEN(%[3]s)", "CHARINDEX(%[3]s, %[4]s)", "DATEDIFF(day, %[5]s, %[6]s)", "YEAR(%[5]s)",
			"CASE WHEN %[1]s > %[2]s THEN 1 ELSE %[1]s END", "DATEPART(month, %[5]s)", "CAST(%[7]s AS int)", "(%[1]s & %[2]s)",
		}), m.make("int", d), m.make("int", d), m.make("text", d), m.make("text", d), m.make("date", d), m.make("date", d), m.make("dec", d))
	case "dec":
		return fmt.Sprintf(m.one([]string{
			"(%[1]s + %[2]s)", "(%[1]s - %[2]s)", "(%[1]s * %[2]s)", "(%[1]s / 7)", "(%[1]s + %[3]s)", "CAST(%[3]s AS decimal(12, 3))",
			"CAST(%[1]s AS decimal(9, 1))", "ISNULL(%[1]s, 0.25)",
		}), m.make("dec", d), m.make("dec", d), m.make("int", d))
	case "date":
		return fmt.Sprintf(m.one([]string{"DATEADD(day, %[2]d, %[1]s)", "DATEADD(month, %[2]d, %[1]s)", "ISNULL(%[1]s, '2020-02-29')"}),
			m.make("date", d), m.random.IntN(60)-30)
	default:
		return fmt.Sprintf(m.one([]string{
			"(%[1]s + %[2]s)", "UPPER(%[1]s)", "LOWER(%[1]s)", "LEFT(%[1]s, 2)", "RIGHT(%[1]s, 3)", "SUBSTRING(%[1]s, 2, 2)", "LTRIM(%[1]s)",
			"REPLACE(%[1]s, 'a', %[2]s)", "CAST(%[3]s AS varchar(12))", "CONVERT(varchar(10), %[4]s, 120)", "CONCAT(%[1]s, %[2]s)",
			"CASE WHEN %[1]s = %[2]s THEN %[1]s ELSE 'no' END", "ISNULL(%[1]s, 'nil')", "CAST(%[5]s AS varchar(20))",
		}), m.make("text", d), m.make("text", d), m.make("int", d), m.make("date", d), m.make("dec", d))
	}
}

// SQL that the translator writes and the evaluation in Go agree: on values, on NULL, and on whether there is an error.
func TestTranslatedExpressionsAgreeWithThoseOfGo(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	dsn := parleytest.DSN(t, pool)
	seed := uint64(24)
	if os.Getenv("PARLEY_TEST_LONG") != "" {
		seed = rand.Uint64()
	}
	m := &expressionMaker{random: rand.New(rand.NewPCG(seed, 1))}
	names := []string{"i", "j", "s", "d", "e", "v", "n", "t", "u"}
	rows := []string{
		"5, -3, 2, 12.50, -0.125, 'Abc', N'x b', '2021-03-04T05:06:07', '2020-02-29'",
		"NULL, 40, NULL, NULL, 3.000, NULL, N'', NULL, '1999-12-31'",
		"1000000, 0, 255, 99999.99, 0.001, 'a''b ', N'ab', '2000-01-01T23:59:59', NULL",
	}
	types := "i int, j int, s smallint, d decimal(9, 2), e decimal(6, 3), v varchar(20), n nvarchar(20), t datetime, u date"
	var script strings.Builder
	script.WriteString("SET NOCOUNT ON CREATE TABLE #r (" + types + ")\nGO\n")
	var asked []string
	for range 150 {
		e := m.make(m.one([]string{"int", "dec", "text", "date"}), 1+m.random.IntN(2))
		asked = append(asked, e)
		row := rows[m.random.IntN(len(rows))]
		inGo := " " + e + " "
		for _, name := range names {
			for _, before := range "( ," {
				for _, after := range ") ,+-*/&=>" {
					inGo = strings.ReplaceAll(inGo, string(before)+name+string(after), string(before)+"@"+name+string(after))
				}
			}
		}
		declared := "DECLARE @" + strings.ReplaceAll(types, "), ", "), @")
		declared = strings.ReplaceAll(declared, "int, ", "int, @")
		declared = strings.ReplaceAll(declared, "datetime, ", "datetime, @")
		fmt.Fprintf(&script, "DELETE #r INSERT #r VALUES (%s) %s SELECT @i = i, @j = j, @s = s, @d = d, @e = e, @v = v, @n = n, @t = t, @u = u FROM #r "+
			"BEGIN TRY SELECT CONCAT('=', %s, '.') END TRY BEGIN CATCH PRINT 'error' END CATCH "+
			"BEGIN TRY SELECT CONCAT('=', x, '.') FROM (SELECT %s AS x FROM #r) AS a END TRY BEGIN CATCH PRINT 'error' END CATCH PRINT '#'\nGO\n",
			row, declared, strings.TrimSpace(inGo), e)
	}
	parts := strings.Split(run(t, dsn, strings.TrimSuffix(script.String(), "\nGO\n")), "#")
	if len(parts) < len(asked) {
		t.Fatalf("%d answers for %d expressions (seed %d):\n%s", len(parts), len(asked), seed, parts)
	}
	compared := 0
	for i, e := range asked {
		lines := strings.Split(strings.Trim(parts[i], "\n"), "\n")
		if len(lines) != 2 {
			t.Errorf("seed %d: %s gives %q", seed, e, lines)
			continue
		}
		compared++
		if lines[0] != lines[1] {
			t.Errorf("seed %d: %s is %q in Go and %q in the database", seed, e, lines[0], lines[1])
		}
	}
	if compared < len(asked)/2 {
		t.Errorf("%d of %d were compared", compared, len(asked))
	}
}
