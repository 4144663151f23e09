package expression

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/parser"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// bare is a scope without tables whose variables are @i = 7, @n = NULL, both int, and @s = 'abc'.
type bare struct{}

var bareVariables = []value.Value{value.NewInt(7), value.Null(value.Of(value.Int)), value.NewVarChar("abc")}

func (bare) Variable(name string) (int, value.Type, bool) {
	at := strings.Index("@i@n@s", strings.ToLower(name))
	if len(name) != 2 || at < 0 {
		return 0, value.Type{}, false
	}
	return at / 2, bareVariables[at/2].Type(), true
}

func (bare) Function(string) (*function.Function, bool) { return nil, false }

func (bare) External(ast.Expression) (*Expression, *fault.Error) { return nil, Unsupported("a table") }

func (bare) ExternalCondition(ast.Condition) (*Condition, *fault.Error) {
	return nil, Unsupported("a table")
}

// parsed gives the one expression of SELECT text.
func parsed(t *testing.T, text string) ast.Expression {
	t.Helper()
	batch, err := parser.Parse("SELECT "+text, parser.Options{})
	if err != nil {
		t.Fatal(text, err)
	}
	items := batch.Statements[0].(*ast.Select).Query.Body.(*ast.Specification).Items
	return items[0].(*ast.ResultColumn).Value
}

// evaluated gives the value and its type, or the number and text of the error.
func evaluated(t *testing.T, text string, settings *value.Settings) (string, string) {
	t.Helper()
	e, err := Compile(parsed(t, text), bare{})
	if err != nil {
		return strconv.Itoa(err.Number) + " " + err.Message, "compile"
	}
	c := &function.Context{Settings: settings, Now: time.Date(2006, 10, 14, 13, 22, 25, 0, time.UTC)}
	v, err := e.Evaluate(&Frame{Variables: bareVariables, Context: c})
	if err != nil {
		return strconv.Itoa(err.Number) + " " + err.Message, "run"
	}
	if v.Kind() != e.Type.Kind && !v.IsNull() {
		t.Errorf("%s is %s, but was announced as %s", text, v.Type(), e.Type)
	}
	return value.Display(v), e.Type.String()
}

