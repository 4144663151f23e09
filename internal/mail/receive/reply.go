package receive

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// Write takes what the library replies, and passes on whole replies.
func (w *wire) Write(p []byte) (int, error) {
	if w.isOver() {
		return len(p), nil
	}
	w.partial = append(w.partial, p...)
	for {
		end := replyEnd(w.partial)
		if end < 0 {
			return len(p), nil
		}
		reply := w.partial[:end]
		w.libraryReply(reply)
		w.partial = append(w.partial[:0], w.partial[end:]...)
	}
}

// replyEnd gives the length of the reply that data begins with, or -1 where it is not complete.
func replyEnd(data []byte) int {
	at := 0
	for {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			return -1
		}
		if line := data[at : at+i+1]; len(line) < 4 || line[3] != '-' {
			return at + i + 1
		}
		at += i + 1
	}
}

// successTexts replace the texts and codes that the library has for commands that succeeded.
var successTexts = map[string]string{
	"MAIL 250": "250 2.1.0 Sender accepted", "RCPT 250": "250 2.1.5 Recipient accepted", "RSET 250": "250 2.0.0 Reset",
	"NOOP 250": "250 2.0.0 OK", "QUIT 221": "221 2.0.0 Closing", "AUTH 235": "235 2.7.0 Authenticated",
	"VRFY 252": "252 2.5.0 Recipients are verified at RCPT TO",
}

// libraryReply passes on a reply of the library, in our words where it has its own.
func (w *wire) libraryReply(reply []byte) {
	code := 0
	if len(reply) >= 3 {
		code, _ = strconv.Atoi(string(reply[:3]))
	}
	switch {
	case w.isMuted:
		w.isMuted = false
		return
	case code == 220 && w.verb == "":
		w.greet()
		return
	case code == 250 && (w.verb == "EHLO" || w.verb == "HELO"):
		w.hello()
		return
	case code == 354:
		w.mode = readingData
	case code == 334:
		w.mode = readingAuth
	case w.verb == "AUTH":
		w.mode = readingCommands
		if code == 454 && bytes.Contains(reply, []byte("base64")) {
			w.reply(NewReply(501, 5, 2, "The response is no base64"))
			return
		}
		if code == 235 {
			w.session.authenticated()
		}
	}
	if text := successTexts[w.verb+" "+strconv.Itoa(code)]; text != "" {
		reply = []byte(text + "\r\n")
	}
	w.finish(code, bytes.Clone(reply))
}

// reply answers by ourselves.
func (w *wire) reply(r *Reply) {
	var text strings.Builder
	lines := strings.Split(r.Message, "\n")
	for i, line := range lines {
		separator := byte('-')
		if i == len(lines)-1 {
			separator = ' '
		}
		e := r.EnhancedCode
		fmt.Fprintf(&text, "%d%c%d.%d.%d %s\r\n", r.Code, separator, e[0], e[1], e[2], printableLine(line))
	}
	w.finish(r.Code, []byte(text.String()))
}

// printableLine takes out of a text what would end the line of a reply.
func printableLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}

// finish counts a reply, delays it where the peer is to wait, and puts it where the next read sends it.
func (w *wire) finish(code int, reply []byte) {
	c := w.connection
	c.trace("reply", reply)
	isProtocolError := code >= 500 && code <= 504 || code == 555
	if isProtocolError {
		c.protocolErrors++
	}
	isAuthFailure := code == 535
	if isAuthFailure {
		c.failedAuth++
		c.server.accounts.authFailed(c.connector.Limits, c.source, c.attempted, time.Now())
	}
	if code >= 500 && c.user == "" && c.connector.Limits.Tarpit > 0 && !c.isTrusted() {
		c.server.counters.Tarpitted.Add(1)
		w.wait(c.connector.Limits.Tarpit)
	}
	w.out = append(w.out, reply...)
	l := c.connector.Limits
	switch {
	case l.ProtocolErrors > 0 && c.protocolErrors >= l.ProtocolErrors:
		w.drop("421 4.7.0 Too many errors, closing\r\n")
	case l.FailedAuth > 0 && c.failedAuth >= l.FailedAuth:
		w.drop("421 4.7.0 Too many failed authentications, closing\r\n")
	case w.isLast:
		w.drop("")
	case len(w.out) > 4096:
		w.flush()
	}
}

// wait sends what is to be sent and pauses, unless the server stops.
func (w *wire) wait(pause time.Duration) {
	if pause <= 0 {
		return
	}
	w.flush()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.connection.ctx.Done():
	}
}

// drop ends the connection with a last reply.
func (w *wire) drop(last string) {
	w.out = append(w.out, last...)
	w.flush()
	w.state.CompareAndSwap(stateOpen, stateOver)
}

func (w *wire) flush() {
	if len(w.out) == 0 || w.isOver() {
		return
	}
	c := w.connection
	_ = c.socket.SetWriteDeadline(time.Now().Add(orForever(c.connector.Limits.InactivityTimeout)))
	if _, err := c.socket.Write(w.out); err != nil {
		w.state.CompareAndSwap(stateOpen, stateOver)
	}
	w.out = w.out[:0]
}

func orForever(timeout time.Duration) time.Duration {
	if timeout == 0 {
		return 24 * time.Hour
	}
	return timeout
}

// greet sends the banner, but not after STARTTLS.
func (w *wire) greet() {
	if w.isSilent {
		return
	}
	c := w.connection
	text := c.connector.Banner
	if text == "" {
		text = c.connector.FQDN + " ESMTP"
	}
	if reply := c.server.filter(c.ctx, c, Connected); reply != nil {
		w.isLast = true
		w.reply(reply)
		return
	}
	w.finish(220, []byte("220 "+printableLine(text)+"\r\n"))
}

// hello answers HELO and EHLO.
func (w *wire) hello() {
	c := w.connection
	if w.verb == "HELO" {
		w.finish(250, []byte("250 "+c.connector.FQDN+"\r\n"))
		return
	}
	lines := []string{
		c.connector.FQDN, "PIPELINING", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES", "DSN", "CHUNKING", "HELP",
	}
	l := c.connector.Limits
	switch {
	case l.IsSizeOff:
	case c.messageBytes() == 0 || l.IsSizeUnadvertised:
		lines = append(lines, "SIZE")
	default:
		lines = append(lines, "SIZE "+strconv.FormatInt(c.messageBytes(), 10))
	}
	if l.Recipients > 0 {
		lines = append(lines, "LIMITS RCPTMAX="+strconv.Itoa(l.Recipients))
	}
	if w.offersTLS() {
		lines = append(lines, "STARTTLS")
	}
	if mechanisms := c.mechanisms(); len(mechanisms) > 0 {
		lines = append(lines, "AUTH "+strings.Join(mechanisms, " "))
	}
	if c.maySayXClient() {
		lines = append(lines, "XCLIENT NAME ADDR PORT HELO LOGIN PROTO")
	}
	for i, line := range lines {
		separator := "-"
		if i == len(lines)-1 {
			separator = " "
		}
		lines[i] = "250" + separator + line + "\r\n"
	}
	w.finish(250, []byte(strings.Join(lines, "")))
}

// trace logs a line of the protocol where the connector is to.
func (c *connection) trace(what string, line []byte) {
	if c.connector.IsVerbose {
		if what == "command" && len(line) > 5 && bytes.EqualFold(line[:5], []byte("AUTH ")) {
			line = []byte("AUTH ...") // what stands behind the mechanism is a secret
		}
		c.server.Log.LogAttrs(c.ctx, levelProtocol, "smtp", slog.String("kind", what), c.attribute(), textAttribute(line))
	}
}
