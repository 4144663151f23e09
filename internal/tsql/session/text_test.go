package session

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

func TestTextIsThatOfSqlcmd(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := NewTextSink(&out)
	s.Server = "SHOP"
	for _, err := range []error{
		s.Columns([]Column{{"n", value.Of(value.Int)}, {"name", value.Sized(value.VarChar, 6)}, {"", value.Of(value.Bit)}}),
		s.Row([]value.Value{value.NewInt(12), value.NewVarChar("abc"), value.NewBit(true)}),
		s.Row([]value.Value{value.Null(value.Of(value.Int)), value.NewVarChar("abcdefgh"), value.Null(value.Of(value.Bit))}),
		s.Done(Done{HasRows: true, HasCount: true, Count: 2}),
		s.Done(Done{HasCount: true, Count: 1}),
		s.Done(Done{}),
		s.Message(&fault.Error{Message: "printed"}),
		s.Message(fault.New(8134).At(3, "p")),
		s.Flush(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := strings.ReplaceAll(`n           name   ____
----------- ------ ----
         12 abc    1___
       NULL abcdef NULL

(2 rows affected)

(1 rows affected)
printed
Msg 8134, Level 16, State 1, Server SHOP, Procedure p, Line 3
Divide by zero error encountered.
`, "_", " ")
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if !s.HasErrors || s.WorstLevel() != 16 {
		t.Errorf("errors %v, level %d", s.HasErrors, s.WorstLevel())
	}
}
