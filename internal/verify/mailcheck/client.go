package mailcheck

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Client is a session of a submitter with a server. It knows exactly what may have been accepted.
type Client struct {
	conn net.Conn
	in   *bufio.Reader
}

// replyTimeout bounds the wait for a reply: a daemon that waits for a database that restarts answers later.
const replyTimeout = 60 * time.Second

// Dial greets a server; nil when it takes no connection.
func Dial(ctx context.Context, address string) *Client {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil
	}
	c := &Client{conn: conn, in: bufio.NewReader(conn)}
	if c.reply() != 220 || c.command("EHLO client.out.example") != 250 {
		c.Close()
		return nil
	}
	return c
}

// Close closes the connection.
func (c *Client) Close() { _ = c.conn.Close() }

// write sends bytes, and says whether they were all handed over.
func (c *Client) write(text string) bool {
	_ = c.conn.SetDeadline(time.Now().Add(replyTimeout))
	_, err := c.conn.Write([]byte(text))
	return err == nil
}

// reply reads a reply of one or several lines; 0 when none came.
func (c *Client) reply() int {
	_ = c.conn.SetDeadline(time.Now().Add(replyTimeout))
	for {
		line, err := c.in.ReadString('\n')
		if err != nil || len(line) < 4 {
			return 0
		}
		if code, err := strconv.Atoi(line[:3]); line[3] == ' ' {
			if err != nil {
				return 0
			}
			return code
		}
	}
}

func (c *Client) command(format string, arguments ...any) int {
	if !c.write(fmt.Sprintf(format, arguments...) + "\r\n") {
		return 0
	}
	return c.reply()
}

// Manner is how a letter is sent.
type Manner int

// The manners: by DATA or BDAT, or with the connection closed before or behind the final dot.
const (
	ByData Manner = iota
	ByChunks
	CutBefore
	CutAfter
)

// Send sends a letter, and says what became of it and which recipients were taken. When isOver the connection is to be closed.
func (c *Client) Send(s Submission, letter string, how Manner) (outcome Outcome, taken []string, isOver bool) {
	if code := c.command("MAIL FROM:<%s>", s.Sender); code != 250 {
		return NotAccepted, nil, true
	}
	for _, recipient := range s.Recipients {
		switch c.command("RCPT TO:<%s>", recipient) {
		case 250:
			taken = append(taken, recipient)
		case 0, 421:
			return NotAccepted, nil, true
		}
	}
	if len(taken) == 0 {
		return NotAccepted, nil, true
	}
	if how == ByChunks {
		middle := len(letter) / 2
		if !c.write(fmt.Sprintf("BDAT %d\r\n%s", middle, letter[:middle])) || c.reply() != 250 {
			return NotAccepted, nil, true
		}
		return c.outcome(taken, fmt.Sprintf("BDAT %d LAST\r\n%s", len(letter)-middle, letter[middle:]))
	}
	if c.command("DATA") != 354 {
		return NotAccepted, nil, true
	}
	stuffed := strings.ReplaceAll(letter, "\r\n.", "\r\n..")
	if how == CutBefore {
		c.write(stuffed[:len(stuffed)/2])
		c.Close()
		return NotAccepted, nil, true
	}
	if !c.write(stuffed) {
		return NotAccepted, nil, true
	}
	if how == CutAfter {
		c.write(".\r\n")
		c.Close()
		return Unknown, taken, true
	}
	return c.outcome(taken, ".\r\n")
}

// outcome sends the end of a letter, and reads what became of it.
func (c *Client) outcome(taken []string, end string) (outcome Outcome, _ []string, isOver bool) {
	c.write(end) // A part of it may be enough: what is not known to be refused is unknown.
	switch c.reply() {
	case 250:
		return Accepted, taken, false
	case 0:
		return Unknown, taken, true
	default:
		return NotAccepted, nil, true
	}
}
