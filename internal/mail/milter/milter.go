// Package milter asks filters that speak the milter protocol about the sessions of receive connectors.
package milter

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/emersion/go-milter"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// Filter is a milter.
type Filter struct {
	Name             string
	Network, Address string // tcp and host:port, or unix and a path
	Timeout          time.Duration
	// Default is the fate of messages while the milter is out of reach, or fails; nothing means TempFail.
	Default Default
	Log     *slog.Logger
	// Dial connects; nil means that of the network.
	Dial func(ctx context.Context, dialer *net.Dialer, network, address string) (net.Conn, error)

	isOld atomic.Bool // the milter speaks an old version of the protocol, which cannot change the sender
}

// Default is the fate of messages without their milter.
type Default string

// The fates of messages without their milter.
const (
	TempFail   Default = "TEMPFAIL"
	Reject     Default = "REJECT"
	Accept     Default = "ACCEPT"
	Quarantine Default = "QUARANTINE"
)

// New gives a filter that is ready to be used.
func New(name, network, address string, timeout time.Duration, without Default, log *slog.Logger) *Filter {
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	return &Filter{Name: name, Network: network, Address: address, Timeout: timeout, Default: without, Log: log}
}

// actions are the actions that a milter may take.
const actions = milter.OptAddHeader | milter.OptAddRcpt |
	milter.OptRemoveRcpt | milter.OptChangeBody | milter.OptChangeHeader | milter.OptQuarantine

// Session connects to the milter for one session.
func (f *Filter) Session(ctx context.Context) (receive.FilterSession, error) {
	s, err := f.connect(ctx)
	if errors.Is(err, milter.ErrUnsupportedMilterVersion) && f.isOld.CompareAndSwap(false, true) {
		s, err = f.connect(ctx)
	}
	if err != nil {
		f.Log.Warn("a milter is out of reach", "milter", f.Name, "address", f.Address, "messages", cmp.Or(f.Default, TempFail), "error", err)
		return &session{filter: f, isBroken: true}, nil
	}
	return &session{filter: f, milter: s}, nil
}

// dialer connects, and keeps the connection: the library leaves it open when the milter does not agree with it.
type dialer struct {
	ctx     context.Context //nolint:containedctx // the library passes none
	timeout time.Duration
	filter  *Filter
	conn    net.Conn
}

func (d *dialer) Dial(network, address string) (conn net.Conn, err error) {
	dialer := &net.Dialer{Timeout: d.timeout}
	if d.filter.Dial != nil {
		d.conn, err = d.filter.Dial(d.ctx, dialer, network, address)
	} else {
		d.conn, err = dialer.DialContext(d.ctx, network, address)
	}
	return d.conn, err
}

func (f *Filter) connect(ctx context.Context) (*milter.ClientSession, error) {
	mask := actions | milter.OptChangeFrom
	if f.isOld.Load() {
		mask = actions
	}
	d := &dialer{ctx: ctx, timeout: f.Timeout, filter: f}
	s, err := milter.NewClientWithOptions(f.Network, f.Address, milter.ClientOptions{
		Dialer: d, ReadTimeout: f.Timeout, WriteTimeout: f.Timeout, ActionMask: mask,
	}).Session()
	if err != nil && d.conn != nil {
		_ = d.conn.Close()
	}
	return s, err
}

// session is one session with a milter.
type session struct {
	filter    *Filter
	milter    *milter.ClientSession
	isOut     bool // the milter wants nothing more of this session
	isMailOut bool // nor of this message
	inMail    bool
	isBroken  bool
}

// Handle passes an event on.
func (s *session) Handle(_ context.Context, event receive.Event, e *receive.Exchange) receive.Verdict {
	verdict := s.handle(event, e)
	verdict.Filter = s.filter.Name
	return verdict
}

func (s *session) handle(event receive.Event, e *receive.Exchange) receive.Verdict {
	if s.isBroken {
		return s.broken(event)
	}
	if s.isOut {
		return receive.Verdict{}
	}
	verdict, err := s.pass(event, e)
	if err != nil {
		s.isBroken = true
		s.filter.Log.Error("a milter failed", "milter", s.filter.Name, "error", err)
		return s.broken(event)
	}
	return verdict
}

// broken is the verdict on events behind a failure. A message that was refused at MAIL has no more of them, and any other goes through all.
func (s *session) broken(event receive.Event) receive.Verdict {
	if event < receive.SenderGiven || event > receive.BeforeQueue {
		return receive.Verdict{}
	}
	switch s.filter.Default {
	case Accept:
		return receive.Verdict{}
	case Quarantine:
		return receive.Verdict{Action: receive.Quarantine, Reason: "the filter " + s.filter.Name + " is out of reach"}
	case Reject:
		return receive.Verdict{Action: receive.Refuse, Reply: receive.NewReply(550, 7, 1, "A filter failed")}
	default:
		return receive.Verdict{Action: receive.Refuse, Reply: receive.NewReply(451, 7, 1, "A filter failed, try again later")}
	}
}

