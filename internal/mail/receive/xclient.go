package receive

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/mail/message"
)

// maySayXClient reports whether the peer may speak for another host.
func (c *connection) maySayXClient() bool {
	return contains(c.connector.XClientRange, c.peer.Addr())
}

// handleXClient takes what a proxy says of the client that it speaks for, and begins the session anew, as Postfix does.
func (w *wire) handleXClient(argument string) {
	c := w.connection
	if !c.maySayXClient() {
		w.reply(NewReply(550, 7, 0, "This peer may not say XCLIENT"))
		return
	}
	spoken := client{peer: c.peer, user: c.user}
	for attribute := range strings.FieldsSeq(argument) {
		if !spoken.set(attribute) {
			w.reply(NewReply(501, 5, 4, "XCLIENT has an attribute that cannot be read"))
			return
		}
	}
	peer, name := spoken.peer, spoken.name
	connector := c.configuration.match(c.binding, peer.Addr())
	if connector == nil {
		w.drop("550 5.7.0 Nobody listens to this client\r\n")
		return
	}
	source := sourceOf(peer.Addr())
	c.server.accounts.move(c.connector, c.source, connector, source)
	c.peer, c.source, c.connector, c.user, c.peerName, c.hasPeerName = peer, source, connector, spoken.user, name, name != ""
	c.closeFilters()
	c.filters, c.exchange, c.isSilent = nil, nil, false
	c.protocolErrors, c.failedAuth = 0, 0
	w.state.CompareAndSwap(stateOpen, stateHanded)
}

// client is the content of XCLIENT.
type client struct {
	peer       netip.AddrPort
	name, user string
}

// set takes an attribute, and reports whether it can be read.
func (c *client) set(attribute string) bool {
	key, text, _ := strings.Cut(attribute, "=")
	value, isValid := message.DecodeXText(text)
	if !isValid {
		return false
	}
	if value == "[UNAVAILABLE]" || value == "[TEMPUNAVAIL]" {
		value = ""
	}
	switch strings.ToUpper(key) {
	case "ADDR":
		if prefix, isLiteral := cutPrefixFold(value, "IPv6:"); isLiteral {
			value = prefix
		}
		ip, err := netip.ParseAddr(value)
		if err == nil {
			c.peer = netip.AddrPortFrom(ip.Unmap().WithZone(""), c.peer.Port())
		}
		return err == nil || value == ""
	case "PORT":
		port, err := strconv.ParseUint(value, 10, 16)
		c.peer = netip.AddrPortFrom(c.peer.Addr(), uint16(port))
		return err == nil || value == ""
	case "NAME":
		c.name = value
		return value == "" || message.IsDomain(value)
	case "HELO": // EHLO says it again
		return value == "" || message.IsHello(value)
	case "LOGIN":
		c.user = value
		return true
	case "PROTO", "DESTADDR", "DESTPORT":
		return true
	}
	return false
}
