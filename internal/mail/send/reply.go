package send

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

const (
	// maximumReplyLine and maximumReplyLines bound what a host may answer to one command, in bytes and lines.
	maximumReplyLine, maximumReplyLines = 4096, 200
	// maximumText bounds what of a reply is kept.
	maximumText = 1000
)

// reply is the answer of a host to a command.
type reply struct {
	code  int
	lines []string
}

// replyError is a reply other than the one a command needs.
type replyError struct{ reply }

func (e *replyError) Error() string {
	return fmt.Sprintf("%d %s", e.code, oneLine(strings.Join(e.lines, " ")))
}

// enhancedCode is a status code of RFC 3463 at the beginning of a line.
var enhancedCode = regexp.MustCompile(`^([245]\.[0-9]{1,3}\.[0-9]{1,3})(?: |$)`)

// enhanced is the enhanced code of a reply. A reply that has none, or one of another class, gets the general code of its class.
func (r reply) enhanced() string {
	code := fmt.Sprintf("%d.0.0", r.code/100)
	for _, line := range r.lines {
		if found := enhancedCode.FindStringSubmatch(line); len(found) > 1 && int(found[1][0]-'0') == r.code/100 {
			code = found[1]
		}
	}
	return code
}

// text is a reply as it was received, on one line: reports repeat it so (RFC 3464 section 2.3.6).
func (r reply) text() string { return oneLine(strings.Join(r.lines, " ")) }

// readReply reads one reply, of one line or several.
func readReply(reader *bufio.Reader) (reply, error) {
	var result reply
	for range maximumReplyLines {
		line, err := reader.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return reply{}, fmt.Errorf("the host answered with a line of more than %d bytes", reader.Size())
		}
		if err != nil {
			return reply{}, fmt.Errorf("read a reply: %w", err)
		}
		line = bytes.TrimRight(line, "\r\n")
		code, more, ok := replyLine(line)
		if !ok || (result.code != 0 && code != result.code) {
			return reply{}, fmt.Errorf("the host answered %q, which is no reply", oneLine(string(line)))
		}
		result.code = code
		if len(line) > 4 {
			result.lines = append(result.lines, string(line[4:]))
		}
		if !more {
			return result, nil
		}
	}
	return reply{}, fmt.Errorf("the host answered with more than %d lines", maximumReplyLines)
}

// replyLine reads the code of a line, and whether others follow it.
func replyLine(line []byte) (code int, more, ok bool) {
	if len(line) < 3 || line[0] < '2' || line[0] > '5' || (len(line) > 3 && line[3] != ' ' && line[3] != '-') {
		return 0, false, false
	}
	for _, digit := range line[:3] {
		if digit < '0' || digit > '9' {
			return 0, false, false
		}
		code = code*10 + int(digit-'0')
	}
	return code, len(line) > 3 && line[3] == '-', true
}

// oneLine makes a text of several lines one, without what a log or a header cannot bear.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maximumText {
		text = strings.ToValidUTF8(text[:maximumText], "")
	}
	return text
}