func (s *session) pass(event receive.Event, e *receive.Exchange) (receive.Verdict, error) {
	switch event {
	case receive.Connected:
		return s.connected(e)
	case receive.Greeted:
		return s.decide(event)(s.milter.Helo(e.Helo))
	case receive.SenderGiven:
		s.isMailOut, s.inMail = false, true
		if err := s.milter.Macros(milter.CodeMail, "i", e.Envelope.NetworkMessageID, "{auth_authen}", e.AuthenticatedAs,
			"{mail_addr}", e.Envelope.Sender); err != nil {
			return receive.Verdict{}, err
		}
		return s.decide(event)(s.milter.Mail(e.Envelope.Sender, nil))
	case receive.RecipientGiven:
		if s.isMailOut {
			return receive.Verdict{}, nil
		}
		if err := s.milter.Macros(milter.CodeRcpt, "{rcpt_addr}", e.Recipient.Address); err != nil {
			return receive.Verdict{}, err
		}
		return s.decide(event)(s.milter.Rcpt(e.Recipient.Address, nil))
	case receive.DataEnded:
		if s.isMailOut {
			return receive.Verdict{}, nil
		}
		s.inMail = false
		return s.content(e)
	case receive.Aborted:
		if !s.inMail || s.isMailOut {
			return receive.Verdict{}, nil
		}
		s.inMail = false
		return receive.Verdict{}, s.milter.Abort()
	case receive.TLSStarted, receive.Authenticated, receive.DataBegins, receive.HeaderEnded, receive.BeforeQueue, receive.Disconnected:
	}
	return receive.Verdict{}, nil
}

func (s *session) connected(e *receive.Exchange) (receive.Verdict, error) {
	family := milter.FamilyInet
	if e.Peer.Addr().Is6() {
		family = milter.FamilyInet6
	}
	if err := s.milter.Macros(milter.CodeConn, "j", e.FQDN, "{daemon_name}", e.Connector, "v", "Parley"); err != nil {
		return receive.Verdict{}, err
	}
	name := e.PeerName
	if name == "" {
		name = "[" + e.Peer.Addr().String() + "]"
	}
	return s.decide(receive.Connected)(s.milter.Conn(name, family, e.Peer.Port(), e.Peer.Addr().String()))
}

// decide turns what a milter says to an event into a verdict.
func (s *session) decide(event receive.Event) func(*milter.Action, error) (receive.Verdict, error) {
	return func(action *milter.Action, err error) (receive.Verdict, error) {
		if err != nil {
			return receive.Verdict{}, err
		}
		isAboutRecipient := event == receive.RecipientGiven
		switch action.Code {
		case milter.ActContinue, milter.ActSkip:
		case milter.ActAccept:
			s.isMailOut = true
			s.isOut = event < receive.SenderGiven
		case milter.ActDiscard:
			s.isMailOut = true
			return receive.Verdict{Action: receive.Discard}, nil
		case milter.ActReject:
			s.isMailOut = !isAboutRecipient
			return receive.Verdict{Action: receive.Refuse, Reply: receive.NewReply(550, 7, 1, "Refused by a filter")}, nil
		case milter.ActTempFail:
			s.isMailOut = !isAboutRecipient
			return receive.Verdict{Action: receive.Refuse, Reply: receive.NewReply(451, 7, 1, "Deferred by a filter, try again later")}, nil
		case milter.ActReplyCode:
			s.isMailOut = !isAboutRecipient
			return receive.Verdict{Action: receive.Refuse, Reply: reply(action.SMTPCode, action.SMTPText)}, nil
		}
		return receive.Verdict{}, nil
	}
}

// reply gives a reply in the words of a milter, whose text may begin with an enhanced code of the same class.
func reply(code int, text string) *receive.Reply {
	if code < 400 || code > 599 {
		return receive.NewReply(451, 7, 1, "A filter gave a reply that is none, try again later")
	}
	enhanced := receive.NewReply(code, 7, 1, text)
	first, rest, _ := strings.Cut(text, " ")
	if parts := strings.Split(first, "."); len(parts) == 3 && parts[0] == strconv.Itoa(code/100) {
		subject, err := strconv.Atoi(parts[1])
		detail, err2 := strconv.Atoi(parts[2])
		if err == nil && err2 == nil {
			return receive.NewReply(code, subject, detail, rest)
		}
	}
	return enhanced
}

// content passes header and body on, and applies what the milter wants changed.
func (s *session) content(e *receive.Exchange) (receive.Verdict, error) {
	for _, field := range e.Header {
		action, err := s.milter.HeaderField(field.Name, strings.ReplaceAll(field.Unfolded(), "\r\n", "\n"))
		if verdict, err := s.decide(receive.DataEnded)(action, err); err != nil || s.isMailOut {
			return verdict, err
		}
	}
	action, err := s.milter.HeaderEnd()
	if verdict, err := s.decide(receive.DataEnded)(action, err); err != nil || s.isMailOut {
		return verdict, err
	}
	changes, action, err := s.body(e.Body.Tail())
	verdict, err := s.decide(receive.DataEnded)(action, err)
	if err != nil || verdict.Action != receive.Continue {
		return verdict, err
	}
	return s.change(e, changes)
}

// body passes a body on. The chunks are whole, as few as there can be.
func (s *session) body(r io.Reader) (changes []milter.ModifyAction, action *milter.Action, err error) {
	chunk := make([]byte, milter.MaxBodyChunk)
	for {
		n, readErr := io.ReadFull(r, chunk)
		if n > 0 {
			action, err := s.milter.BodyChunk(chunk[:n])
			if err != nil || action.Code != milter.ActContinue && action.Code != milter.ActSkip {
				return nil, action, err
			}
			if action.Code == milter.ActSkip {
				break
			}
		}
		if errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF) {
			break
		}
		if readErr != nil {
			return nil, nil, readErr
		}
	}
	return s.milter.End()
}

// Close ends the session with the milter.
func (s *session) Close() {
	if s.milter == nil {
		return
	}
	if err := s.milter.Close(); err != nil && !s.isBroken {
		s.filter.Log.Debug("closing a milter session failed", "milter", s.filter.Name, "error", err)
	}
}
