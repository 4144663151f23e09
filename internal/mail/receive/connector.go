package receive

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/mail/authenticity"
	"github.com/parley-broker/parley/internal/mail/message"
)

// TLSMode is the mode of TLS of a connector.
type TLSMode string

// The modes of section 3.4. With Implicit of the connector, TLS begins before the first byte whatever the mode.
const (
	TLSOff           TLSMode = "off"
	TLSOpportunistic TLSMode = "opportunistic"
	TLSRequired      TLSMode = "required"
	TLSMutual        TLSMode = "mutual" // required, with a client certificate that names one of the connector's TLSDomains
)

// Connector is a receive connector: where it listens, to whom, and what holds there.
type Connector struct {
	Name         string
	Bindings     []netip.AddrPort
	RemoteRanges []Range
	IsDisabled   bool
	FQDN         string // our name in the banner, EHLO and Received
	Banner       string // text of the banner; nothing means FQDN and ESMTP
	IsVerbose    bool   // commands and replies are logged

	TLS        TLSMode
	Implicit   bool     // TLS from the first byte, as on port 465
	TLSDomains []string // names of which a client certificate must have one, for mutual TLS and for Partners
	// Certificate chooses the certificate of a handshake; nothing means that of the server. ClientCAs verify the certificates of clients;
	// nothing means those of the server.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	ClientCAs   *x509.CertPool
	Mechanisms  []string // of AUTH: PLAIN, LOGIN, SCRAM-SHA-256, SCRAM-SHA-256-PLUS
	IsClearAuth bool     // AUTH without TLS, on networks that are trusted

	Groups       []Group
	Rights       map[Group]Rights  // what peers of a group may do here; nothing means what the specification says
	Grants       map[string]Rights // more rights for users by name
	PeerServers  []Range           // peers who are PeerServers by their address
	Secured      []Range           // networks whose peers are ExternallySecured
	ProxyRanges  []Range           // peers who begin with a header of the PROXY protocol
	XClientRange []Range           // peers who may say XCLIENT

	Checks            authenticity.Checks
	Filters           []Filter // asked before those of the server
	IsReservedRefused bool     // recipients in domains that nobody can have

	IsSubmission bool // Message-Id and Date are added
	Limits       Limits
}

// Limits are those of section 3.2. A zero number means no limit, a zero duration none either.
type Limits struct {
	Connections           int // of the connector, on this node
	ConnectionsPerSource  int
	PercentPerSource      int // of Connections
	ConnectionsPerMinute  int
	MessagesPerMinute     int // per source
	RateOf                RateSource
	ConnectionTimeout     time.Duration
	InactivityTimeout     time.Duration
	MessageBytes          int64
	IsSizeOff             bool // SIZE is not offered
	IsSizeUnadvertised    bool // SIZE without its value
	HeaderBytes           int
	Recipients            int
	Hops, LocalHops       int
	ProtocolErrors        int
	FailedAuth            int // before the connection is dropped
	LockoutFailures       int // of AUTH from a source before it is locked out
	LockoutTime           time.Duration
	Tarpit                time.Duration
	PipelinedCommands     int
	TextLine, CommandLine int  // octets with CRLF
	IsNormalizing         bool // bare CR and LF become CRLF instead of being refused
}

// RateSource is whose messages a rate counts.
type RateSource int

// The definition of one source of messages. A peer that is not authenticated counts by address.
const (
	RateOfAddress RateSource = iota
	RateOfUser
	RateOfBoth
)

// DefaultLimits are ours of section 3.2.
func DefaultLimits() Limits {
	return Limits{
		Connections: 5000, ConnectionsPerSource: 20, PercentPerSource: 2, ConnectionsPerMinute: 1200, MessagesPerMinute: 600,
		ConnectionTimeout: 10 * time.Minute, InactivityTimeout: 5 * time.Minute,
		MessageBytes: 36 << 20, HeaderBytes: 256 << 10, Recipients: 200, Hops: 60, LocalHops: 12,
		ProtocolErrors: 5, FailedAuth: 3, LockoutFailures: 10, LockoutTime: 15 * time.Minute,
		Tarpit: 5 * time.Second, PipelinedCommands: 1000, TextLine: 1000, CommandLine: 2048,
	}
}

// Usage is a preset. It fills defaults when a connector is made, and means nothing later.
type Usage string

// The presets of section 3.1.
const (
	Client   Usage = "client"
	Custom   Usage = "custom"
	Internal Usage = "internal"
	Internet Usage = "internet"
	Partner  Usage = "partner"
)

// everywhere are the ranges of a connector for all peers.
var everywhere = []Range{network(netip.MustParsePrefix("0.0.0.0/0")), network(netip.MustParsePrefix("::/0"))}