func TestExpressionsHaveTheValuesAndTypesOfTheServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want, kind string }{
		{"5 / 2", "2", "int"},
		{"5 / 2.0", "2.500000", "decimal(8,6)"},
		{"1.0 / 3", "0.333333", "decimal(7,6)"},
		{"2 + 3 * 4", "14", "int"},
		{"(2 + 3) * 4", "20", "int"},
		{"-5 % 3", "-2", "int"},
		{"7 & 3 | 8 ^ 1", "10", "int"},
		{"~5", "-6", "int"},
		{"2147483647 + 1", "8115 Arithmetic overflow error converting expression to data type int.", "run"},
		{"2147483648", "2147483648", "decimal(10,0)"},
		{"1 / 0", "8134 Divide by zero error encountered.", "run"},
		{"$1.5 + 1", "2.5000", "money"},
		{"1e1 + 1", "11", "float"},
		{"0x41 + 0x42", "0x4142", "varbinary(2)"},
		{"'5' + 1", "6", "int"},
		{"'a' + 1", "245 Conversion failed when converting the varchar value 'a' to data type int.", "run"},
		{"'a' + N'b'", "ab", "nvarchar(2)"},
		{"'a' + NULL", "NULL", "varchar(1)"},
		{"@i + @n", "NULL", "int"},
		{"@x", "137 Must declare the scalar variable \"@x\".", "compile"},
		{"CASE WHEN @i > 5 THEN 'more' ELSE 'less or equal' END", "more", "varchar(13)"},
		{"CASE @i WHEN 7 THEN 1 WHEN 8 THEN 2.5 END", "1.0", "decimal(11,1)"},
		{"CASE WHEN 1 = 0 THEN 1 ELSE 'x' END", "245 Conversion failed when converting the varchar value 'x' to data type int.", "run"},
		{"CASE WHEN 1 = 1 THEN 1 ELSE 1 / 0 END", "1", "int"},
		{"CASE WHEN 1 = 1 THEN NULL END", "8133 At least one of the result expressions in a CASE specification must be an expression other than the NULL constant.", "compile"},
		{"CASE @n WHEN NULL THEN 'null' ELSE 'other' END", "other", "varchar(5)"},
		{"COALESCE(@n, 2, 1 / 0)", "2", "int"},
		{"COALESCE(NULL, NULL)", "4127 At least one of the arguments to COALESCE must be an expression that is not the NULL constant.", "compile"},
		{"ISNULL(@s, 'x')", "abc", "varchar(3)"},
		{"ISNULL(CAST(NULL AS varchar(2)), 'abcdef')", "ab", "varchar(2)"},
		{"COALESCE(CAST(NULL AS varchar(2)), 'abcdef')", "abcdef", "varchar(6)"},
		{"NULLIF(@i, 7)", "NULL", "int"},
		{"NULLIF(@i, 8)", "7", "int"},
		{"IIF(@i = 7, 'yes', 'no')", "yes", "varchar(3)"},
		{"CHOOSE(2, 'a', 'b', 'c')", "b", "varchar(1)"},
		{"CHOOSE(9, 'a', 'b')", "NULL", "varchar(1)"},
		{"CAST('12' AS int) + 1", "13", "int"},
		{"TRY_CAST('x' AS int)", "NULL", "int"},
		{"TRY_CONVERT(xml, 4)", "529 Explicit conversion from data type int to xml is not allowed.", "compile"},
		{"CONVERT(varchar(10), CAST('2006-10-14' AS datetime), 101)", "10/14/2006", "varchar(10)"},
		{"CAST('abc' AS varchar)", "abc", "varchar(30)"},
		{"CAST(1 AS date)", "529 Explicit conversion from data type int to date is not allowed.", "compile"},
		{"CAST(1 AS nothing)", "243 Type nothing is not a defined system type.", "compile"},
		{"DATEADD(day, 1, '20061014')", "2006-10-15 00:00:00.000", "datetime"},
		{"DATEPART(month, CURRENT_TIMESTAMP)", "10", "int"},
		{"GETDATE() + 1", "2006-10-15 13:22:25.000", "datetime"},
		{"LEFT('abcdef', 3) + RIGHT('xyz', 1)", "abcz", "varchar(4)"},
		{"TRIM('.,! ' FROM '     #     test    .')", "#     test", "varchar(20)"},
		{"LEN('abc') + @i", "10", "int"},
		{"UPPER(@s COLLATE Latin1_General_BIN)", "ABC", "varchar(3)"},
		{"'a' COLLATE no_such_thing", "448 Invalid collation 'no_such_thing'.", "compile"},
		{"{d '2006-10-14'}", "2006-10-14 00:00:00.000", "datetime"},
		{"- @i", "-7", "int"},
		{"- CAST(-2147483648.0 AS int)", "8115 Arithmetic overflow error converting expression to data type int.", "run"},
		{"CAST(0x0102 AS int)", "258", "int"},
		{"PARSE('12.5' AS decimal(5,1))", "12.5", "decimal(5,1)"},
		{"PARSE('1,234,567.00' AS int)", "1234567", "int"},
		{"PARSE(' -1,234.5 ' AS decimal(9,2))", "-1234.50", "decimal(9,2)"},
		{"TRY_PARSE('1,234.5' AS int)", "NULL", "int"},
		{"TRY_PARSE('1,234' AS float)", "NULL", "float"},
		{"PARSE('Monday, 13 December 2010' AS datetime2 USING 'en-US')", "2010-12-13 00:00:00.0000000", "datetime2(7)"},
		{"PARSE('x' AS int)", "9819 Error converting string value 'x' into data type int using culture 'en-US'.", "run"},
	} {
		if got, kind := evaluated(t, c.text, value.Defaults()); got != c.want || kind != c.kind {
			t.Errorf("%s\n got %s, %s\nwant %s, %s", c.text, got, kind, c.want, c.kind)
		}
	}
}

func TestConditionsHaveThreeResults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want Truth
	}{
		{"1 = 1", True},
		{"1 <> 1", False},
		{"@n = 1", Unknown},
		{"@n = NULL", Unknown},
		{"NOT @n = 1", Unknown},
		{"@n = 1 OR 1 = 1", True},
		{"@n = 1 AND 1 = 0", False},
		{"@n = 1 AND 1 = 1", Unknown},
		{"@n IS NULL", True},
		{"@i IS NOT NULL", True},
		{"'abc' = 'ABC  '", True},
		{"'abc' = 'ABC' COLLATE Latin1_General_CS_AS", False},
		{"'a' < 'B'", True},
		{"@i BETWEEN 1 AND 7", True},
		{"@i NOT BETWEEN 1 AND 7", False},
		{"@i BETWEEN 8 AND @n", False},
		{"@i BETWEEN 1 AND @n", Unknown},
		{"@i IN (1, 7)", True},
		{"@i IN (1, NULL)", Unknown},
		{"@i NOT IN (1, NULL)", Unknown},
		{"@i NOT IN (1, 2)", True},
		{"'50% off' LIKE '50[%]%'", True},
		{"'50% off' LIKE '50!%%' ESCAPE '!'", True},
		{"'abc' LIKE 'A_C'", True},
		{"'abc' LIKE '[a-c]%'", True},
		{"'abc' LIKE '[^a]%'", False},
		{"'abc ' LIKE 'abc'", True},
		{"'abc' LIKE 'abc '", False},
		{"'Abc' LIKE 'a%' COLLATE Latin1_General_BIN", False},
		{"N'' = 0", True},
		{"'12' = 12", True},
		{"0x01 = 0x0100", True},
		{"1.0 = 1", True},
		{"CAST('2006-10-14' AS date) = '20061014'", True},
		{"@n IS DISTINCT FROM NULL", False},
		{"@i IS DISTINCT FROM NULL", True},
		{"@i IS NOT DISTINCT FROM 7", True},
		{"1 !> 1", True},
		{"1 !< 2", False},
	} {
		batch, err := parser.Parse("IF "+c.text+" RETURN", parser.Options{})
		if err != nil {
			t.Fatal(c.text, err)
		}
		condition, bad := CompileCondition(batch.Statements[0].(*ast.If).Condition, bare{})
		if bad != nil {
			t.Errorf("%s: %v", c.text, bad)
			continue
		}
		got, bad := condition.Evaluate(&Frame{Variables: bareVariables, Context: &function.Context{Settings: value.Defaults()}})
		if bad != nil || got != c.want {
			t.Errorf("%s is %d %v, not %d", c.text, got, bad, c.want)
		}
	}
}

func TestConditionsThatCannotBeComparedAreErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"CAST('<a/>' AS xml) = CAST('<a/>' AS xml)": 402, "CAST('2006-10-14' AS date) = 1": 206, "'a' LIKE 'b' ESCAPE 'cc'": 506, "'a' = 1": 245,
	} {
		batch, err := parser.Parse("IF "+text+" RETURN", parser.Options{})
		if err != nil {
			t.Fatal(err)
		}
		condition, bad := CompileCondition(batch.Statements[0].(*ast.If).Condition, bare{})
		if bad == nil {
			_, bad = condition.Evaluate(&Frame{Variables: bareVariables, Context: &function.Context{Settings: value.Defaults()}})
		}
		if bad == nil || bad.Number != want {
			t.Errorf("%s: %v, not %d", text, bad, want)
		}
	}
}

func TestSettingsDecideWhatNullAndErrorsOfArithmeticAre(t *testing.T) {
	t.Parallel()
	off := value.Defaults()
	off.ANSIWarnings, off.ConcatNullYieldNull = false, false
	for _, c := range []struct{ text, want string }{{"1 / 0", "NULL"}, {"2147483647 + 1", "NULL"}, {"'a' + NULL", "a"}} {
		if got, _ := evaluated(t, c.text, off); got != c.want {
			t.Errorf("%s: %s, not %s", c.text, got, c.want)
		}
	}
	var warned []int
	f := &Frame{Context: &function.Context{Settings: off}, Warn: func(m *fault.Error) { warned = append(warned, m.Number) }}
	e, err := Compile(parsed(t, "1 / 0"), bare{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = e.Evaluate(f); err != nil || len(warned) != 1 || warned[0] != 3607 {
		t.Errorf("warnings %v, error %v", warned, err)
	}
	off.ArithAbort = true
	if _, err = e.Evaluate(f); err == nil || err.Reach != fault.Batch {
		t.Errorf("with ARITHABORT ON: %v", err)
	}
}

// A random expression of numbers and texts has the type that was announced when it was compiled, by the order of precedence.
func TestRandomExpressionsKeepTheTypeOfPrecedence(t *testing.T) {
	t.Parallel()
	leaves := []string{
		"1", "2.5", "1e0", "$3", "'4'", "N'5'", "@i", "@n", "NULL", "CAST(6 AS tinyint)", "CAST(7 AS bigint)", "CAST(8 AS decimal(38,10))",
		"CAST(1 AS bit)", "CAST(9 AS real)", "CAST(1 AS smallmoney)", "CAST('2006-10-14' AS datetime)",
	}
	var build func(r *rapid.T, depth int) string
	build = func(r *rapid.T, depth int) string {
		if depth == 0 {
			return rapid.SampledFrom(leaves).Draw(r, "leaf")
		}
		a, b := build(r, depth-1), build(r, rapid.IntRange(0, depth-1).Draw(r, "depth"))
		switch rapid.IntRange(0, 5).Draw(r, "form") {
		case 0:
			return "CASE WHEN " + a + " > " + b + " THEN " + a + " ELSE " + b + " END"
		case 1:
			return "COALESCE(" + a + ", " + b + ", 1)"
		case 2:
			return "ISNULL(" + a + ", " + b + ")"
		default:
			return "(" + a + " " + rapid.SampledFrom([]string{"+", "-", "*", "/", "%"}).Draw(r, "operator") + " " + b + ")"
		}
	}
	allowed := map[int]bool{
		206: true, 257: true, 402: true, 8117: true, 8115: true, 8134: true, 245: true, 8114: true, 241: true, 8133: true, 235: true, 232: true,
	}
	rapid.Check(t, func(r *rapid.T) {
		text := build(r, rapid.IntRange(0, 3).Draw(r, "depth"))
		e, err := Compile(parsed(t, text), bare{})
		if err == nil {
			var v value.Value
			v, err = e.Evaluate(&Frame{Variables: bareVariables, Context: &function.Context{Settings: value.Defaults()}})
			if err == nil && !v.IsNull() && v.Type() != e.Type {
				r.Fatalf("%s is %s, but was announced as %s", text, v.Type(), e.Type)
			}
		}
		if err != nil && !allowed[err.Number] {
			r.Fatalf("%s: %v", text, err)
		}
	})
}
