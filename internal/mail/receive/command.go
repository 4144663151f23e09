package receive

import (
	"io"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/mail/message"
)

// handle answers a command by itself, or reports that it is for the library. A command that the library gets has its place in the order of
// commands, and an address that is one.
func (w *wire) handle(line string) (isForLibrary bool) {
	verb, argument, _ := strings.Cut(line, " ")
	verb, argument = strings.ToUpper(verb), strings.TrimSpace(argument)
	w.verb = verb
	if refusal := w.refusal(verb, argument); refusal != nil {
		w.reply(refusal)
		return false
	}
	switch verb {
	case "HELO", "EHLO":
		return w.handleHello(argument)
	case "MAIL":
		w.handlePath(argument, "FROM:", w.session.prepareMail)
	case "RCPT":
		w.handlePath(argument, "TO:", w.session.prepareRecipient)
	case "BDAT":
		w.handleChunk(argument)
	case "DATA", "AUTH", "RSET", "NOOP", "VRFY", "QUIT":
		return true
	case "HELP":
		w.reply(NewReply(214, 0, 0, "Commands: HELO EHLO MAIL RCPT DATA BDAT RSET NOOP VRFY HELP QUIT STARTTLS AUTH"))
	case "STARTTLS":
		w.startTLS(argument)
	case "XCLIENT":
		w.handleXClient(argument)
	case "EXPN", "TURN", "ETRN", "SEND", "SOML", "SAML":
		w.reply(NewReply(502, 5, 1, "The command is not implemented"))
	case "GET", "POST", "HEAD", "PUT", "CONNECT", "OPTIONS": // a browser that was made to talk to us
		w.drop("421 5.5.1 This is a mail server\r\n")
	default:
		w.reply(NewReply(500, 5, 1, "The command is unknown"))
	}
	return false
}

// refusal is the fault in the place of a command among the others.
func (w *wire) refusal(verb, argument string) *Reply {
	s := w.session
	switch verb {
	case "MAIL", "RCPT", "AUTH":
		if s.helo == "" {
			return NewReply(503, 5, 1, "Say EHLO first")
		}
		if w.connection.needsTLS() {
			return NewReply(530, 7, 0, "Say STARTTLS first")
		}
	}
	switch {
	case verb == "MAIL" && s.tx != nil:
		return NewReply(503, 5, 1, "A sender was given already")
	case verb == "RCPT" && s.tx == nil:
		return NewReply(503, 5, 1, "Say MAIL FROM first")
	case verb == "DATA" && (s.tx == nil || len(s.tx.envelope.Recipients) == 0):
		return NewReply(503, 5, 1, "There is no recipient that was accepted")
	case verb == "RCPT" || verb == "DATA":
		if s.tx.checker != nil {
			return NewReply(503, 5, 1, "The message is on its way by BDAT")
		}
	case verb == "AUTH":
		return w.connection.authRefusal(s, argument)
	case verb == "STARTTLS" || verb == "XCLIENT":
		if s.tx != nil {
			return NewReply(503, 5, 1, "Not within a mail transaction")
		}
	}
	return nil
}

func (w *wire) handleHello(name string) (isForLibrary bool) {
	if !message.IsHello(name) {
		w.reply(NewReply(501, 5, 2, "Give your name or [address]"))
		return false
	}
	w.isExtended = w.verb == "EHLO"
	w.session.helo = name
	if reply := w.connection.server.filter(w.connection.ctx, w.connection, Greeted); reply != nil {
		w.session.helo = ""
		w.reply(reply)
		return false
	}
	return true
}

// handlePath reads the path of MAIL or RCPT, which the session keeps. The library gets another one in its place, because it takes quotes
// off, and reads the parameters.
func (w *wire) handlePath(argument, keyword string, prepare func(address message.Address, parameters string) *Reply) {
	if len(argument) < len(keyword) || !strings.EqualFold(argument[:len(keyword)], keyword) {
		w.reply(NewReply(501, 5, 4, "The form is "+w.verb+" "+keyword+"<address>"))
		return
	}
	address, parameters, err := message.ParsePath(strings.TrimLeft(argument[len(keyword):], " "))
	if err != nil || parameters != "" && parameters[0] != ' ' {
		code := NewReply(501, 1, 7, "The sender is no address in angle brackets")
		if w.verb == "RCPT" {
			code = NewReply(501, 1, 3, "The recipient is no address in angle brackets")
		}
		w.reply(code)
		return
	}
	if reply := prepare(address, parameters); reply != nil {
		w.reply(reply)
		return
	}
	path := "<p@x>"
	if address.IsNull() {
		path = "<>"
	}
	w.fed = []byte(w.verb + " " + keyword + path + parameters + "\r\n")
}

// handleChunk takes a chunk of a message. A command that cannot be read ends the connection: nobody knows where the next command begins.
func (w *wire) handleChunk(argument string) {
	words := strings.Fields(argument)
	isLast := len(words) == 2 && strings.EqualFold(words[1], "LAST")
	var size uint64
	err := strconv.ErrSyntax
	if len(words) == 1 || isLast {
		size, err = strconv.ParseUint(words[0], 10, 32)
	}
	if err != nil {
		w.drop("501 5.5.4 The form is BDAT size [LAST]; closing, because the length of the chunk is not known\r\n")
		return
	}
	tx := w.session.tx
	if tx == nil || len(tx.envelope.Recipients) == 0 {
		if _, err := io.CopyN(io.Discard, w.in, int64(size)); err != nil {
			_ = w.failed(err)
			return
		}
		w.reply(NewReply(503, 5, 1, "There is no recipient that was accepted"))
		return
	}
	reply, err := tx.receiveChunk(w.in, int64(size), isLast)
	if err != nil {
		_ = w.failed(err)
		return
	}
	w.isLast = w.isLast || tx.isLast
	w.reply(reply)
	if isLast || reply.Code >= 300 { // the library knows nothing of this message
		w.session.end()
		w.fed, w.isMuted = []byte("RSET\r\n"), true
	}
}
