package fault

import (
	"strings"
	"testing"
)

func TestEachRowOfTheTableFillsItsText(t *testing.T) {
	t.Parallel()
	for number, row := range table() {
		filled := New(number, "a", "b", "c", "d", "e", "f", "g", "h")
		if strings.Contains(filled.Message, "%!") || strings.Contains(filled.Message, "(null)") {
			t.Errorf("%d: %q of %q", number, filled.Message, row.text)
		}
		if filled.Severity != row.severity || filled.Severity > 25 {
			t.Errorf("%d has severity %d", number, filled.Severity)
		}
	}
}

func TestFormatFillsAsFormatmessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text      string
		arguments []any
		want      string
	}{
		{"This is message %s with value %d", []any{"one", int64(7)}, "This is message one with value 7"},
		{"%i and %u", []any{int64(-5), int64(-5)}, "-5 and 4294967291"},
		{"[%5d][%-5d][%05d][%+i]", []any{int64(7), int64(7), int64(7), int64(7)}, "[    7][7    ][00007][+7]"},
		{"%x %X %#x %o", []any{int64(255), int64(255), int64(255), int64(8)}, "ff FF 0xff 10"},
		{"[%7.3s][%.2s]", []any{"abcdef", "abc"}, "[    abc][ab]"},
		{"<<%*.*s>>", []any{int64(7), int64(3), "abcde"}, "<<    abc>>"},
		{"'%.*ls'", []any{"abc"}, "'abc'"},
		{"50%% of %s", nil, "50% of (null)"},
		{"%z stays", nil, "%z stays"},
		{"%I64d", []any{int64(1) << 40}, "1099511627776"},
	} {
		if got := Format(c.text, c.arguments...); got != c.want {
			t.Errorf("%q: %q, not %q", c.text, got, c.want)
		}
	}
}

func TestRowsOfTheTableAreChecked(t *testing.T) {
	t.Parallel()
	for _, rows := range []string{"1\t2\t3\tstatement", "1\tx\t3\tstatement\ttext", "1\t2\t3\tnowhere\ttext", "1\t2\t3\tscope\ta\n1\t2\t3\tscope\tb"} {
		if _, err := parse(rows); err == nil {
			t.Errorf("%q is read", rows)
		}
	}
}

func TestAnErrorKeepsTheFirstPlaceThatItIsGiven(t *testing.T) {
	t.Parallel()
	placed := New(8134).At(3, "p").At(7, "caller")
	if got := placed.Error(); got != "Msg 8134, Level 16, State 1, Procedure p, Line 3: Divide by zero error encountered." {
		t.Error(got)
	}
}
