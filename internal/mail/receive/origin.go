package receive

import (
	"github.com/parley-broker/parley/internal/mail/authenticity"
	"github.com/parley-broker/parley/internal/mail/message"
)

// verifySender refuses at MAIL a peer that SPF does not allow to use the sender, where the connector says so.
func (t *transaction) verifySender() *Reply {
	c := t.connection
	if c.server.Verifier == nil || c.connector.Checks.SPF != authenticity.Enforce || c.rights().Has(BypassFilters) {
		return nil
	}
	verdict := c.server.Verifier.VerifySender(c.ctx, authenticity.Message{
		Peer: c.peer.Addr(), Helo: t.helo, Sender: t.sender.String(), Checks: c.connector.Checks,
	})
	t.spf = &verdict
	switch {
	case verdict.IsRefused:
		return NewReply(550, 7, 23, "SPF: this host may not send mail of this sender")
	case verdict.IsDeferred:
		return NewReply(451, 7, 24, "SPF: DNS does not say whether this host may send mail of this sender, try again later")
	}
	return nil
}

// verify has SPF, DKIM and DMARC verified, before anything of the message is changed.
func (t *transaction) verify() {
	c := t.connection
	fqdn := c.connector.FQDN
	isOff := c.connector.Checks == authenticity.Checks{SPF: authenticity.Off, DKIM: authenticity.Off, DMARC: authenticity.Off}
	if c.server.Verifier == nil || isOff || c.rights().Has(BypassFilters) {
		t.header = t.header.WithoutResults(t.ownNames()...)
		return
	}
	verdict := c.server.Verifier.Verify(c.ctx, authenticity.Message{
		Peer: c.peer.Addr(), Helo: t.helo, Sender: t.sender.String(), Identity: fqdn, Header: t.header, Body: t.body.Tail,
		Checks: c.connector.Checks, SPF: t.spf,
	})
	switch {
	case verdict.IsDeferred:
		t.refuse(NewReply(451, 7, 1, verdict.Reason))
	case verdict.IsRefused:
		t.refuse(NewReply(550, 7, 1, verdict.Reason))
	}
	t.envelope.Verdicts = verdict.Results
	if verdict.Quarantine != "" {
		t.envelope.Quarantine = verdict.Quarantine
	}
	t.header = append(message.Header{verdict.Field}, t.header.WithoutResults(t.ownNames()...)...)
}

// ownNames are the names under which nobody but we says what was verified. Our own nodes may say it to each other.
func (t *transaction) ownNames() []string {
	c := t.connection
	names := []string{c.connector.FQDN}
	if c.rights().Has(AcceptOrganizationHeaders) {
		return names
	}
	return append(names, c.server.configuration.Load().Names...)
}
