package module

import (
	"strings"
	"testing"
)

func TestABodyGivesItsTextBack(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"CREATE PROCEDURE p AS SELECT 1", "a\r\nb\n--c\r--\n\rd\n", "", "end $$; drop table x; --\n'", "\n\n/* */ -- its text:\n--x",
	} {
		body, err := bodyOf(header{Schema: "dbo", Name: "P", Quoted: true}, text)
		if err != nil {
			t.Fatal(err)
		}
		h, got, is := textOf(body)
		if !is || got != text || h.Name != "P" || !h.Quoted {
			t.Errorf("%q came back as %q, %v, %v", text, got, h, is)
		}
		for line := range strings.FieldsFuncSeq(strings.SplitN(body, textBehind, 2)[1], func(r rune) bool { return r == '\n' || r == '\r' }) {
			if !strings.HasPrefix(line, "--") {
				t.Errorf("%q leaves a line that is no comment: %q", text, line)
			}
		}
	}
	if _, _, is := textOf("begin null; end"); is {
		t.Error("a body of PL/pgSQL is taken for T-SQL")
	}
}

func TestALongNameIsCutAndStaysItsOwn(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("É", 60)
	a, b := NameOf(long+"a"), NameOf(long+"b")
	if len(a) > maxName || a == b || NameOf("Short") != "short" {
		t.Error(a, b)
	}
}
