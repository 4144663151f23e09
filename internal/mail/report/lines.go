package report

import (
	"bytes"
	"io"
)

// maximumLine is how many bytes a line may have with its CRLF (RFC 5321 section 4.5.3.1.6).
const maximumLine = 1000

// lineCutter writes a message that is returned, and cuts lines that next hops do not take: the report about one would fail as it did. The
// text behind a cut begins with a blank, which continues a field.
type lineCutter struct {
	w      io.Writer
	length int
}

// Write writes a piece of a message.
func (c *lineCutter) Write(piece []byte) (int, error) {
	for rest := piece; len(rest) > 0; {
		line := rest
		if at := bytes.IndexByte(rest, '\n'); at >= 0 {
			line = rest[:at+1]
		}
		room := max(maximumLine-2-c.length, 0) // none, where the line that fits has its CR in the piece before
		isCut := len(line) > room && len(bytes.TrimRight(line[room:], "\r\n")) > 0
		if isCut {
			line = line[:room]
		}
		if _, err := c.w.Write(line); err != nil {
			return 0, err
		}
		c.length += len(line)
		switch {
		case isCut:
			if _, err := io.WriteString(c.w, "\r\n "); err != nil {
				return 0, err
			}
			c.length = 1
		case line[len(line)-1] == '\n':
			c.length = 0
		}
		rest = rest[len(line):]
	}
	return len(piece), nil
}
