package parts

import "strings"

// mostIDs is how many Message-IDs of a field are given.
const mostIDs = 200

// messageIDs gives the Message-IDs of a field, with their brackets. What stands in a comment or in a quoted string is none (RFC 5322
// section 3.2), and neither is what stands between the ids: phrases, in old messages. Where comments and quoted strings have no end the
// field has none. The parser of go-message refuses a field with a phrase in it, so that its ids would be lost. sql/mail/message_ids.sql
// reads in the same way.
func messageIDs(value string) []string {
	ids, isClosed := scanIDs(value, true)
	if !isClosed {
		ids, _ = scanIDs(value, false)
	}
	return ids
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
				ids = append(ids, clean(value[begin:i+1]))
			}
			begin = -1
		case strings.IndexByte(" \t\r\n\v\f", c) >= 0:
			begin = -1
		}
	}
	return ids, depth == 0 && !isQuoted
}
