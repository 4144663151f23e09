package message

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

const (
	// wordBytes is how much of a text one encoded word holds: 44 characters of base64, so that the word has at most 75 with its charset.
	wordBytes = 33
	// foldAt is how long lines are where they can be folded, in bytes; foldWord how long a word is that is left as it is.
	foldAt, foldWord = 76, 250
)

// EncodedWords writes a text as encoded words of RFC 2047, each on a line of its own. Text that is no UTF-8 is of an unknown charset
// (RFC 1428).
func EncodedWords(text string) string {
	charset := "utf-8"
	if !utf8.ValidString(text) {
		charset = "unknown-8bit"
	}
	var words []string
	for text != "" {
		n := min(len(text), wordBytes)
		for n > wordBytes-utf8.UTFMax && n < len(text) && !utf8.RuneStart(text[n]) {
			n-- // A character is never cut.
		}
		words = append(words, "=?"+charset+"?B?"+base64.StdEncoding.EncodeToString([]byte(text[:n]))+"?=")
		text = text[n:]
	}
	return strings.Join(words, "\r\n ")
}

// Folded writes an unstructured value, of ASCII and on one line, as the lines of a field of this name: folded at blanks. One that has a
// word that fits in no line becomes encoded words.
func Folded(name, value string) string {
	if len(name)+2+len(value) <= foldAt {
		return value
	}
	for word := range strings.SplitSeq(value, " ") {
		if len(word) > foldWord {
			return "\r\n " + EncodedWords(value)
		}
	}
	var folded strings.Builder
	length := len(name) + 1
	for i, word := range strings.Split(value, " ") {
		if length+1+len(word) > foldAt && i > 0 && word != "" {
			folded.WriteString("\r\n")
			length = 0
		}
		if i > 0 {
			folded.WriteByte(' ')
		}
		folded.WriteString(word)
		length += 1 + len(word)
	}
	return folded.String()
}
