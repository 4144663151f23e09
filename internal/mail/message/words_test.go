package message_test

import (
	"mime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/mail/message"
)

// A value is read as it was written, and no line of it is too long.
func TestLongValuesAreFolded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[!-~]{0,300}`), 1, 20).Draw(t, "words")
		value := strings.TrimSpace(strings.Join(words, " "))
		if strings.Contains(value, "=?") {
			return
		}
		field := message.NewField("X-A", message.Folded("X-A", value))
		if longest := message.LinesOf(field.Raw).Longest; longest > 330 {
			t.Fatalf("a line of %d bytes in %q", longest, field.Raw)
		}
		read, err := new(mime.WordDecoder).DecodeHeader(field.Value())
		if err != nil || read != value {
			t.Fatalf("%q is read as %q (%v)", value, read, err)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(string(field.Raw), "\r\n"), "\r\n") {
			if strings.TrimSpace(line) == "" && value != "" {
				t.Fatalf("an empty line in %q", field.Raw)
			}
		}
	})
}

func TestEncodedWordsHoldWholeCharacters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		encoded := message.EncodedWords(text)
		for word := range strings.SplitSeq(encoded, "\r\n ") {
			if len(word) > 75 {
				t.Fatalf("a word of %d characters", len(word))
			}
			if _, err := new(mime.WordDecoder).Decode(word); err != nil && word != "" {
				t.Fatalf("%q: %v", word, err)
			}
		}
		if read, err := new(mime.WordDecoder).DecodeHeader(strings.ReplaceAll(encoded, "\r\n", "")); err != nil || read != text {
			t.Fatalf("%q is read as %q (%v)", text, read, err)
		}
	})
	if got := message.EncodedWords("f\xfcr"); got != "=?unknown-8bit?B?Zvxy?=" {
		t.Errorf("bytes of an unknown charset are %q", got)
	}
}
