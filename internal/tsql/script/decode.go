package script

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Encodings by which Decode read a file.
const (
	UTF8        = "UTF-8"
	UTF16Little = "UTF-16 little-endian"
	UTF16Big    = "UTF-16 big-endian"
	Windows1252 = "windows-1252"
)

// Decode makes text of a file, and names the encoding that it found: by a mark at the beginning, else UTF-16 where every
// other byte of most characters is zero, else UTF-8 where the bytes are valid, else windows-1252.
func Decode(content []byte) (text, encoding string) {
	switch {
	case bytes.HasPrefix(content, []byte{0xEF, 0xBB, 0xBF}):
		return string(bytes.ToValidUTF8(content[3:], []byte("\uFFFD"))), UTF8
	case bytes.HasPrefix(content, []byte{0xFF, 0xFE}):
		return decodeUTF16(content[2:], 0), UTF16Little
	case bytes.HasPrefix(content, []byte{0xFE, 0xFF}):
		return decodeUTF16(content[2:], 1), UTF16Big
	}
	switch little, big := zeros(content, 1), zeros(content, 0); {
	case little > len(content)/4 && big == 0:
		return decodeUTF16(content, 0), UTF16Little
	case big > len(content)/4 && little == 0:
		return decodeUTF16(content, 1), UTF16Big
	}
	if utf8.Valid(content) {
		return string(content), UTF8
	}
	decoded, err := charmap.Windows1252.NewDecoder().Bytes(content)
	if err != nil { // every byte has a character in this encoding
		return string(bytes.ToValidUTF8(content, []byte("\uFFFD"))), UTF8
	}
	return string(decoded), Windows1252
}

// zeros counts the zero bytes at every other place, from this one on.
func zeros(content []byte, from int) (count int) {
	for at := from; at < len(content); at += 2 {
		if content[at] == 0 {
			count++
		}
	}
	return count
}

// decodeUTF16 makes text of pairs of bytes. The lower byte of a pair stands at low: 0 for little-endian, 1 for big-endian.
func decodeUTF16(content []byte, low int) string {
	words := make([]uint16, 0, len(content)/2)
	for at := 0; at+1 < len(content); at += 2 {
		words = append(words, uint16(content[at+low])|uint16(content[at+1-low])<<8)
	}
	text := string(utf16.Decode(words))
	if len(content)%2 != 0 {
		text += "\uFFFD"
	}
	return text
}
