package receive

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/parley-broker/parley/internal/mail/message"
)

// session answers the questions of the library about the commands of one wire.
type session struct {
	wire *wire
	helo string
	tx   *transaction
	// The address of the command that is being handled, as the wire has read it: the library takes the quotes off a local part.
	path      message.Address // with its domain in ASCII
	isUTF8    bool            // it was written in other letters
	announced int64           // SIZE of MAIL
}

func newSession(w *wire) *session { return &session{wire: w} }

// Reset drops the message under way.
func (s *session) Reset() {
	if s.tx != nil && !s.tx.isFinished && len(s.wire.connection.filters) > 0 {
		s.wire.connection.server.announce(s.wire.connection.ctx, s.wire.connection, Aborted)
	}
	s.end()
}

// end forgets the message under way.
func (s *session) end() {
	if s.tx != nil {
		s.tx.close()
	}
	s.tx = nil
}

// Logout is called when the library is done with the wire.
func (s *session) Logout() error {
	s.Reset()
	return nil
}

// prepareMail decides what the parameters of MAIL do not change.
func (s *session) prepareMail(address message.Address, parameters string) *Reply {
	s.announced = 0
	if !s.setPath(address) {
		return NewReply(553, 1, 7, "The domain of the sender cannot be written in ASCII")
	}
	limit := s.wire.connection.messageBytes()
	for parameter := range strings.FieldsSeq(parameters) {
		digits, isSize := cutPrefixFold(parameter, "SIZE=")
		if !isSize {
			continue
		}
		size, err := strconv.ParseUint(digits, 10, 63)
		if err != nil {
			return NewReply(501, 5, 4, "SIZE is a number")
		}
		if s.announced = int64(size); limit > 0 && s.announced > limit {
			return errTooLarge()
		}
	}
	if !s.wire.isExtended && strings.TrimSpace(parameters) != "" {
		return NewReply(501, 5, 4, "Parameters need EHLO")
	}
	if address.Domain == "" && !address.IsNull() {
		return NewReply(501, 1, 7, "The sender has no domain")
	}
	return nil
}

func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return "", false
	}
	return text[len(prefix):], true
}

// Mail decides about a sender.
func (s *session) Mail(_ string, options *smtp.MailOptions) error {
	c := s.wire.connection
	rights := c.rights()
	sender := s.path
	isOurs := !sender.IsNull() && c.configuration.isAccepted(sender.Domain)
	if refusal := c.senderRefusal(rights, sender, isOurs); refusal != nil {
		return refusal
	}
	if refusal := c.userRefusal(); refusal != nil {
		return refusal
	}
	if s.isUTF8 && !options.UTF8 {
		return NewReply(553, 6, 7, "An address with characters beyond ASCII needs SMTPUTF8")
	}
	if !c.server.accounts.message(c.connector, c.source, c.user, c.configuration.Users[c.user].MessagesPerMinute, time.Now()) {
		return NewReply(450, 7, 1, "Too many messages in this minute, try again later")
	}
	if refusal := c.pressure(c.ctx, isOurs); refusal != nil {
		return refusal
	}
	now := time.Now()
	directionality := message.Incoming
	if rights.Has(AuthenticatedFlag) {
		directionality = message.Originating
	}
	tx := &transaction{
		connection: c, helo: s.helo, isExtended: s.wire.isExtended, sender: sender,
		announced: s.announced, most: c.messageBytes(),
		envelope: message.Envelope{
			NetworkMessageID: message.NewNetworkMessageID(now), Sender: sender.String(),
			Return: string(options.Return), EnvelopeID: options.EnvelopeID,
			IsUTF8: options.UTF8, BodyType: message.BodyType(options.Body), ReceivedAt: now, Source: message.SourceSMTP,
			Connector: c.connector.Name, Peer: c.peer.Addr(), Local: c.local.Addr(), Helo: s.helo, AuthenticatedAs: c.user,
			Directionality: directionality,
		},
	}
	if refusal := tx.limitBySender(isOurs); refusal != nil {
		return refusal
	}
	if reply, verdict := c.server.filterWith(c.ctx, c, SenderGiven, tx); reply != nil {
		s.disconnectIf(verdict)
		return reply
	}
	if refusal := tx.verifySender(); refusal != nil {
		return refusal
	}
	s.tx = tx
	return nil
}

