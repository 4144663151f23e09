package send

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

// readFailed begins the text of a failure to read the body, which is not the host's.
const readFailed = "read the message"

// bodyPiece is how much of a body is written under one deadline, in bytes.
const bodyPiece = 64 << 10

// writeBody sends a body of so many bytes, whose lines end with CRLF, but not its end: a dot at the beginning of a line is doubled, and a
// line with one dot ends it (RFC 5321 section 4.5.2). A deadline for each piece bounds a host that takes nothing. A body that has other
// than its size in bytes is no whole one, and fails. It returns what ends the body.
func (c *Connection) writeBody(body io.Reader, size int64) (end string, err error) {
	writer := &bodyWriter{connection: c, last: [2]byte{'\r', '\n'}}
	// A body that is in memory is written as it is there, without a copy.
	written, err := io.CopyBuffer(writer, body, make([]byte, bodyPiece))
	switch {
	case writer.err != nil:
		return "", writer.err
	case err != nil:
		return "", fmt.Errorf("%s: %w", readFailed, err)
	case written != size:
		return "", fmt.Errorf("%s: it ended after %d of %d bytes: %w", readFailed, written, size, io.ErrUnexpectedEOF)
	case writer.last == [2]byte{'\r', '\n'}:
		return ".\r\n", nil
	default:
		return "\r\n.\r\n", nil
	}
}

// endBody ends a body: from here on the host may have the message. The rest of the body goes with the end, under a deadline of its own.
func (c *Connection) endBody(end string) error {
	if err := c.conn.SetDeadline(time.Now().Add(c.timeouts().Command)); err != nil {
		return fmt.Errorf("set a deadline: %w", err)
	}
	if _, err := c.writer.WriteString(end); err != nil {
		return fmt.Errorf("send the message: %w", err)
	}
	if err := c.writer.Flush(); err != nil {
		return fmt.Errorf("send the message: %w", err)
	}
	return nil
}

// bodyWriter sends what is written to it as a part of a body.
type bodyWriter struct {
	connection *Connection
	last       [2]byte // that were sent
	err        error   // of the connection
}

// Write sends a part of a body.
func (w *bodyWriter) Write(part []byte) (written int, err error) {
	for len(part) > 0 && w.err == nil {
		piece := part[:min(len(part), bodyPiece)]
		if err := w.connection.conn.SetDeadline(time.Now().Add(w.connection.timeouts().Command)); err != nil {
			w.err = fmt.Errorf("set a deadline: %w", err)
			break
		}
		if err := w.connection.writeStuffed(piece, w.last[1] == '\n'); err != nil {
			w.err = fmt.Errorf("send the message: %w", err)
			break
		}
		if len(piece) > 1 {
			w.last[0] = piece[len(piece)-2]
		} else {
			w.last[0] = w.last[1]
		}
		w.last[1] = piece[len(piece)-1]
		written += len(piece)
		part = part[len(piece):]
	}
	return written, w.err
}

// writeStuffed writes a piece of a body; begins is whether it begins a line.
func (c *Connection) writeStuffed(piece []byte, begins bool) error {
	if begins && piece[0] == '.' {
		if err := c.writer.WriteByte('.'); err != nil {
			return err
		}
	}
	for {
		at := bytes.Index(piece, []byte("\n."))
		if at < 0 {
			_, err := c.writer.Write(piece)
			return err
		}
		if _, err := c.writer.Write(piece[:at+1]); err != nil {
			return err
		}
		if err := c.writer.WriteByte('.'); err != nil {
			return err
		}
		piece = piece[at+1:]
	}
}
