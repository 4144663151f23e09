package postgresql

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// A statement that is let through begins with one of the verbs, wherever comments stand.
func FuzzOnlyStatementsOnRowsAreRun(f *testing.F) {
	for _, seed := range []string{"select 1", "/* select */ commit", "-- select\nrollback", "with a as (select 1) select * from a;", "select $1; commit", "\"select\" 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := checkStatement(text); err != nil {
			return
		}
		for _, verb := range []string{"commit", "rollback", "begin", "set", "reset", "copy", "do", "savepoint", "release"} {
			if rest, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(text)), verb); ok && (rest == "" || strings.HasPrefix(rest, " ")) {
				t.Errorf("%q is let through", text)
			}
		}
	})
}

// A source of a setting gives a value for any body, or an error, and never a zero byte, which no text of PostgreSQL has.
func FuzzValuesAreReadFromAnyBody(f *testing.F) {
	f.Add(`{"field": "/a/0/b~1c"}`, `{"a": [{"b/c": "x"}]}`)
	f.Add(`{"body": "bytes"}`, "\x00\xff")
	f.Add(`{"body": "text"}`, "text")
	f.Add(`{"value": {"a": 1.50}}`, "")
	f.Fuzz(func(t *testing.T, setting, body string) {
		var s source
		if json.Unmarshal([]byte(setting), &s) != nil {
			return
		}
		c := &content{bytes: []byte(body)}
		if s.isField {
			var err error
			if c.parsed, err = parseJSON(c.bytes); err != nil {
				return
			}
		}
		value, err := s.value(&adapter.Message{}, c)
		if err == nil && bytes.IndexByte(value, 0) >= 0 {
			t.Errorf("%s of %q gave %q", setting, body, value)
		}
	})
}
