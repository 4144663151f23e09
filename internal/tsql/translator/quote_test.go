package translator

import (
	"strings"
	"testing"
)

// literalIn reads one constant of PostgreSQL, as its lexer does whatever standard_conforming_strings is, and what stands behind it.
func literalIn(sql string) (text, rest string, ok bool) {
	sql = strings.TrimLeft(sql, " ")
	escapes := strings.HasPrefix(sql, "E")
	sql = strings.TrimPrefix(sql, "E")
	if !strings.HasPrefix(sql, "'") {
		return "", "", false
	}
	var b strings.Builder
	for at := 1; at < len(sql); at++ {
		switch c := sql[at]; {
		case c == '\\' && escapes && at+1 < len(sql) && sql[at+1] == '\\':
			b.WriteByte('\\')
			at++
		case c == '\\':
			return "", "", false // another escape, or a backslash whose meaning depends on a setting
		case c == '\'' && at+1 < len(sql) && sql[at+1] == '\'':
			b.WriteByte('\'')
			at++
		case c == '\'':
			return b.String(), sql[at+1:], true
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// FuzzQuoteText writes texts as constants: each is read back as it was, and nothing of it stands outside of the quotes.
func FuzzQuoteText(f *testing.F) {
	for _, seed := range []string{
		"", "'", "''", `\`, `\'`, `'\'; drop table canary; --`, "$1", "$parley$", "a\nb", "é😀", `\\`, "E'", "\x7f", "/*", "*/ ;", "\u00a0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, rest, ok := literalIn(quoteText(text) + ";")
		if !ok || read != text || rest != ";" {
			t.Errorf("%q is written as %s and read as %q, %q", text, quoteText(text), read, rest)
		}
		name := quote(text)
		if inner := name[1 : len(name)-1]; strings.ReplaceAll(inner, `""`, "") != strings.ReplaceAll(text, `"`, "") {
			t.Errorf("the name %q is written as %s", text, name)
		}
	})
}
