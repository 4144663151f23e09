package receive

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lines are the faults of the lines of a message.
type lines struct {
	isBare    bool // a CR or LF stood alone
	isTooLong bool
}

// textLineMax is the longest line that a connector can allow. It is shorter than the buffer of a wire.
const textLineMax = 10_000

// readData reads message data up to the final dot, and writes it to sink with dots unstuffed. Only CRLF ends a line, and only CRLF.CRLF the
// data, whatever else resembles it. An error of sink does not stop the reading: the peer gets its reply behind the final dot.
func readData(in *bufio.Reader, sink io.Writer, limits Limits) (found lines, err error) {
	isLineStart, isContinued, hadCR := true, false, false
	var sinkErr error
	for {
		if isLineStart && !isContinued {
			sinkErr = passPlainLines(in, sink, limits, sinkErr)
		}
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			found.isTooLong, isContinued, hadCR = true, true, line[len(line)-1] == '\r'
			continue
		}
		if err != nil {
			return found, err
		}
		isEnd := len(line) >= 2 && line[len(line)-2] == '\r'
		if isContinued { // the rest of a line that was refused
			isLineStart, isContinued = isEnd || len(line) == 1 && hadCR, false
			continue
		}
		if isLineStart && line[0] == '.' {
			if isEnd && len(line) == 3 {
				return found, nil
			}
			line = line[1:]
		}
		isLineStart = isEnd
		found.isTooLong = found.isTooLong || len(line) > limits.textLine()
		if !isEnd || bytes.IndexByte(line[:len(line)-2], '\r') >= 0 {
			found.isBare = true
			if limits.IsNormalizing {
				line = normalized(line)
			}
		}
		if sinkErr == nil {
			_, sinkErr = sink.Write(line)
		}
	}
}

// passPlainLines passes on together what is there already of lines that have nothing to them, as most have. It gives what the sink
// returned, now or before.
func passPlainLines(in *bufio.Reader, sink io.Writer, limits Limits, sinkErr error) error {
	plain := plainLines(in, limits.textLine())
	if len(plain) > 0 && sinkErr == nil {
		_, sinkErr = sink.Write(plain)
	}
	_, _ = in.Discard(len(plain)) // It is buffered.
	return sinkErr
}

// plainLines gives the whole lines at the beginning of what is buffered, as far as each ends with CRLF, has no other CR, no dot at its
// beginning and at most so many bytes. It reads little beyond what it gives: a peer cannot make it read the same bytes again and again.
func plainLines(in *bufio.Reader, most int) []byte {
	buffered, _ := in.Peek(in.Buffered())
	end := 0
	for end < len(buffered) && buffered[end] != '.' {
		rest := buffered[end:min(end+most, len(buffered))]
		length := bytes.IndexByte(rest, '\n') + 1
		if length < 2 || bytes.IndexByte(rest[:length], '\r') != length-2 {
			break
		}
		end += length
	}
	return buffered[:end]
}

func (l Limits) textLine() int {
	if l.TextLine <= 0 || l.TextLine > textLineMax {
		return textLineMax
	}
	return l.TextLine
}

// normalized makes every line break of a line CRLF.
func normalized(line []byte) []byte {
	inner := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	return append(bytes.ReplaceAll(inner, []byte("\r"), []byte("\r\n")), '\r', '\n')
}

// lineChecker passes on what BDAT brought, and records what is wrong with its lines: another server may get them by DATA.
type lineChecker struct {
	sink   io.Writer
	limits Limits
	found  lines
	length int
	hadCR  bool
}

func (c *lineChecker) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		i := bytes.IndexAny(rest, "\r\n")
		if i < 0 {
			c.length += len(rest)
			c.found.isBare = c.found.isBare || c.hadCR
			c.hadCR = false
			break
		}
		c.length += i + 1
		isPair := c.hadCR && i == 0 && rest[i] == '\n'
		c.found.isBare = c.found.isBare || !isPair && (c.hadCR || rest[i] == '\n')
		c.found.isTooLong = c.found.isTooLong || c.length > c.limits.textLine()
		c.hadCR = rest[i] == '\r'
		if !c.hadCR {
			c.length = 0
		}
		rest = rest[i+1:]
	}
	c.found.isTooLong = c.found.isTooLong || c.length > c.limits.textLine()
	return c.sink.Write(p)
}

// end reports what was wrong, and whether the last line is complete.
func (c *lineChecker) end() (found lines, isComplete bool) {
	c.found.isBare = c.found.isBare || c.hadCR
	return c.found, c.length == 0
}
