package parley

import (
	"bytes"
	"unicode/utf8"
)

// BodyText gives the body of a message as text: UTF-8, or UTF-16 when it begins with a byte-order mark, as T-SQL
// programs send it. It is false when the body is neither.
func BodyText(body []byte) (text string, ok bool) {
	isUTF16 := bytes.HasPrefix(body, []byte{0xff, 0xfe}) || bytes.HasPrefix(body, []byte{0xfe, 0xff})
	if !isUTF16 && !utf8.Valid(body) {
		return "", false
	}
	if isUTF16 && len(body)%2 != 0 {
		return "", false
	}
	return decodeUTF16(body), true
}
