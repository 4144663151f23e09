package receive

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// connection is a socket from its beginning to its end. Wires come and go on it: one until STARTTLS or XCLIENT, and another one behind it,
// so that nothing of what was said before is left.
type connection struct {
	server        *Server
	ctx           context.Context //nolint:containedctx // it is that of the connection, and the library passes none
	untilStop     context.Context //nolint:containedctx // cancelled when the server stops
	configuration *Configuration
	connector     *Connector
	socket        net.Conn
	binding       netip.AddrPort // of the configuration
	peer, local   netip.AddrPort
	source        netip.Prefix
	began         time.Time
	deadline      time.Time
	tls           *tls.ConnectionState
	user          string
	claimed       string // the user whom an authentication under way is about
	attempted     string // the same before it has succeeded; "" where it has not got so far
	peerName      string
	hasPeerName   bool
	filters       []FilterSession
	exchange      *Exchange // of the filters

	protocolErrors, failedAuth int
	isSilent                   bool // the next wire sends no banner

	mu        sync.Mutex
	isWaiting bool
	isStopped bool
}

// run serves the wires of a connection, one after the other.
func (c *connection) run() {
	if c.connector.Implicit && !c.handshake() {
		return
	}
	defer c.closeFilters()
	for {
		w := newWire(c, c.isSilent)
		c.server.wires <- w
		<-w.done
		if w.state.Load() != stateHanded {
			return
		}
	}
}

// read reads from the network, no longer than until the line has to be complete, the peer has been silent too long or the connection is too
// old.
func (c *connection) read(p []byte, lineEnds time.Time) (int, error) {
	deadline := lineEnds
	isIdle := !deadline.IsZero()
	if !isIdle {
		deadline = time.Now().Add(orForever(c.connector.Limits.InactivityTimeout))
	}
	if !c.deadline.IsZero() && c.deadline.Before(deadline) {
		deadline = c.deadline
	}
	c.mu.Lock()
	c.isWaiting = isIdle
	if isIdle && c.isStopped {
		deadline = time.Unix(1, 0)
	}
	err := c.socket.SetReadDeadline(deadline)
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := c.socket.Read(p)
	c.mu.Lock()
	c.isWaiting = false
	c.mu.Unlock()
	return n, err
}

// closing has a connection end when it waits for a command.
func (c *connection) closing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isStopped = true
	if c.isWaiting {
		_ = c.socket.SetReadDeadline(time.Unix(1, 0))
	}
}

func (c *connection) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isStopped
}

func (c *connection) attribute() slog.Attr {
	return slog.Group("session", "connector", c.connector.Name, "peer", c.peer.String())
}

// groups gives the groups that the peer is in.
func (c *connection) groups() []Group {
	groups := []Group{Anonymous}
	if c.user != "" {
		groups = append(groups, Users)
	}
	if contains(c.connector.PeerServers, c.peer.Addr()) {
		groups = append(groups, PeerServers)
	}
	if contains(c.connector.Secured, c.peer.Addr()) {
		groups = append(groups, ExternallySecured)
	}
	if c.isPartner() {
		groups = append(groups, Partners)
	}
	return groups
}

// isOwnName reports whether a name is one by which we receive: that of the connector, or another one of the organization.
func (c *connection) isOwnName(name string) bool {
	return strings.EqualFold(name, c.connector.FQDN) || c.server.IsOwnName != nil && c.server.IsOwnName(name)
}

// isTrusted reports whether the peer is more than an anonymous one, who is slowed down by his errors.
func (c *connection) isTrusted() bool {
	return slices.ContainsFunc(c.groups(), func(g Group) bool { return g != Anonymous && slices.Contains(c.connector.Groups, g) })
}

func (c *connection) rights() Rights { return c.connector.rightsOf(c.groups(), c.user) }

// class is how near the peer is.
func (c *connection) class() PeerClass {
	switch rights := c.rights(); {
	case rights.Has(AcceptOrganizationHeaders):
		return OwnNode
	case rights.Has(AuthenticatedFlag):
		return UserPeer
	default:
		return AnonymousPeer
	}
}

// name gives the peer's name by DNS.
func (c *connection) name() string {
	if !c.hasPeerName && c.server.PeerName != nil {
		c.peerName = c.server.PeerName(c.ctx, c.peer.Addr())
	}
	c.hasPeerName = true
	return c.peerName
}
