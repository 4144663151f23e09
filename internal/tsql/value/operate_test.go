package value

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOperatorsHaveTheTypesAndErrorsOfTheDocumentation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left     string
		operator byte
		right    string
		want     string
		to       string
	}{
		{"int:5", '/', "int:2", "2", "int"},
		{"int:-5", '/', "int:2", "-2", "int"},
		{"int:-5", '%', "int:2", "-1", "int"},
		{"int:2147483647", '+', "int:1", "8115 Arithmetic overflow error converting expression to data type int.", ""},
		{"tinyint:200", '+', "tinyint:100", "8115 Arithmetic overflow error converting expression to data type tinyint.", ""},
		{"int:1", '/', "int:0", "8134 Divide by zero error encountered.", ""},
		{"decimal(2,1):2.0", '/', "decimal(1,0):3", "0.666666", "decimal(7,6)"},
		{"decimal(2,1):1.5", '*', "decimal(2,1):1.5", "2.25", "decimal(5,2)"},
		{"decimal(5,2):123.45", '+', "decimal(7,3):1.005", "124.455", "decimal(8,3)"},
		{"decimal(30,20):0.0000009", '*', "decimal(30,20):1", "0.00000090000000000", "decimal(38,17)"},
		{"decimal(30,10):0.0000009", '*', "decimal(30,10):1", "0.000001", "decimal(38,6)"},
		{"decimal(5,1):7.5", '%', "int:2", "1.5", "decimal(5,1)"},
		{"int:1", '+', "decimal(5,2):1.5", "2.50", "decimal(13,2)"},
		{"money:10", '/', "money:3", "3.3333", "money"},
		{"money:10", '*', "int:3", "30.0000", "money"},
		{"float:1", '/', "int:4", "0.25", "float"},
		{"varchar(2):12", '+', "int:1", "13", "int"},
		{"varchar(2):a", '+', "varchar(3):b", "ab", "varchar(5)"},
		{"varchar(2):a", '+', "nvarchar(3):b", "ab", "nvarchar(5)"},
		{"varchar(2):a", '-', "varchar(2):b", "8117 Operand data type varchar is invalid for subtract operator.", ""},
		{"bit:1", '+', "bit:1", "8117 Operand data type bit is invalid for add operator.", ""},
		{"bit:1", '&', "bit:0", "0", "bit"},
		{"datetime:2006-10-14", '+', "int:1", "2006-10-15 00:00:00.000", "datetime"},
		{"datetime:2006-10-14", '-', "float:0.5", "2006-10-13 12:00:00.000", "datetime"},
		{"date:2006-10-14", '+', "int:1", "206 Operand type clash: date is incompatible with int", ""},
		{"datetime2(7):2006-10-14", '-', "datetime2(7):2006-10-14", "8117 Operand data type datetime2 is invalid for subtract operator.", ""},
		{"float:1", '%', "int:1", "402 The data types float and int are incompatible in the modulo operator.", ""},
		{"uniqueidentifier:0E984725-C51C-4BF4-9960-E1C80E27ABA0", '+', "int:1", "206 Operand type clash: uniqueidentifier is incompatible with int", ""},
		{"int:6", '^', "int:3", "5", "int"},
		{"varbinary:0x01", '+', "varbinary:0x02", "0x0102", "varbinary(max)"},
	} {
		got, err := Defaults().Operate(c.operator, from(t, c.left), from(t, c.right))
		if shown(got, err) != c.want || err == nil && got.Type().String() != c.to {
			t.Errorf("%s %c %s\n got %s, %s\nwant %s, %s", c.left, c.operator, c.right, shown(got, err), got.Type(), c.want, c.to)
		}
	}
}

func TestConcatenationIsCutAtTheLongestThatIsNotMax(t *testing.T) {
	t.Parallel()
	a, b := NewVarChar(strings.Repeat("a", 5000)), NewVarChar(strings.Repeat("b", 5000))
	got, err := Defaults().Operate('+', a, b)
	if err != nil || len(got.Raw()) != 8000 {
		t.Errorf("%d characters, %v", len(got.Raw()), err)
	}
	long := TextOf(Type{Kind: VarChar, Length: Max}, a.Raw())
	if got, err = Defaults().Operate('+', long, b); err != nil || len(got.Raw()) != 10_000 {
		t.Errorf("%d characters with (max), %v", len(got.Raw()), err)
	}
}

func TestTextIsComparedWithoutCaseAndBlanksAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"abc", "ABC  ", 0},
		{"a", "b", -1},
		{"a", "B", -1},
		{"é", "e", 1},
		{"É", "é", 0},
		{"a1", "aa", -1},
		{"_a", "1", -1},
		{"a", "a\t", 1},
		{"", "  ", 0},
		{"résumé", "resumes", -1},
		{"z", "é", 1},
		{"ß", "ß", 0},
	} {
		if got := CompareText(c.a, c.b); got != c.want {
			t.Errorf("%q against %q: %d, not %d", c.a, c.b, got, c.want)
		}
	}
}

