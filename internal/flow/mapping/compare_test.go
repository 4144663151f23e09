package mapping_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/flow/mapping"
)

func TestADifferenceHasItsPath(t *testing.T) {
	t.Parallel()
	const xml, json = "application/xml", "application/json"
	for _, c := range []struct{ kind, got, expected, difference string }{
		{xml, `<a:R xmlns:a="urn:x" p="1" q="2"><b>1</b> </a:R>`, "<R xmlns=\"urn:x\" q='2' p='1'>\n<b xmlns=''>1</b><!-- c --></R>", ""},
		{xml, `<R><b>1</b><b>2</b></R>`, `<R><b>1</b><b>3</b></R>`, `/R/b[2]: "2", expected "3"`},
		{xml, `<R><b>1</b></R>`, `<R><b>1</b><c>7</c></R>`, `/R/c: missing, expected "7"`},
		{xml, `<R a="1"/>`, `<R/>`, `/R/@a: "1", expected nothing`},
		{xml, `<R/>`, `<R xmlns="urn:x"/>`, `/R: "R", expected "urn:x#R"`},
		{xml, `<R>a</R>`, `<R> a</R>`, `/R: "a", expected " a"`},
		{json, `{"a": 1, "b": [1, {"c": 2}]}`, `{"b": [1, {"c": 2}], "a": 1}`, ""},
		{json, `{"a": [1, 2]}`, `{"a": [1, 3]}`, `/a/1: "2", expected "3"`},
		{json, `{}`, `{"a": null}`, `/a: missing, expected "null"`},
		{json, `1.10`, `1.1`, `: "1.10", expected "1.1"`},
		{"text/plain", "a", "b", `: "a", expected "b"`},
		{"text/plain", `{"a": 1, "b": [2]}`, `{"b":[2],"a":1}`, ""},
		{"text/plain", `{"a": 1}`, `{"a": 2}`, `/a: "1", expected "2"`},
		{"text/plain", `{"a": 1}`, `{"a": 1`, `: "{\"a\": 1}", expected "{\"a\": 1"`},
	} {
		found, err := mapping.Compare([]byte(c.got), []byte(c.expected), c.kind)
		switch {
		case err != nil:
			t.Errorf("%s: %v", c.got, err)
		case c.difference == "" && len(found) > 0, c.difference != "" && (len(found) != 1 || found[0].String() != c.difference):
			t.Errorf("%s and %s differ by %v, and should by %q", c.got, c.expected, found, c.difference)
		}
	}
}
