package message

import (
	"strings"
	"time"
)

// mostIDs is how many Message-IDs of a field are given.
const mostIDs = 200

// IDs gives the Message-IDs of a field, with their brackets. Encoded words are decoded first: Python writes long ids so. Text
// in a comment or in a quoted string is no id (RFC 5322 section 3.2), and neither are phrases between the ids, as old messages have them.
// Where comments and quoted strings have no end the field has none. sql/mail/messages/message_ids.sql reads in the same way.
func IDs(value string) []string {
	value, _ = DecodeWords(value)
	ids, isClosed := scanIDs(value, true)
	if !isClosed {
		ids, _ = scanIDs(value, false)
	}
	return ids
}

// MessageID gives the Message-ID of a message as others name it in their References: without comments, decoded. A field that has no
// id is given as it is written.
func (h Header) MessageID() string {
	written := h.Value("Message-Id")
	if ids := IDs(written); len(ids) > 0 {
		return ids[0]
	}
	return written
}

// scanIDs reads a field in one pass, with its comments and quoted strings or as if these were text, and says whether all of them have
// ended.
func scanIDs(value string, hasComments bool) (ids []string, isClosed bool) {
	depth, isQuoted, begin := 0, false, -1 // begin is where the id began that is being read
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '\\' && i+1 < len(value):
			i++ // the next character has no meaning
		case depth > 0:
			switch c {
			case '(':
				depth++
			case ')':
				depth--
			}
		case isQuoted:
			isQuoted = c != '"'
		case c == '"':
			isQuoted = hasComments
		case c == '(' && begin < 0:
			if hasComments {
				depth = 1
			}
		case c == '<':
			begin = i
		case c == '>':
			if begin >= 0 && i > begin+1 && len(ids) < mostIDs {
				ids = append(ids, value[begin:i+1])
			}
			begin = -1
		case strings.IndexByte(" \t\r\n\v\f", c) >= 0:
			begin = -1
		}
	}
	return ids, depth == 0 && !isQuoted
}

// NewNetworkMessageID makes a UUID of version 7, which indexes keep in the order of time.
func NewNetworkMessageID(now time.Time) string {
	token := Token()
	ms := now.UnixMilli()
	const digits = "0123456789abcdef"
	id := []byte(token)
	for i := range 12 {
		id[i] = digits[ms>>(44-4*i)&0xf]
	}
	id[12] = '7'
	id[16] = "89ab"[id[16]&3]
	return string(id[:8]) + "-" + string(id[8:12]) + "-" + string(id[12:16]) + "-" + string(id[16:20]) + "-" + string(id[20:])
}
