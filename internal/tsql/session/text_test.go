package session

import (
	"io"
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
}

// shown gives what a format makes of one result set and one message.
func shown(t *testing.T, change func(*TextSink)) string {
	t.Helper()
	var out strings.Builder
	s := NewTextSink(&out)
	change(s)
	name, long := value.Sized(value.VarChar, 8), value.Sized(value.NVarChar, value.Max)
	for _, err := range []error{
		s.Columns([]Column{{"n", value.Of(value.Int)}, {"name", name}, {"body", long}}),
		s.Row([]value.Value{value.NewInt(1), value.NewVarChar("abcdefgh"), value.NewNVarChar("one\t\ntwo")}),
		s.Row([]value.Value{value.NewInt(2), value.NewVarChar("b"), value.NewNVarChar(strings.Repeat("x", 300))}),
		s.Done(Done{HasRows: true, HasCount: true, Count: 2}),
		s.Message(&fault.Error{State: 1, Message: "printed"}),
		s.Message(fault.New(8134).At(3, "")),
		s.Flush(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// Each option of sqlcmd changes what its documentation says.
func TestFormatsAreThoseOfTheOptionsOfSqlcmd(t *testing.T) {
	t.Parallel()
	const count, failed = "\n(2 rows affected)\n", "printed\nMsg 8134, Level 16, State 1, Line 3\nDivide by zero error encountered.\n"
	for name, c := range map[string]struct {
		change func(*TextSink)
		want   string
	}{
		"-W and -s": {
			func(s *TextSink) { s.Format.IsTrimmed, s.Format.Separator, s.Format.MaxVariable = true, ",", 9 },
			"n,name,body\n-,----,----\n1,abcdefgh,one\t\ntwo\n2,b,xxxxxxxxx\n" + count + failed,
		},
		"-h -1": {
			func(s *TextSink) { s.Format.IsTrimmed, s.Format.HeadingRows, s.Format.MaxVariable = true, -1, 3 },
			"1 abcdefgh one\n2 b xxx\n" + count + failed,
		},
		"-h 1": {
			func(s *TextSink) { s.Format.IsTrimmed, s.Format.HeadingRows, s.Format.MaxVariable = true, 1, 3 },
			"n name body\n- ---- ----\n1 abcdefgh one\n\nn name body\n- ---- ----\n2 b xxx\n" + count + failed,
		},
		"-y and -Y": {
			func(s *TextSink) { s.Format.MaxVariable, s.Format.MaxFixed = 5, 4 },
			"n           name body \n----------- ---- -----\n          1 abcd one\t\n\n          2 b    xxxxx\n" + count + failed,
		},
		"-y 0": {
			func(s *TextSink) { s.Format.MaxVariable, s.Format.MaxFixed, s.Format.HeadingRows = 0, 4, -1 },
			"          1 abcd one\t\ntwo\n          2 b    " + strings.Repeat("x", 300) + "\n" + count + failed,
		},
		"-k 1": {
			func(s *TextSink) {
				s.Format.IsTrimmed, s.Format.HeadingRows, s.Format.Control, s.Format.MaxVariable = true, -1, 1, 8
			},
			"1 abcdefgh one  two\n2 b xxxxxxxx\n" + count + failed,
		},
		"-k 2": {
			func(s *TextSink) {
				s.Format.IsTrimmed, s.Format.HeadingRows, s.Format.Control, s.Format.MaxVariable = true, -1, 2, 8
			},
			"1 abcdefgh one two\n2 b xxxxxxxx\n" + count + failed,
		},
		"-w": {
			func(s *TextSink) { s.Format.Width, s.Format.MaxVariable = 20, 4 },
			"n           name    \n body\n----------- --------\n ----\n          1 abcdefgh\n one\t\n          2 b       \n xxxx\n" + count + failed,
		},
		"-m 11": {
			func(s *TextSink) { s.Format.IsStream, s.Format.ErrorLevel, s.Format.MaxVariable = true, 11, 3 },
			"1abcdefghone2bxxx\n" + strings.TrimPrefix(failed, "printed\n"),
		},
		"-m-1": {
			func(s *TextSink) { s.Format.IsStream, s.Format.ErrorLevel, s.Format.MaxVariable = true, -1, 3 },
			"1abcdefghone2bxxx\nMsg 0, Level 0, State 1, Line 0\n" + failed,
		},
	} {
		if got := shown(t, c.change); got != c.want {
			t.Errorf("%s\n--- got\n%s\n--- want\n%s", name, got, c.want)
		}
	}
}

// Messages go where they are sent, behind the rows that came before.
func TestMessagesGoWhereTheyAreSent(t *testing.T) {
	t.Parallel()
	var errors strings.Builder
	out := shown(t, func(s *TextSink) {
		s.Format.IsStream, s.Format.MaxVariable = true, 3
		s.Messages = func(m *fault.Error) io.Writer {
			if m.IsInformational() {
				return nil
			}
			return &errors
		}
	})
	if want := "Msg 8134, Level 16, State 1, Line 3\nDivide by zero error encountered.\n"; errors.String() != want || out != "1abcdefghone2bxxx\nprinted\n" {
		t.Errorf("errors %q, output %q", errors.String(), out)
	}
}
