package receive

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/mail/message"
)

func errTooLarge() *Reply {
	return NewReply(552, 3, 4, "The message is larger than this server takes")
}

func errForeignSender() *Reply {
	return NewReply(550, 7, 1, "You may not send under this address")
}

// stricter gives the smaller of two limits, of which 0 is none.
func stricter[T int | int64](one, other T) T {
	if one == 0 || other != 0 && other < one {
		return other
	}
	return one
}

// messageBytes is the largest message of this peer, 0 without a limit: the limit of the connector or that of the organization, whichever is
// less.
func (c *connection) messageBytes() int64 {
	rights := c.rights()
	switch {
	case rights.Has(BypassSizeLimit):
		return 0
	case rights.Has(AuthenticatedFlag):
		return stricter(c.connector.Limits.MessageBytes, c.configuration.SendBytes)
	default:
		return stricter(c.connector.Limits.MessageBytes, c.configuration.ReceiveBytes)
	}
}

// limitBySender takes the limits of the directory for a sender of ours who writes from inside, and refuses a message that is too large
// already. It says how many recipients he may have instead of the organization, but how large a message may be beside it.
func (t *transaction) limitBySender(isOurs bool) *Reply {
	c := t.connection
	t.mostRecipients = c.configuration.Recipients
	if !c.rights().Has(AuthenticatedFlag) {
		return nil
	}
	if c.server.Directory == nil || !isOurs {
		return nil
	}
	bytes, recipients, err := c.server.Directory.Sender(c.ctx, t.sender)
	if err != nil {
		c.server.Log.Error("the directory cannot be asked for a sender", "error", err)
		return NewReply(451, 3, 0, "The sender cannot be looked up now, try again later")
	}
	if recipients > 0 {
		t.mostRecipients = recipients
	}
	if !c.rights().Has(BypassSizeLimit) {
		t.most = stricter(t.most, bytes)
	}
	if t.most > 0 && t.announced > t.most {
		return errTooLarge()
	}
	return nil
}

// recipientRefusal gives the reply to a recipient whom the message may not have. isUTF8: he was written in letters beyond ASCII.
func (t *transaction) recipientRefusal(recipient message.Address, isUTF8 bool) *Reply {
	c := t.connection
	isOurs := c.configuration.isAccepted(recipient.Domain)
	switch {
	case !isOurs && !c.rights().Has(AnyRecipient):
		return NewReply(550, 7, 1, "Unable to relay")
	case isUTF8 && !t.envelope.IsUTF8:
		return NewReply(553, 6, 7, "An address with characters beyond ASCII needs SMTPUTF8")
	case t.mostRecipients > 0 && len(t.envelope.Recipients) >= t.mostRecipients:
		return NewReply(550, 5, 3, "RESOLVER.ADR.RecipLimit; too many recipients")
	case !isOurs && c.connector.IsReservedRefused && !c.configuration.isRouted(recipient.Domain):
		if refusal := reservedRefusal(recipient.Domain); refusal != nil {
			return refusal
		}
	}
	if c.server.Directory == nil || !isOurs {
		return nil
	}
	asked := RecipientQuery{
		Sender: t.sender, Recipient: recipient, IsOriginating: t.envelope.Directionality == message.Originating, Size: t.announced,
	}
	if c.rights().Has(BypassSizeLimit) {
		asked.Size = 0
	}
	refusal, err := c.server.Directory.Recipient(c.ctx, asked)
	if err != nil {
		c.server.Log.Error("the directory cannot be asked for a recipient", "error", err)
		return NewReply(451, 3, 0, "The recipient cannot be looked up now, try again later")
	}
	return refusal
}

// isRouted reports whether a domain has a way of its own.
func (c *Configuration) isRouted(domain string) bool {
	return slices.ContainsFunc(c.RoutedDomains, func(pattern string) bool { return matchesDomain(pattern, domain) })
}

// reserved are the domains in which nobody has an address: those of RFC 2606 and RFC 6761.
var reserved = []string{
	"test", "*.test", "example", "*.example", "invalid", "*.invalid", "localhost", "*.localhost",
	"example.com", "*.example.com", "example.net", "*.example.net", "example.org", "*.example.org",
}

// reservedRefusal gives the reply to a recipient in a domain to which no mail can get.
func reservedRefusal(domain string) *Reply {
	switch {
	case slices.ContainsFunc(reserved, func(pattern string) bool { return matchesDomain(pattern, domain) }):
		return NewReply(550, 1, 4, "The domain of the recipient is reserved: nobody has an address there")
	case !strings.Contains(domain, ".") && !strings.HasPrefix(domain, "["):
		return NewReply(550, 1, 6, "The domain of the recipient is one word, and no mail gets there")
	}
	return nil
}

// maySendAs reports whether the peer may name an address as the author or the sender of a message. A user may by his list, or where he has
// none under the domains that are ours; a right of the connector takes the place of these. SPF, DKIM and DMARC say it for the domains of
// others.
func (c *connection) maySendAs(sender message.Address) bool {
	if c.user == "" || len(c.configuration.Users[c.user].Senders) == 0 && c.rights().Has(AnySender) {
		return true
	}
	return c.configuration.MaySendAs(c.user, sender)
}

// authorRefusal gives the reply to a message of a user whose header names an author or a sender that he may not use.
func (t *transaction) authorRefusal() *Reply {
	c := t.connection
	if c.user == "" || len(c.configuration.Users[c.user].Senders) == 0 && c.rights().Has(AnySender) {
		return nil
	}
	// A group without members is an author to nobody, and its name is shown as one.
	authors, err := t.header.Authors()
	named, other := t.header.Named()
	if err != nil || other != nil || len(authors) == 0 {
		return NewReply(550, 7, 1, "From is missing, or it, Sender or a Resent- field has no address that can be read")
	}
	if slices.ContainsFunc(named, func(one message.Address) bool { return !c.maySendAs(one) }) {
		return errForeignSender()
	}
	return nil
}
