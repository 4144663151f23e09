package parley_test

import (
	"testing"

	"github.com/parley-broker/parley"
)

func TestBodyTextReadsUTF8AndUTF16(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, body, text string
		ok               bool
	}{
		{"nothing", "", "", true},
		{"UTF-8", "grüße 🐘", "grüße 🐘", true},
		{"UTF-8 with a byte-order mark", "\xef\xbb\xbfhi", "hi", true},
		{"UTF-16, little end first", "\xff\xfeh\x00i\x00\x3d\xd8\x18\xdc", "hi🐘", true},
		{"UTF-16, big end first", "\xfe\xff\x00h\x00i", "hi", true},
		{"half a unit of UTF-16", "\xff\xfeh\x00i", "", false},
		{"bytes that are no text", "\x00\xff", "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, ok := parley.BodyText([]byte(c.body))
			if text != c.text || ok != c.ok {
				t.Errorf("got %q, %v, want %q, %v", text, ok, c.text, c.ok)
			}
		})
	}
}
