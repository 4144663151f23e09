package mailcheck

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
)

// lineMax bounds a line that a host reads, in bytes.
const lineMax = 1 << 20

// errEnd ends a session.
var errEnd = errors.New("the session is over")

// session is one connection with a host.
type session struct {
	host       *Host
	conn       net.Conn
	in         *bufio.Reader
	sender     *string
	recipients []string
	// taken are the arrivals of this connection, of which those from pending on wait to be acknowledged.
	taken   []*Arrival
	pending int
}

func newSession(host *Host, conn net.Conn) *session {
	return &session{host: host, conn: conn, in: bufio.NewReaderSize(conn, lineMax)}
}

func (s *session) run() {
	if s.fails(AtGreeting, "220 "+s.host.Name+" ESMTP") != nil {
		return
	}
	for {
		line, err := s.line()
		if err != nil {
			return
		}
		s.host.acknowledged(s.taken[s.pending:])
		s.pending = len(s.taken)
		if s.command(strings.TrimRight(string(line), "\r\n")) != nil {
			return
		}
	}
}

func (s *session) line() ([]byte, error) {
	line, err := s.in.ReadSlice('\n')
	if err != nil {
		return nil, errEnd
	}
	return line, nil
}

func (s *session) say(format string, arguments ...any) error {
	if _, err := fmt.Fprintf(s.conn, format+"\r\n", arguments...); err != nil {
		return errEnd
	}
	return nil
}

func (s *session) reset() { s.sender, s.recipients = nil, nil }

func (s *session) command(line string) error {
	verb, argument, _ := strings.Cut(line, " ")
	switch strings.ToUpper(verb) {
	case "EHLO", "LHLO":
		s.reset()
		if s.host.Bare {
			return s.say("250 %s", s.host.Name)
		}
		return s.say("250-%s\r\n250-PIPELINING\r\n250-SIZE 50000000\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES", s.host.Name)
	case "HELO":
		s.reset()
		return s.say("250 %s", s.host.Name)
	case "MAIL":
		address, ok := path(argument, "FROM:")
		if !ok {
			return s.say("501 5.5.4 Syntax error")
		}
		return s.fails(AtSender, "250 2.1.0 Ok", func() { s.sender = &address })
	case "RCPT":
		address, ok := path(argument, "TO:")
		if !ok || s.sender == nil {
			return s.say("503 5.5.1 Out of order")
		}
		return s.fails(AtRecipient, "250 2.1.5 Ok", func() { s.recipients = append(s.recipients, address) })
	case "DATA":
		return s.data()
	case "RSET":
		s.reset()
		return s.say("250 2.0.0 Ok")
	case "NOOP":
		return s.say("250 2.0.0 Ok")
	case "QUIT":
		_ = s.say("221 2.0.0 Bye")
		return errEnd
	default:
		return s.say("502 5.5.1 Not known")
	}
}

// path reads the address of a command.
func path(argument, word string) (address string, ok bool) {
	if len(argument) < len(word) || !strings.EqualFold(argument[:len(word)], word) {
		return "", false
	}
	inside, begins := strings.CutPrefix(strings.TrimSpace(argument[len(word):]), "<")
	address, _, ends := strings.Cut(inside, ">")
	return address, begins && ends
}

// fails replies to a step, or fails there. The step's work comes with the good reply only.
func (s *session) fails(step Step, reply string, done ...func()) error {
	switch fault := s.host.fault(step); fault {
	case Defer:
		return s.say("451 4.3.0 Not now")
	case Refuse:
		return s.say("554 5.7.1 Never")
	case Leave:
		_ = s.say("421 4.3.2 Leaving")
		return errEnd
	case Hang, HangTaken:
		s.host.hang()
		return errEnd
	case Drop, DropTaken:
		return errEnd
	default:
		for _, do := range done {
			do()
		}
		if err := s.say("%s", reply); err != nil || fault == Goodbye {
			return errEnd
		}
		return nil
	}
}

// data takes a message.
func (s *session) data() error {
	if s.sender == nil || len(s.recipients) == 0 {
		return s.say("503 5.5.1 Nobody to send to")
	}
	isOpen := false
	if err := s.fails(AtData, "354 Go ahead", func() { isOpen = true }); err != nil {
		return err
	}
	if !isOpen {
		s.reset()
		return nil
	}
	var message bytes.Buffer
	for {
		line, err := s.line()
		if err != nil {
			return err
		}
		if bytes.Equal(line, []byte(".\r\n")) {
			break
		}
		message.Write(bytes.TrimPrefix(line, []byte(".")))
	}
	recipients := s.recipients
	s.reset()
	if !s.host.LMTP {
		return s.end(message.Bytes(), recipients)
	}
	for _, recipient := range recipients {
		if err := s.end(message.Bytes(), []string{recipient}); err != nil {
			return err
		}
	}
	return nil
}

// end replies to a message that came whole, or fails there.
func (s *session) end(message []byte, recipients []string) error {
	fault := s.host.fault(AtEnd)
	switch fault {
	case None, Goodbye:
	case Defer:
		return s.say("452 4.3.1 No room now")
	case Refuse:
		return s.say("554 5.6.0 Not this one")
	case Leave:
		_ = s.say("421 4.3.2 Leaving")
		return errEnd
	case Drop:
		return errEnd
	case Hang:
		s.host.hang()
		return errEnd
	case DropTaken, HangTaken:
		s.taken = append(s.taken, s.host.take(message, recipients, Unanswered)...)
		if fault == HangTaken {
			s.host.hang()
		}
		return errEnd
	}
	taken := s.host.take(message, recipients, Unanswered)
	s.taken = append(s.taken, taken...)
	if err := s.say("250 2.0.0 Taken"); err != nil {
		return err
	}
	s.host.answered(taken)
	if fault == Goodbye {
		return errEnd
	}
	return nil
}
