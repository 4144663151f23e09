package parley_test

import (
	"testing"

	"github.com/parley-broker/parley"
)

func TestParseErrorReadsEveryEncoding(t *testing.T) {
	t.Parallel()
	const text = `<?xml version="1.0" encoding="utf-16"?>` +
		`<Error xmlns="http://schemas.microsoft.com/SQL/ServiceBroker/Error"><Code>-8489</Code><Description>a &lt; b, ü, 𝄞</Description></Error>`
	for name, body := range map[string][]byte{
		"UTF-8":                []byte(text),
		"UTF-8 with a mark":    []byte("\ufeff" + text),
		"UTF-16 little endian": utf16(text, 0, 1),
		"UTF-16 big endian":    utf16(text, 1, 0),
	} {
		got, err := parley.ParseError(body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := (parley.ConversationError{Code: -8489, Description: "a < b, ü, 𝄞"}); *got != want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// utf16 encodes text with a byte-order mark; low and high are the places of the bytes in a unit.
func utf16(text string, low, high int) []byte {
	var encoded []byte
	unit := func(u rune) {
		var pair [2]byte
		pair[low], pair[high] = byte(u), byte(u>>8)
		encoded = append(encoded, pair[:]...)
	}
	unit(0xfeff)
	for _, r := range text {
		if r > 0xffff {
			r -= 0x10000
			unit(0xd800 + r>>10)
			r = 0xdc00 + r&0x3ff
		}
		unit(r)
	}
	return encoded
}

func TestParseErrorRefusesOtherBodies(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "text", "<Error/>", `<Error xmlns="http://schemas.microsoft.com/SQL/ServiceBroker/Error"><Code>x</Code></Error>`, "\xff\xfe<"} {
		if got, err := parley.ParseError([]byte(body)); err == nil {
			t.Errorf("%q became %+v", body, got)
		}
	}
}

func FuzzParseError(f *testing.F) {
	f.Add([]byte(`<Error xmlns="http://schemas.microsoft.com/SQL/ServiceBroker/Error"><Code>1</Code><Description>d</Description></Error>`))
	f.Add(utf16("<Error/>", 0, 1))
	f.Fuzz(func(t *testing.T, body []byte) {
		if got, err := parley.ParseError(body); (got == nil) == (err == nil) {
			t.Errorf("%q gives %v and %v", body, got, err)
		}
	})
}