// NewConnector gives a connector with the defaults of a usage.
func NewConnector(name string, usage Usage) *Connector {
	c := &Connector{Name: name, TLS: TLSOpportunistic, RemoteRanges: slices.Clone(everywhere), Limits: DefaultLimits()}
	switch usage {
	case Client:
		c.TLS, c.Groups, c.IsSubmission = TLSRequired, []Group{Users}, true
		c.Mechanisms = []string{"SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "PLAIN", "LOGIN"}
		c.Limits.MessagesPerMinute = 60
	case Internal:
		c.Groups = []Group{PeerServers, Users}
		c.Limits.PercentPerSource, c.Limits.ConnectionsPerSource, c.Limits.MessagesPerMinute, c.Limits.Recipients = 100, 0, 0, 5000
	case Internet:
		c.Groups = []Group{Anonymous}
	case Partner:
		c.TLS, c.Groups = TLSMutual, []Group{Partners}
	case Custom:
	}
	return c
}

// Configuration is everything that an administrator says of receiving.
type Configuration struct {
	Connectors      []*Connector
	AcceptedDomains []string // example.com, or *.example.com for its subdomains
	Node            NodeLimits
	// ReceiveBytes and SendBytes bound messages from outside and from inside beside what a connector says, and Recipients the recipients of
	// both: the smaller number holds. 0 means no limit.
	ReceiveBytes, SendBytes int64
	Recipients              int
	// Users are users by name about whom there is something to say.
	Users map[string]User
	// Names are all of ours, which others may not use in Authentication-Results.
	Names []string
	// IdentifiesMessages is whether messages get an identity, because a mailbox store asks whether it has them already.
	IdentifiesMessages bool
	// DefaultDomain is that of the organization, under which users may send although it takes no mail; "" means none.
	DefaultDomain string
	// RoutedDomains have a way of their own, such as *.example: no recipient there is refused for its domain.
	RoutedDomains []string
}

// User holds the settings for somebody who has authenticated.
type User struct {
	Senders           []string // addresses and domains that he may send as, "*" for all; none means the domains that are ours
	MessagesPerMinute int
}

// maySendAs reports whether the list of the user has a sender.
func (u User) maySendAs(sender message.Address) bool {
	return slices.ContainsFunc(u.Senders, func(allowed string) bool {
		return allowed == "*" || message.Fold(allowed) == message.Fold(sender.String()) || matchesDomain(allowed, sender.Domain)
	})
}

// MaySendAs reports whether a user may use a sender where no connector gives him rights: one of his list, or where he has none one of the
// domains that are ours. The rule for roles in SQL is the same (sql/mail/submission/allowed_senders.sql).
func (c *Configuration) MaySendAs(user string, sender message.Address) bool {
	if known := c.Users[user]; len(known.Senders) > 0 {
		return known.maySendAs(sender)
	}
	return c.isAccepted(sender.Domain) || c.DefaultDomain != "" && strings.EqualFold(c.DefaultDomain, sender.Domain)
}

// With gives the configuration with one more connector.
func (c *Configuration) With(connector *Connector) *Configuration {
	more := *c
	more.Connectors = append(slices.Clone(c.Connectors), connector)
	return &more
}

// Validate refuses what would not be what it seems. Two ranges are inside one another or apart, so only those that are the same compete.
func (c *Configuration) Validate() error {
	var wrong []error
	for i, connector := range c.Connectors {
		if connector.Name == "" || len(connector.Bindings) == 0 || len(connector.RemoteRanges) == 0 {
			wrong = append(wrong, fmt.Errorf("receive connector %q needs a name, a binding and a remote range", connector.Name))
		}
		if !message.IsDomain(connector.FQDN) {
			wrong = append(wrong, fmt.Errorf("receive connector %q: its FQDN %q is no domain", connector.Name, connector.FQDN))
		}
		if limits := connector.Limits; limits.ConnectionTimeout > 0 && limits.ConnectionTimeout <= limits.InactivityTimeout {
			wrong = append(wrong, fmt.Errorf("receive connector %q: give it a connection timeout above its inactivity timeout", connector.Name))
		}
		for _, other := range c.Connectors[:i] {
			wrong = append(wrong, conflict(connector, other))
		}
	}
	return errors.Join(wrong...)
}

func conflict(one, other *Connector) error {
	if one.Name == other.Name {
		return fmt.Errorf("two receive connectors have the name %q", one.Name)
	}
	for _, binding := range one.Bindings {
		if !slices.Contains(other.Bindings, binding) {
			continue
		}
		if one.Implicit != other.Implicit {
			return fmt.Errorf("receive connectors %q and %q share %s, and only one begins with TLS", one.Name, other.Name, binding)
		}
		for _, remote := range one.RemoteRanges {
			if slices.Contains(other.RemoteRanges, remote) {
				return fmt.Errorf("receive connectors %q and %q both have the range %s-%s on %s",
					one.Name, other.Name, remote.First, remote.Last, binding)
			}
		}
	}
	return nil
}

// match gives the connector of a binding whose range is the most specific one that contains the peer, or nil.
func (c *Configuration) match(binding netip.AddrPort, peer netip.Addr) (found *Connector) {
	var smallest Range
	for _, connector := range c.Connectors {
		if connector.IsDisabled || !slices.Contains(connector.Bindings, binding) {
			continue
		}
		for _, remote := range connector.RemoteRanges {
			if remote.Contains(peer) && (found == nil || remote.isWithin(smallest)) {
				smallest, found = remote, connector
			}
		}
	}
	return found
}

// isAccepted reports whether we take mail for a domain.
func (c *Configuration) isAccepted(domain string) bool {
	for _, accepted := range c.AcceptedDomains {
		if matchesDomain(accepted, domain) {
			return true
		}
	}
	return false
}