// disconnectIf ends the connection behind the reply, where a filter wants that.
func (s *session) disconnectIf(verdict Verdict) {
	if verdict.Action == Disconnect {
		s.wire.isLast = true
	}
}

// senderRefusal gives the reply to a sender whom the peer may not use.
func (c *connection) senderRefusal(rights Rights, sender message.Address, isOurs bool) *Reply {
	switch {
	case c.connector.TLS == TLSMutual && !c.isPartner():
		return NewReply(550, 7, 1, "This connector needs a client certificate of a partner")
	case !rights.Has(Submit) && c.user == "" && len(c.connector.Mechanisms) > 0:
		return NewReply(530, 7, 0, "Authenticate first")
	case !rights.Has(Submit):
		return NewReply(550, 7, 1, "This peer may not submit mail here")
	case sender.IsNull():
		return nil
	case isOurs && !rights.Has(AuthoritativeSender):
		return NewReply(550, 7, 1, "This peer may not send under a domain of ours")
	case c.user == "" && !isOurs && !rights.Has(AnySender):
		return NewReply(550, 7, 1, "The domain of the sender is none of ours")
	case !c.maySendAs(sender):
		return errForeignSender()
	}
	return nil
}

// setPath keeps the address of a command, and reports whether it has a domain that can be one.
func (s *session) setPath(address message.Address) bool {
	var err error
	s.isUTF8 = !address.IsASCII()
	s.path, err = address.Canonical()
	return err == nil
}

// prepareRecipient decides what the parameters of RCPT do not change.
func (s *session) prepareRecipient(address message.Address, parameters string) *Reply {
	if !s.setPath(address) {
		return NewReply(553, 1, 3, "The domain of the recipient cannot be written in ASCII")
	}
	switch {
	case address.IsNull():
		return NewReply(501, 1, 3, "A recipient is needed")
	case !s.wire.isExtended && strings.TrimSpace(parameters) != "":
		return NewReply(501, 5, 4, "Parameters need EHLO")
	}
	return nil
}

// Rcpt decides about a recipient.
func (s *session) Rcpt(_ string, options *smtp.RcptOptions) error {
	c, tx := s.wire.connection, s.tx
	recipient := s.path
	if recipient.Domain == "" { // <Postmaster>
		recipient.Domain = c.connector.FQDN
		if len(c.configuration.AcceptedDomains) > 0 {
			recipient.Domain = strings.TrimPrefix(c.configuration.AcceptedDomains[0], "*.")
		}
	}
	if most := c.connector.Limits.Recipients; most > 0 && len(tx.envelope.Recipients) >= most {
		return NewReply(452, 5, 3, "Too many recipients: send the message to the others by itself")
	}
	if refusal := tx.recipientRefusal(recipient, s.isUTF8); refusal != nil {
		return refusal
	}
	given := message.Recipient{Address: recipient.String(), Notify: notifyText(options.Notify)}
	if options.OriginalRecipient != "" {
		given.Original = strings.ToLower(string(options.OriginalRecipientType)) + ";" + options.OriginalRecipient
	}
	if c.exchange != nil {
		c.exchange.Recipient = &given
	}
	if reply, verdict := c.server.filterWith(c.ctx, c, RecipientGiven, tx); reply != nil {
		s.disconnectIf(verdict)
		return reply
	}
	tx.envelope.Recipients = append(tx.envelope.Recipients, given)
	return nil
}

func notifyText(notify []smtp.DSNNotify) string {
	words := make([]string, len(notify))
	for i, word := range notify {
		words[i] = string(word)
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}

// Data receives the message. The library's reader has nothing of it: the wire reads the data by itself.
func (s *session) Data(io.Reader) error {
	reply, err := s.tx.receiveData(s.wire)
	if err != nil {
		return err
	}
	return reply
}
