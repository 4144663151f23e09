package send

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// readFailed begins the text of a failure to read the body, which is not the host's.
const readFailed = "read the message"

// writeBody sends a body whose lines end with CRLF: a dot at the beginning of a line is doubled, and a line with one dot ends it
// (RFC 5321 section 4.5.2). A deadline for each piece bounds a host that takes nothing.
func (c *Connection) writeBody(body io.Reader) error {
	buffer := make([]byte, 64<<10)
	last := [2]byte{'\r', '\n'}
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			if err := c.conn.SetDeadline(time.Now().Add(c.timeouts().Command)); err != nil {
				return fmt.Errorf("set a deadline: %w", err)
			}
			if err := c.writeStuffed(buffer[:n], last[1] == '\n'); err != nil {
				return fmt.Errorf("send the message: %w", err)
			}
			tail := append(last[:], buffer[max(0, n-2):n]...)
			copy(last[:], tail[len(tail)-2:])
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", readFailed, err)
		}
	}
	end := "\r\n.\r\n"
	if last == [2]byte{'\r', '\n'} {
		end = ".\r\n"
	}
	if _, err := c.writer.WriteString(end); err != nil {
		return fmt.Errorf("send the message: %w", err)
	}
	if err := c.writer.Flush(); err != nil {
		return fmt.Errorf("send the message: %w", err)
	}
	return nil
}

// writeStuffed writes a piece of a body; begins is whether it begins a line.
func (c *Connection) writeStuffed(piece []byte, begins bool) error {
	if begins && piece[0] == '.' {
		if err := c.writer.WriteByte('.'); err != nil {
			return err //nolint:wrapcheck // The caller says what was done.
		}
	}
	for {
		at := bytes.Index(piece, []byte("\n."))
		if at < 0 {
			_, err := c.writer.Write(piece)
			return err //nolint:wrapcheck // The caller says what was done.
		}
		if _, err := c.writer.Write(piece[:at+1]); err != nil {
			return err //nolint:wrapcheck // The caller says what was done.
		}
		if err := c.writer.WriteByte('.'); err != nil {
			return err //nolint:wrapcheck // The caller says what was done.
		}
		piece = piece[at+1:]
	}
}