func TestComparisonOfTextIsAnOrder(t *testing.T) {
	t.Parallel()
	texts := rapid.StringOfN(rapid.RuneFrom([]rune("aAbéÉ 1_\t.zü")), 0, 5, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := texts.Draw(t, "a"), texts.Draw(t, "b"), texts.Draw(t, "c")
		if CompareText(a, b) != -CompareText(b, a) {
			t.Fatalf("%q and %q compare differently from both sides", a, b)
		}
		if CompareText(a, b) <= 0 && CompareText(b, c) <= 0 && CompareText(a, c) > 0 {
			t.Fatalf("%q <= %q <= %q, but not %q <= %q", a, b, c, a, c)
		}
	})
}

func TestIdentifiersAreOrderedByTheirLastGroupFirst(t *testing.T) {
	t.Parallel()
	texts := []string{
		"00000001-0000-0000-0000-000000000000", "00000000-0001-0000-0000-000000000000", "00000000-0000-0001-0000-000000000000",
		"00000000-0000-0000-0001-000000000000", "00000000-0000-0000-0000-000000000001",
	}
	for i := 1; i < len(texts); i++ {
		a, b := from(t, "uniqueidentifier:"+texts[i-1]), from(t, "uniqueidentifier:"+texts[i])
		if got, err := Defaults().Compare(a, b); got != -1 || err != nil {
			t.Errorf("%s against %s: %d %v", texts[i-1], texts[i], got, err)
		}
	}
}

func TestPrecedenceChoosesTheHigherTypeThatHoldsBoth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b, want string }{
		{"int", "bigint", "bigint"},
		{"varchar(10)", "int", "int"},
		{"decimal(5,2)", "int", "decimal(12,2)"},
		{"decimal(38,2)", "decimal(38,10)", "decimal(38,2)"},
		{"money", "decimal(5,1)", "decimal(19,4)"},
		{"money", "int", "money"},
		{"varchar(10)", "nvarchar(5)", "nvarchar(10)"},
		{"char(3)", "varchar(2)", "varchar(3)"},
		{"varchar(max)", "nchar(5)", "nvarchar(max)"},
		{"date", "datetime", "datetime"},
		{"datetime", "datetime2(0)", "datetime2(3)"},
		{"float", "decimal(5,1)", "float"},
		{"uniqueidentifier", "varchar(40)", "uniqueidentifier"},
		{"varbinary(5)", "varchar(3)", "varchar(5)"},
		{"int", "uniqueidentifier", "206"},
		{"date", "int", "206"},
		{"time(7)", "date", "206"},
	} {
		for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			got, err := Higher(typed(t, pair[0]), typed(t, pair[1]))
			text := got.String()
			if err != nil {
				text = shown(Value{}, err)[:3]
			}
			if text != c.want {
				t.Errorf("%v: %s, not %s", pair, text, c.want)
			}
		}
	}
}

// The result of an operator on any two numbers has the type that the rules of precedence give, or it is an error of arithmetic.
func TestResultsHaveTheTypeOfPrecedence(t *testing.T) {
	t.Parallel()
	kinds := []string{"bit", "tinyint", "smallint", "int", "bigint", "smallmoney", "money", "decimal(5,2)", "decimal(38,10)", "real", "float", "varchar(5)"}
	rapid.Check(t, func(r *rapid.T) {
		number := rapid.SampledFrom([]string{"0", "1", "7", "100"})
		a := from(t, rapid.SampledFrom(kinds).Draw(r, "left")+":"+number.Draw(r, "a"))
		b := from(t, rapid.SampledFrom(kinds).Draw(r, "right")+":"+number.Draw(r, "b"))
		operator := rapid.SampledFrom([]byte("+-*/%&|^")).Draw(r, "operator")
		got, err := Defaults().Operate(operator, a, b)
		if err != nil {
			if !slices.Contains([]int{402, 8115, 8117, 8134}, err.Number) {
				r.Fatalf("%s %c %s: %v", a.Type(), operator, b.Type(), err)
			}
			return
		}
		high := max(a.Kind(), b.Kind())
		if got.Kind() != high {
			r.Fatalf("%s %c %s is %s", a.Type(), operator, b.Type(), got.Type())
		}
		if d := got.Decimal(); got.Kind() == Decimal && (int(-d.Exponent) != int(got.Type().Scale) || d.NumDigits() > 38) {
			r.Fatalf("%s has not the scale of %s", Display(got), got.Type())
		}
	})
}
