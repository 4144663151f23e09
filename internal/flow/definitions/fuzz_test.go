package definitions_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/parley-broker/parley/internal/flow/definitions"
)

// Any file is read, or refused with places in it. A document that was read is written as YAML that is read as the same.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"", "a: {b: {c: [1, -0.5, true, null, yes, \"no\"]}}", "a:\n  b: ${X} ${", "a: &x {b: *x}", "---\na:\n...\n---\nb: |\n  x\n", "{\"a\": {\"b\": \"\\u0000\"}}",
		"? [a]\n: b", "a: !!binary aGFsbG8=", "\ufeffa: {}", "a: {b: '$${X} 007'}", "%YAML 1.1\n---\na: {}", "a: {b: \"\\x85\\u2028\\ufeff x \"}", "a: {'': {\"<<\": '~'}}",
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, written []byte, isJSON bool) {
		name := "x.yaml"
		if isJSON {
			name = "x.json"
		}
		settings := definitions.Settings{Environment: []definitions.Source{file("e.yaml", "X: 'a b'")}}
		document, err := definitions.Read([]definitions.Source{{Name: name, Written: written}}, settings)
		if err != nil {
			faults, are := errors.AsType[definitions.Faults](err)
			if !are || len(faults) == 0 {
				t.Fatalf("%v are no faults", err)
			}
			lines := bytes.Count(written, []byte("\n")) + bytes.Count(written, []byte("\r")) + bytes.Count(written, []byte("\u0085")) +
				bytes.Count(written, []byte("\u2028")) + bytes.Count(written, []byte("\u2029")) + 2
			for _, fault := range faults {
				if fault.File != name || fault.Line < 1 || fault.Column < 1 || fault.Line > lines {
					t.Fatalf("%v is at no place of the file", fault)
				}
			}
			return
		}
		content, err := document.JSON()
		if err != nil || !json.Valid(content) {
			t.Fatalf("%s is no JSON: %v", content, err)
		}
		exported, err := definitions.Write(content)
		if err != nil {
			t.Fatalf("%s is not written: %v", content, err)
		}
		again, err := definitions.Read([]definitions.Source{{Name: "again.yaml", Written: exported}}, settings)
		if err != nil {
			t.Fatalf("%s, written as\n%s\nis refused: %v", content, exported, err)
		}
		// Keys of the same kind may stand in another order.
		if got := inJSON(t, again); !sameJSON(t, got, string(content)) {
			t.Fatalf("%s, written as\n%s\nis read as %s", content, exported, got)
		}
	})
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	normal := func(text string) string {
		decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.UseNumber()
		var v any
		if err := decoder.Decode(&v); err != nil {
			t.Fatal(err)
		}
		written, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(written)
	}
	return normal(a) == normal(b)
}
